/**
 * Endpoints next to the MCP endpoint, such as `/health`.
 */
import { deadline } from "../core/kit/deadline.ts";
import { isLight } from "../core/light_request.ts";
import { quote, withLimits } from "../core/protocol/errors.ts";
import type { Engine } from "./engine/era.ts";
import type { RoutePeer } from "./engine/route_peer.ts";
import type { ServerHandle, StartPart } from "./engine/server_handle.ts";
import { ServerPart } from "./engine/server_part.ts";
import { type AccessOptions, type ConnectionInfo, toCheckedUrl } from "./transports/http/access.ts";
import { hasSmallPieces, INCOMPLETE, isWithin, TOO_LARGE, TOO_SMALL_PIECES } from "./transports/http/body_refusals.ts";
import { copyRequest, type Visit } from "./transports/http/request_copy.ts";
import { isCancelError } from "./call/cancel_error.ts";
import { CLOSING, type Refusal, refuseInText } from "./transports/http/refusals.ts";
import { findForeign, isPageOption, RouteRates, toPage } from "./transports/http/route_facts.ts";
import type { Fetch } from "./transports/http/fetch.ts";
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
   * Whether the endpoint is a page for people: `true`, or the public origin of the page, such as
   * `https://notes.example.com`. Responses get the headers of a page that nobody can put into a frame, unless they have
   * these headers. With an origin, only this origin can send requests with an Origin header, also if `public` is set.
   * Defaults to `false`.
   */
  readonly page?: boolean | string;
  /**
   * Starts the route with its server: with the first HTTP request, or by `server.ready()`. Can return a function that is
   * called when the server closes. Requests to the route wait for the start, for at most `limits.calls.timeoutMs`, and
   * then get HTTP status 503. If `start` fails, requests to the route get HTTP status 500, and the next one starts the
   * route again. A route of `mount` gets the handle of the first server.
   */
  readonly start?: StartPart;
  /**
   * Responds to requests with any HTTP method, except methods that a web-standard request cannot have, such as TRACE. If
   * the function throws, the client gets HTTP 500 without details. If the function throws the error of the body, because
   * the client's body breaks off or is too large, the server does not report an error. A response whose body is the
   * body of the request then ends early. `server` is the handle that `start` received, or `undefined` without
   * `start`.
   */
  readonly fetch: (
    request: Request,
    info: RouteInfo,
    server: ServerHandle | undefined,
  ) => Response | Promise<Response>;
}

/** Facts that a {@linkcode Route} receives with a request. */
export interface RouteInfo extends RoutePeer {
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

export interface RoutedParts {
  readonly engine: Engine;
  /** The hosts and origins of each server. A request to a route must be allowed by one of them. */
  readonly access: readonly AccessOptions[];
  readonly proxies: readonly string[];
  readonly server: RouteInfo["server"];
  /** Paths of the MCP endpoints, which routes cannot use. */
  readonly paths: readonly string[];
  /** Handles the requests that are not for a route. */
  readonly fetch: Fetch;
}

/** The routes of a server. A request whose path is not a route goes to the MCP endpoint. */
export class Routes {
  readonly #routes: ReadonlyMap<string, Routed>;
  readonly #parts: RoutedParts;
  readonly #rates: RouteRates;
  #isStarted = false;

  /**
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
    this.#routes = new Map(routes.map((route) => [route.path, { route, part: toPart(route, parts.engine) }]));
    this.#parts = parts;
    this.#rates = new RouteRates(parts.engine.core, parts.proxies);
  }

  /** Rejects if a route cannot be started. */
  async ready(): Promise<void> {
    this.#isStarted = true;
    await Promise.all([...this.#routes.values()].map(({ part }) => part?.start()));
  }

  /** Never rejects. */
  async stop(): Promise<void> {
    await Promise.all([...this.#routes.values()].map(({ part }) => part?.stop()));
  }

  /** Reports errors, because no request may wait for the route. */
  #startAll(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const { engine: { core: { report } }, server } = this.#parts;
    const { isClosing } = server.stats();
    for (const { route, part } of this.#routes.values()) {
      // The first request may arrive when the server has already stopped its parts.
      if (isClosing) part?.close();
      else part?.start()?.catch((error) => report(error, { subject: toName(route) }));
    }
  }

  readonly fetch: Fetch = async (request, info) => {
    const { engine: { core }, server, fetch } = this.#parts;
    const path = URL.parse(request.url)?.pathname ?? "";
    const routed = this.#routes.get(path);
    this.#startAll();
    if (!routed) return await fetch(request, info);
    const { route, part } = routed;
    const { page = false } = route;
    const isPublic = route.public === true;
    const refused = this.#check(request, info, { page, isPublic });
    if (refused) return refuseInText(core, refused, SOURCE);
    const upload = request.body && new Upload(request.body, isPublic ? undefined : core.limits.request.bodyBytes);
    const visit = toRouted({ request, info }, upload, isPublic);
    if (!visit) return refuseInText(core, BAD_METHOD, SOURCE);
    try {
      const starting = part?.start();
      const late = starting && await this.#findLate(starting, route);
      if (late) return refuseInText(core, late, SOURCE);
      const peer = this.#rates.toPeer(request, info);
      const given: unknown = await route.fetch(visit.request, { server, info: visit.info, ...peer }, part?.handle);
      if (given instanceof Response) {
        const response = page ? toPage(given) : given;
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

  /** Returns a refusal if the start takes too long, or if the server is closing. */
  async #findLate(starting: Promise<void>, route: Route): Promise<Refusal | undefined> {
    const { core } = this.#parts.engine;
    const { timeoutMs: ms } = core.limits.calls;
    const onTimeout = () => {
      const message = `Cannot serve the ${toName(route)}: start took longer than ${ms} ms (${LIMIT})`;
      core.report(withLimits(new Error(message), LIMIT));
      return TOO_SLOW;
    };
    try {
      return await deadline(starting.then(() => undefined), { ms, onTimeout, clock: core.ticker });
    } catch (error) {
      if (isCancelError(error)) return CLOSING;
      throw error;
    }
  }

  #check(
    request: Request,
    info: ConnectionInfo | undefined,
    { page, isPublic }: { readonly page: boolean | string; readonly isPublic: boolean },
  ): Refusal | undefined {
    const { access, engine: { core } } = this.#parts;
    const isOrigin = typeof page === "string";
    const refused = isPublic && !isOrigin ? undefined : findForeign(request, info, { page: page || true, access });
    if (refused || isPublic) return refused;
    return isWithin(request.headers.get("content-length"), core.limits.request.bodyBytes) ? undefined : TOO_LARGE;
  }
}

interface Routed {
  readonly route: Route;
  /** `undefined` if the route has no `start`. */
  readonly part: ServerPart | undefined;
}

function toPart(route: Route, engine: Engine): ServerPart | undefined {
  const { path, start } = route;
  return start && new ServerPart(engine, { name: toName(route), id: `route ${path}`, start: start.bind(route) });
}

function toName({ path }: Route): string {
  return `route ${quote(path)}`;
}

const SOURCE = { transport: "http" } as const;

const LIMIT = "calls.timeoutMs";

const TOO_SLOW: Refusal = withLimits({
  status: 503,
  message: `Cannot serve the request: the route has not started (${LIMIT}); try again later`,
  reason: "limit",
}, LIMIT);

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
  response?: Response;
  #failure?: { readonly error: Error; readonly refusal: Refusal };

  /** Reads lazily. Counts the bytes, because any header may be wrong. Without `max`, the body is not limited. */
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
  if (!upload && url === request.url && !isLight(request)) return visit;
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
  const { path, fetch, start, public: isPublic, page } = Object(route);
  if (!isPageOption(page)) return false;
  if (start !== undefined && typeof start !== "function") return false;
  if (isPublic !== undefined && typeof isPublic !== "boolean") return false;
  return typeof fetch === "function" && typeof path === "string" && URL.parse(path, "http://x")?.pathname === path &&
    !path.includes("/:");
}
