/**
 * Listens for HTTP requests on Node. The package srvx makes the requests and responses.
 */
import type { HttpListener, ListenOptions } from "./listener.ts";
import { LIGHT, type LightInit, type LightParts } from "./light_request.ts";
import type { NodeGlobal, NodeHttpServer, NodeIncoming, NodeOutgoing, RuntimeFetch } from "./runtime.ts";

/** The parts of srvx that this file uses. */
interface Adapter {
  /** A request that creates a `Request` of the platform only when code uses one of its rarely used parts. */
  readonly NodeRequest: new (connection: Connection) => { _url: URL; arrayBuffer(): Promise<ArrayBuffer> };
  /** A response that creates a `Response` of the platform only when code uses one of its rarely used parts. */
  readonly FastResponse: new (body: string | null, init: LightInit) => object;
}

interface Connection {
  readonly req: NodeIncoming;
  readonly res: NodeOutgoing;
}

/** The classes of requests and responses. */
interface Classes {
  readonly LightRequest: new (connection: Connection) => Request;
  /** Sends a light response. Returns `false` if the response is not light, or has been changed. */
  sendLight(response: Response, outgoing: NodeOutgoing): boolean;
  /** Discards the unread rest of the body of a light request. */
  discardBody(request: Request): void;
}

/**
 * The module of srvx. A variable, because JSR, Deno and bundlers would add the package to all programs that import this
 * file. The npm package contains the name as a literal.
 */
const ADAPTER: string = "srvx/node";

/**
 * Idle timeout of a connection, in milliseconds, as on Bun. With Node's default of 5 seconds, Node would close
 * connections that proxies and clients still use, and a request that is sent at the same moment would fail.
 */
const IDLE_MS = 255_000;

/**
 * Milliseconds that an idle connection stays open after the listener has stopped. A request that a client has sent before
 * it could know of the stop gets a response within this time. The response closes the connection.
 */
const GRACE_MS = 500;

/**
 * Listens for HTTP requests. Rejects with Node's error if Node cannot listen on the address, or if srvx is not
 * installed.
 */
export async function listenOnNode(node: NodeGlobal, options: ListenOptions): Promise<HttpListener> {
  classes ??= createClasses(await import(ADAPTER));
  const listener = new NodeListener(node, classes, options.fetch);
  await listener.listen(options);
  return listener;
}

/** All listeners share the classes, so that engines compile the code for one class of requests. */
let classes: Classes | undefined;

class NodeListener implements HttpListener {
  readonly #node: NodeGlobal;
  readonly #classes: Classes;
  readonly #fetch: RuntimeFetch;
  readonly #server: NodeHttpServer;
  #isStopped = false;

  constructor(node: NodeGlobal, classes: Classes, fetch: RuntimeFetch) {
    this.#node = node;
    this.#classes = classes;
    this.#fetch = fetch;
    this.#server = node.getBuiltinModule("http").createServer((incoming, outgoing) => {
      this.#answer(incoming, outgoing);
    });
    this.#server.keepAliveTimeout = IDLE_MS;
  }

  async listen({ hostname: host, port }: ListenOptions): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, host }, resolve);
    });
  }

  get port(): number {
    return Number(Object(this.#server.address()).port);
  }

  async stop(): Promise<void> {
    const server = this.#server;
    // Responses close their connections only from now on. Otherwise their clients would connect again, and the system
    // resets connections that Node has not accepted when it stops to listen.
    this.#isStopped = true;
    server.keepAliveTimeout = GRACE_MS;
    server.keepAliveTimeoutBuffer = 0;
    const closed = Promise.withResolvers<void>();
    // Do not call `close` of the HTTP server now, because it also closes idle connections, on which requests may be on
    // their way.
    this.#node.getBuiltinModule("net").Server.prototype.close.call(server, closed.resolve);
    const closeIdle = () => server.close(() => {});
    const timer = setTimeout(closeIdle, GRACE_MS);
    await closed.promise;
    clearTimeout(timer);
    closeIdle();
  }

  close(): void {
    this.#server.closeAllConnections();
  }

  async #answer(incoming: NodeIncoming, outgoing: NodeOutgoing): Promise<void> {
    const request = this.#toRequest(incoming, outgoing);
    if (!request) {
      outgoing.writeHead(400, []).end();
      return;
    }
    // Wait for the earlier responses on this connection. Otherwise a client that sends many requests in one packet and
    // reads nothing could let the server buffer the responses to all of them.
    if (!outgoing.socket) await new Promise<void>((resolve) => outgoing.once("socket", resolve));
    try {
      const response = await this.#fetch(request, { remoteAddr: { hostname: incoming.socket.remoteAddress } });
      if (this.#isStopped) outgoing.shouldKeepAlive = false;
      if (!this.#classes.sendLight(response, outgoing)) await send(response, outgoing);
    } catch {
      // The handler failed, or the response cannot be sent, or its body failed after the status was sent.
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500, []).end();
    }
    // Without this call, Node would not read the next request on this connection.
    if (!incoming.readableEnded) this.#classes.discardBody(request);
  }

  /** Returns `undefined` if a `Request` of the platform cannot have the request target or the host. */
  #toRequest(incoming: NodeIncoming, outgoing: NodeOutgoing): Request | undefined {
    const { url = "" } = incoming;
    // Without this check, srvx would replace such a target by "/".
    if (!url.startsWith("/") && !(/^https?:\/\/[^/]/i.test(url) && URL.canParse(url))) return;
    try {
      const request = new this.#classes.LightRequest({ req: incoming, res: outgoing });
      return URL.canParse(request.url) ? request : undefined;
    } catch {
      return;
    }
  }
}

function createClasses({ NodeRequest, FastResponse }: Adapter): Classes {
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
  // The cast is safe, because srvx gives the class all other members of `Response`.
  const Light = LightResponse as unknown as LightParts["Response"];
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
  return {
    LightRequest: LightRequest as unknown as Classes["LightRequest"], // The cast is safe for the same reason.
    sendLight: LightResponse.send,
    discardBody: LightRequest.discardBody,
  };
}

/** A host name that ends with a dot. */
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

/**
 * The body of a request as a stream. `Readable.toWeb` of Node is no replacement: after the stream is cancelled, Node 22
 * and 24 throw an uncaught exception for a piece that is still buffered, and Node reads no further request on the
 * connection.
 */
class IncomingBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #incoming: NodeIncoming;
  #controller?: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;

  constructor(incoming: NodeIncoming) {
    this.#incoming = incoming;
    const start = (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      this.#controller = controller;
    };
    const pull = () => void incoming.resume();
    const cancel = () => {
      this.#controller = undefined;
      incoming.resume();
    };
    this.stream = new ReadableStream({ start, pull, cancel }, { highWaterMark: 0 });
    if (incoming.destroyed) this.#fail();
    incoming.on("data", ({ buffer, byteOffset, byteLength }) => {
      if (!this.#controller) return;
      incoming.pause();
      this.#controller.enqueue(new Uint8Array(buffer, byteOffset, byteLength));
    });
    incoming.on("end", () => this.#controller?.close());
    incoming.on("close", () => {
      if (!incoming.readableEnded) this.#fail();
    });
    incoming.pause();
  }

  /** Discards the rest of the body. Fails the stream, so that no reader takes a part of the body for the whole. */
  discard(): void {
    this.#fail();
    this.#incoming.resume();
  }

  #fail(): void {
    this.#controller?.error(new DOMException("The request is over", "AbortError"));
    this.#controller = undefined;
  }
}

function readAll(incoming: NodeIncoming): Promise<ArrayBuffer> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    incoming.on("data", (piece) => pieces.push(piece));
    incoming.on("end", () => resolve(join(pieces)));
    incoming.on("close", () => {
      if (!incoming.readableEnded) reject(new DOMException("The client has disconnected", "AbortError"));
    });
  });
}

function join(pieces: readonly Uint8Array<ArrayBuffer>[]): ArrayBuffer {
  // Copy a single piece too, because its buffer may contain other requests.
  if (pieces.length === 1) {
    const [{ buffer, byteOffset, byteLength }] = pieces;
    return buffer.slice(byteOffset, byteOffset + byteLength);
  }
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all.buffer;
}

/** Sends a response of the platform. Applies backpressure: reads the body only as fast as the client reads. */
async function send({ status, headers, body }: Response, outgoing: NodeOutgoing): Promise<void> {
  const reader = body?.getReader();
  if (outgoing.destroyed) return await reader?.cancel();
  // Cancel the body also if the response cannot be sent.
  outgoing.on("close", () => reader?.cancel().catch(() => {}));
  outgoing.writeHead(status, [...headers].flat());
  if (!reader || outgoing.req.method === "HEAD") {
    outgoing.end();
    return;
  }
  // Send the headers now, because the body may take a while to produce its first bytes.
  outgoing.flushHeaders();
  let drained = Promise.withResolvers<void>();
  const proceed = () => {
    drained.resolve();
    drained = Promise.withResolvers<void>();
  };
  outgoing.on("drain", proceed);
  outgoing.on("close", proceed);
  for (let next = await reader.read(); !next.done && !outgoing.destroyed; next = await reader.read()) {
    const { promise } = drained;
    if (!outgoing.write(next.value)) await promise;
  }
  outgoing.end();
}
