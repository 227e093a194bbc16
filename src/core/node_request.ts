/**
 * The classes of requests and responses on Node, which extend those of the package srvx.
 */
import { LIGHT, type LightInit, type LightParts } from "./light_request.ts";
import { IncomingBody, readAll } from "./node_body.ts";
import type { NodeIncoming, NodeOutgoing } from "./runtime.ts";

/** The parts of srvx that this file uses. */
export interface Adapter {
  /** A request that creates a `Request` of the platform only when code uses one of its rarely used parts. */
  readonly NodeRequest: new (connection: Connection) => { _url: URL; arrayBuffer(): Promise<ArrayBuffer> };
  /** A response that creates a `Response` of the platform only when code uses one of its rarely used parts. */
  readonly FastResponse: new (body: string | null, init: LightInit) => object;
}

interface Connection {
  readonly req: NodeIncoming;
  readonly res: NodeOutgoing;
}

export interface Classes {
  readonly LightRequest: new (connection: Connection) => Request;
  /** Sends a light response. Returns `false` if the response is not light, or has been changed. */
  sendLight(response: Response, outgoing: NodeOutgoing): boolean;
  /** Discards the unread rest of the body of a light request. */
  discardBody(request: Request): void;
}

export function createClasses({ NodeRequest, FastResponse }: Adapter): Classes {
  const LightResponse = createResponseClass(FastResponse);
  // The cast is safe, because srvx gives the class all other members of `Response`.
  const Light = LightResponse as unknown as LightParts["Response"];
  const LightRequest = createRequestClass(NodeRequest, Light);
  return {
    LightRequest: LightRequest as unknown as Classes["LightRequest"], // The cast is safe for the same reason.
    sendLight: LightResponse.send,
    discardBody: LightRequest.discardBody,
  };
}

function createResponseClass(FastResponse: Adapter["FastResponse"]) {
  class LightResponse extends FastResponse {
    readonly #text: string | null;
    readonly #init: LightInit;
    #isChanged = false;

    constructor(text: string | null, init: LightInit) {
      super(text, init);
      this.#text = text;
      this.#init = init;
    }

    get headers(): Headers {
      this.#isChanged = true;
      return Reflect.get(FastResponse.prototype, "headers", this);
    }

    static send(response: object, outgoing: NodeOutgoing): boolean {
      if (!(#text in response) || response.#isChanged) return false;
      const { status = 200, headers = {} } = response.#init;
      outgoing.statusCode = status;
      for (const name in headers) outgoing.setHeader(name, headers[name]);
      // Without a call of `writeHead`, Node adds Content-Length, and sends the head and the text as one string. With
      // `writeHead`, Node would send chunks, which takes twice the CPU time.
      outgoing.end(response.#text ?? "");
      return true;
    }
  }
  return LightResponse;
}

function createRequestClass(NodeRequest: Adapter["NodeRequest"], Light: LightParts["Response"]) {
  class LightRequest extends NodeRequest {
    static readonly #parts: LightParts = {
      Response: Light,
      toNative: (request) => #native in request ? request.#native ??= toPlatform(request) : request,
    };
    readonly #connection: Connection;
    #native?: Request;
    #gone?: AbortSignal;
    #body?: IncomingBody;

    constructor(connection: Connection) {
      super(connection);
      this.#connection = connection;
      const { url = "", headers: { host = "" } } = connection.req;
      // Without this URL, srvx would replace a host that ends with a dot by "_invalid_".
      if (DOTTED.test(host) && url.startsWith("/")) this._url = new URL(`http://${host}${url}`);
    }

    get [LIGHT](): LightParts {
      return LightRequest.#parts;
    }

    /** Aborts with an `AbortError`, as on other runtimes, if the client disconnects before it has the response. */
    get signal(): AbortSignal {
      return this.#gone ??= watchClient(this.#connection.res);
    }

    /** The body. `null` for methods whose requests have no body. */
    get body(): IncomingBody["stream"] | null {
      const { req: incoming } = this.#connection;
      if (incoming.method === "GET" || incoming.method === "HEAD") return null;
      return (this.#body ??= new IncomingBody(incoming)).stream;
    }

    static discardBody(request: Request): void {
      if (!(#body in request)) return;
      if (request.#body) request.#body.discard();
      else request.#connection.req.resume();
    }

    /** Reads the body. The method of srvx would create a `Request` of the platform. */
    override arrayBuffer(): Promise<ArrayBuffer> {
      const { req: incoming } = this.#connection;
      // Other code has begun to read the body, or the body can no longer be read.
      if (incoming.readableFlowing !== null || incoming.destroyed) return super.arrayBuffer();
      return readAll(incoming);
    }
  }
  return LightRequest;
}

const DOTTED = /^[\w.-]+\.(:\d{1,5})?$/;

function toPlatform(request: Request): Request {
  const { url, method, headers } = request;
  try {
    const copy = new Request(url, { method, headers });
    return Object.defineProperty(copy, "signal", { get: () => request.signal });
  } catch {
    return request;
  }
}

function watchClient(outgoing: NodeOutgoing): AbortSignal {
  const gone = new AbortController();
  const abort = () => {
    if (!outgoing.writableFinished) gone.abort(new DOMException("The client has disconnected", "AbortError"));
  };
  if (outgoing.destroyed) abort();
  else outgoing.on("close", abort);
  return gone.signal;
}
