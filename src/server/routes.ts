/**
 * Endpoints next to the MCP endpoint, such as `/health`.
 */
import { type AccessOptions, checkCaller, type ConnectionInfo, toCheckedUrl } from "./transports/http/access.ts";
import { hasSmallPieces, INCOMPLETE, isWithin, TOO_LARGE, TOO_SMALL_PIECES } from "./transports/http/body_refusals.ts";
import { copyRequest, type Visit } from "./transports/http/request_copy.ts";
import { type Refusal, refuseInText } from "./transports/http/refusals.ts";
import type { Fetch } from "./transports/http/fetch.ts";
import type { Core } from "./engine/core.ts";
import type { ServerStats } from "./stats.ts";

/**
 * An endpoint next to the MCP endpoint, such as `/health`. The server does not authenticate the caller. The endpoint
 * still responds while the server is closing.
 */
export interface Route {
  /** Path of the endpoint, without parameters. */
  readonly path: string;
  /**
   * Whether the endpoint gets all requests. If `false`, the server checks the Host and Origin headers as for a WebSocket,
   * sets the host of the URL to the checked host, and limits the body to `limits.request.bodyBytes` and to 10,000 chunks,
   * or more if the chunks have on average at least 64 bytes. Defaults to `false`.
   */
  readonly public?: boolean;
  /**
   * Responds to requests with any HTTP method, except methods that a web-standard request cannot have, such as TRACE. If
   * the function throws, the client gets HTTP 500 without details. If the function throws the error of the body, because
   * the client's body breaks off or is too large, the server does not report an error. A response whose body is the
   * body of the request then ends early.
   */
  readonly fetch: (request: Request, info: RouteInfo) => Response | Promise<Response>;
}

/** Facts that a {@linkcode Route} receives with a request. */
export interface RouteInfo {
  /** The server that has the route, or the object that `mount` returned. */
  readonly server: {
    /** Creates all server-wide services. Rejects if a service fails. */
    ready(): Promise<void>;
    /** Returns the current numbers of calls, streams, sessions and bytes. */
    stats(): ServerStats;
  };
  /** Facts about the connection, as the runtime or your own code passed them to `fetch`. */
  readonly info?: ConnectionInfo;
}

/** Routes, such as `[health(), prometheus()]`. */
export type RouteList = readonly (Route | readonly Route[])[];

/** The parts of a server that {@linkcode Routes} needs. */
export interface RoutedParts {
  readonly core: Core;
  /** The hosts and origins of each server. A request to a route must be allowed by one of them. */
  readonly access: readonly AccessOptions[];
  readonly server: RouteInfo["server"];
  /** Paths of the MCP endpoints, which routes cannot use. */
  readonly paths: readonly string[];
  /** Handles the requests that are not for a route. */
  readonly fetch: Fetch;
}

/** The routes of a server. A request whose path is not a route goes to the MCP endpoint. */
export class Routes {
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #parts: RoutedParts;

  /**
   * Checks the list of routes.
   *
   * @throws {TypeError} if an item is not a route, or if its path is already the path of another route or of an
   * endpoint.
   */
  constructor(list: RouteList, parts: RoutedParts) {
    const routes = list.flat();
    const odd = routes.findIndex((route) => !isRoute(route));
    if (odd >= 0) {
      throw new TypeError(
        `Cannot add routes: the item at index ${odd} is not a route; write { path: "/version", fetch }`,
      );
    }
    const paths = [...parts.paths, ...routes.map(({ path }) => path)];
    const twice = paths.find((path, at) => paths.indexOf(path) < at);
    if (twice) throw new TypeError(`Cannot add the route ${twice}: the path is already used; choose another path`);
    this.#routes = new Map(routes.map((route) => [route.path, route]));
    this.#parts = parts;
  }

  readonly fetch: Fetch = async (request, info) => {
    const { core, server, fetch } = this.#parts;
    const path = URL.parse(request.url)?.pathname ?? "";
    const route = this.#routes.get(path);
    if (!route) return await fetch(request, info);
    const isPublic = route.public === true;
    const refused = isPublic ? undefined : this.#check(request, info);
    if (refused) return refuseInText(core, refused, SOURCE);
    const upload = request.body && new Upload(request.body, isPublic ? undefined : core.limits.request.bodyBytes);
    const visit = toRouted({ request, info }, upload, isPublic);
    if (!visit) return refuseInText(core, BAD_METHOD, SOURCE);
    try {
      const response: unknown = await route.fetch(visit.request, { server, info: visit.info });
      if (response instanceof Response) {
        if (upload) upload.response = response;
        return response;
      }
      throw new TypeError(`Cannot serve the route ${path}: its fetch() did not return a Response; return a Response`);
    } catch (error) {
      // Do not report errors that the client has caused, because they would fill the server's log.
      const refusal = upload?.findRefusal(error);
      if (refusal) return refuseInText(core, refusal, SOURCE);
      if (!isAbort(error, request)) core.report(error);
      return new Response(null, { status: 500 });
    }
  };

  #check(request: Request, info: ConnectionInfo | undefined): Refusal | undefined {
    const { access, core } = this.#parts;
    const refusals = access.map((options) => checkCaller(request, info, options, { isSimple: true }));
    const [refused] = refusals.includes(undefined) ? [] : refusals;
    if (refused) return { ...refused, message: `Cannot serve the request: ${refused.state}` };
    return isWithin(request.headers.get("content-length"), core.limits.request.bodyBytes) ? undefined : TOO_LARGE;
  }
}

const SOURCE = { transport: "http" } as const;

/** The refusal of a request that cannot be copied, so that its body would not be limited. */
const BAD_METHOD: Refusal = {
  status: 501,
  message: "Cannot serve the request: a route does not support this method",
  reason: "verb",
};

/** The body of a request to a route. */
class Upload {
  /** The body, which fails if it breaks off, is too large, or arrives in too many small pieces. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** The response of the route. */
  response?: Response;
  #failure?: { readonly error: Error; readonly refusal: Refusal };

  /**
   * Reads nothing from `body` until the stream is read. Counts the bytes, because any header may be wrong. Without
   * `max`, the body is not limited.
   */
  constructor(body: ReadableStream<Uint8Array<ArrayBuffer>>, max?: number) {
    let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
    let bytes = 0;
    let pieces = 0;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      reader ??= body.getReader();
      // Throw another error than that of the runtime, because Deno would replace its own error.
      const read = await reader.read().catch((cause) => {
        this.#fail(controller, INCOMPLETE, new TypeError(INCOMPLETE.message, { cause }));
      });
      if (!read) return;
      const { done, value } = read;
      if (done) return controller.close();
      bytes += value.length;
      const refusal = max === undefined ? undefined : findExcess(bytes, ++pieces, max);
      if (!refusal) return controller.enqueue(toSmallBuffer(value));
      reader.cancel().catch(() => {});
      this.#fail(controller, refusal, new RangeError(refusal.message));
    };
    const cancel = (reason: unknown) => (reader ?? body).cancel(reason);
    this.stream = new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
  }

  /** Returns the refusal of the request, if the body has failed and a route has thrown the error of the body. */
  findRefusal(error: unknown): Refusal | undefined {
    const failure = this.#failure;
    return failure && isCausedBy(error, failure.error) ? failure.refusal : undefined;
  }

  #fail(controller: ReadableStreamDefaultController, refusal: Refusal, error: Error): void {
    this.#failure = { refusal, error };
    // End a response whose body is this stream, because a runtime prints each error of the body of a response. Another
    // reader gets the error, because it must not take a part of the upload for the whole.
    if (this.response?.body === this.stream) controller.close();
    else controller.error(error);
  }
}

/** Tests whether an error is `cause`, or wraps `cause` or a copy of it. `fetch` of Deno wraps a copy. */
function isCausedBy(error: unknown, cause: Error): boolean {
  const { cause: inner } = Object(error);
  return error === cause || Object(inner).message === cause.message;
}

function findExcess(bytes: number, pieces: number, max: number): Refusal | undefined {
  if (bytes > max) return TOO_LARGE;
  return hasSmallPieces(bytes, pieces) ? TOO_SMALL_PIECES : undefined;
}

/**
 * Copies a piece that is small for its buffer. Deno has a 64 KiB buffer for a piece of one byte, so 200,000 pieces that
 * wait to be joined would take 12 GiB, and most of the time would be spent on garbage collection.
 */
function toSmallBuffer(piece: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return 2 * piece.length < piece.buffer.byteLength ? new Uint8Array(piece) : piece;
}

/**
 * Returns the request for a route, with the checked host in its URL and with the limited body. Returns `undefined` if
 * the request cannot be copied. A public route gets such a request unchanged.
 */
function toRouted<Info>(visit: Visit<Info>, upload: Upload | null, isPublic: boolean): Visit<Info> | undefined {
  const { request } = visit;
  const url = isPublic ? request.url : toCheckedUrl(request);
  if (!upload && url === request.url) return visit;
  try {
    return copyRequest(visit, { url, body: upload?.stream });
  } catch {
    return isPublic ? visit : undefined;
  }
}

/** Tests whether a route has failed because the client has disconnected. Reads the signal only if the route has. */
function isAbort(error: unknown, request: Request): boolean {
  return Object(error).name === "AbortError" && request.signal.aborted;
}

function isRoute(route: unknown): boolean {
  const { path, fetch, public: isPublic } = Object(route);
  if (isPublic !== undefined && typeof isPublic !== "boolean") return false;
  return typeof fetch === "function" && typeof path === "string" && URL.parse(path, "http://x")?.pathname === path &&
    !path.includes("/:");
}
