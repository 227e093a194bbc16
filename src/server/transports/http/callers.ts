/**
 * Identifies the callers of HTTP requests: checks Host, Origin and path, and authenticates callers.
 */
import type { Core } from "../../engine/core.ts";
import type { TransportName } from "../../call/observer.ts";
import {
  type AccessOptions,
  type CallerOptions,
  checkCaller,
  type ConnectionInfo,
  hasHost,
  isKnownHost,
  toChecked,
} from "./access.ts";
import { BoundedMap } from "../../../core/kit/bounded_map.ts";
import type { LazyModule } from "../../../core/protocol/lazy_module.ts";
import type { OpenPathParams } from "./authenticator.ts";
import type { HttpAuthenticator } from "./http_authenticator.ts";
import { Caller, type Place } from "./caller.ts";
import { readFront } from "./front_principal.ts";
import type { Visit } from "./request_copy.ts";
import { CLOSING, type Refusal, refuse, type Source, toFault, UNREADY } from "./refusals.ts";

/** An HTTP endpoint whose callers must be identified, such as the MCP endpoint or the WebSocket endpoint. */
export interface WayIn<P extends Place = Place> extends CallerOptions {
  readonly transport: TransportName;
  /** The endpoint's path, which can have parameters. */
  readonly path: string;
  /** Finds the concrete path of a request, if the path has parameters. */
  readonly find?: (request: Request, info: ConnectionInfo | undefined) => P | undefined | Promise<P | undefined>;
  /** Returns a function that reads the path parameters of an authentication route. */
  readonly open?: (request: Request, info: ConnectionInfo | undefined) => OpenPathParams;
  readonly refusePath: () => Response;
}

export interface CallersOptions extends AccessOptions {
  /** The authenticator, if the server has `auth`. */
  readonly authenticator?: LazyModule<HttpAuthenticator>;
}

export type Identified<P extends Place = Place> = Caller<P> | Response;

export class Callers {
  readonly #core: Core;
  readonly #options: CallersOptions;
  /** The Host headers of accepted requests that are allowed for every caller, so that they need no further checks. */
  // Bound: `MAX_HOSTS`.
  readonly #hosts = new BoundedMap<string, void>({ full: "evict", max: MAX_HOSTS });
  #isClosing = false;
  #hasReported = false;

  constructor(core: Core, options: CallersOptions) {
    this.#core = core;
    this.#options = options;
  }

  /** Rejects all further requests, and all requests that are being authenticated. */
  close(): void {
    this.#isClosing = true;
    this.#options.authenticator?.load().then((authenticator) => authenticator.close(), () => {});
  }

  /**
   * Identifies the caller of a request. Returns a response if the request is rejected, or if the request is for an
   * authentication route. Returns synchronously if all checks are synchronous.
   *
   * @throws {McpError} (as a rejection) if the parameters of too many paths are being checked.
   */
  identify<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    way: WayIn<P>,
  ): Identified<P> | Promise<Identified<P>> {
    const { authenticator } = this.#options;
    if (authenticator && !authenticator.loaded) return this.#identifyLater(request, info, way);
    if (way.find) return this.#identifyAt(request, info, way);
    if (!this.#isUsual(request, way)) {
      const refusal = checkCaller(request, info, this.#options, way);
      const refusesPath = !refusal && !isPath(request.url, way.path);
      const response = (refusal || refusesPath) && way.transport === "http" &&
        authenticator?.loaded?.respond(request, info);
      if (response) return response;
      if (refusal) return refuse(this.#core, refusal, way);
      if (refusesPath) return way.refusePath();
      const checked = this.#toChecked(request, info, way);
      return this.refuseIfUnavailable(way) ?? this.#authenticate(checked.request, checked.info, way);
    }
    return this.refuseIfUnavailable(way) ?? this.#authenticate(request, info, way);
  }

  /**
   * Returns the response to a request if the server is closing, or cannot become ready. Otherwise returns `undefined`.
   * Reports the error of a server that cannot become ready once.
   */
  refuseIfUnavailable(source: Source): Response | undefined {
    const refusal = this.#findUnavailable();
    return refusal && refuse(this.#core, refusal, source);
  }

  #findUnavailable(): Refusal | undefined {
    if (this.#isClosing) return CLOSING;
    const { unready } = this.#core;
    if (!unready) return;
    // Report the error once, because anyone can send requests.
    if (!this.#hasReported) this.#core.report(unready);
    this.#hasReported = true;
    return UNREADY;
  }

  async #identifyLater<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    way: WayIn<P>,
  ): Promise<Identified<P>> {
    try {
      // If the code of the authentication cannot be loaded, reject the request, because unauthenticated requests must
      // not be served.
      await this.#options.authenticator?.load();
    } catch (error) {
      return toFault(this.#core, error);
    }
    return await this.identify(request, info, way);
  }

  #identifyAt<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    way: WayIn<P>,
  ): Identified<P> | Promise<Identified<P>> {
    const isUsual = this.#isUsual(request, way);
    const refusal = (isUsual ? undefined : checkCaller(request, info, this.#options, way)) ?? this.#findUnavailable();
    if (refusal) return this.#respondAt(request, info, way, refusal);
    // A route with a fixed path takes precedence over a route with parameters.
    const fixed = way.open && this.#options.authenticator?.loaded?.respond(request, info);
    if (fixed) return fixed;
    const enter = (place: P | undefined) => {
      if (!place) return this.#respondAt(request, info, way);
      const checked = isUsual ? { request, info } : this.#toChecked(request, info, way);
      return this.#authenticate(checked.request, checked.info, way, place);
    };
    const place = way.find?.(request, info);
    return place instanceof Promise ? place.then(enter) : enter(place);
  }

  /** Refuses a request that is not for a route of the authentication. */
  async #respondAt<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    way: WayIn<P>,
    refusal?: Refusal,
  ): Promise<Response> {
    const authenticator = this.#options.authenticator?.loaded;
    const response = way.open && await authenticator?.respondAt(request, info, way.open(request, info));
    return response ?? (refusal ? refuse(this.#core, refusal, way) : way.refusePath());
  }

  #authenticate<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    { transport }: WayIn<P>,
    place?: P,
  ): Identified<P> | Promise<Identified<P>> {
    const authenticator = this.#options.authenticator?.loaded;
    if (authenticator) {
      // Do not authenticate the caller of an OPTIONS request, because the endpoint rejects such a request anyway.
      if (transport === "http" && request.method === "OPTIONS") return new Caller(request, info, { place });
      return authenticator.authenticate(request, info, { transport, place });
    }
    const isInFront = typeof info === "object" && info && "principal" in info;
    if (!isInFront) return place ? new Caller(request, info, { place }) : new Caller(request, info);
    const principal = readFront(this.#core, { info, transport });
    return principal instanceof Response ? principal : new Caller(request, info, { principal, place });
  }

  // Use has() first, because Deno then reads all headers at once, which makes later access faster.
  #isUsual({ headers, url }: Request, { transport, find, path }: WayIn): boolean {
    if (headers.has("origin") || transport !== "http") return false;
    const host = headers.get("Host");
    return host !== null && this.#hosts.has(host) && (find ? hasHost(url, host) : isTarget(url, host, path));
  }

  /** Returns a request that has passed the checks, with its checked URL, and remembers its host. */
  #toChecked(
    request: Request,
    info: ConnectionInfo | undefined,
    { transport }: WayIn,
  ): Visit<ConnectionInfo | undefined> {
    const host = request.headers.get("host");
    if (transport === "http" && host !== null && isKnownHost(host, this.#options)) this.#hosts.set(host, undefined);
    return toChecked({ request, info });
  }
}

const MAX_HOSTS = 10_000;

// Tests whether a URL has this host and path, optionally followed by a query. Compares the texts, because parsing is
// slower. Compares the host too, because the host in the URL can differ from the Host header.
function isTarget(url: string, host: string, path: string): boolean {
  const at = url.indexOf("//") + 2;
  const after = at + host.length + path.length;
  return url.startsWith(host, at) && url.startsWith(path, at + host.length) &&
    (after === url.length || url[after] === "?");
}

function isPath(url: string, path: string): boolean {
  return URL.canParse(url) && new URL(url).pathname === path;
}
