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
  isKnownHost,
  toChecked,
} from "./access.ts";
import type { LazyModule } from "../../../core/protocol/lazy_module.ts";
import type { Authenticator, OpenPathParams } from "./authenticator.ts";
import { Caller, type Place } from "./caller.ts";
import { readFront } from "./front_principal.ts";
import { CLOSING, type Refusal, refuse, type Source, toFault, toMessage, UNREADY } from "./refusals.ts";

/** An HTTP endpoint whose callers must be identified, such as the MCP endpoint or the WebSocket endpoint. */
export interface WayIn<P extends Place = Place> extends CallerOptions {
  readonly transport: TransportName;
  /** The endpoint's path, which can have parameters. */
  readonly path: string;
  /** Finds the concrete path of a request, if the path has parameters. */
  readonly find?: (request: Request, info: ConnectionInfo | undefined) => Promise<P | undefined>;
  /** Returns a function that reads the path parameters of an authentication route. */
  readonly open?: (request: Request, info: ConnectionInfo | undefined) => OpenPathParams;
  /** Creates the response to requests for other paths. */
  readonly refusePath: () => Response;
}

export interface CallersOptions extends AccessOptions {
  /** The authenticator, if the server has `auth`. */
  readonly authenticator?: LazyModule<Authenticator>;
}

/** A caller, or the response to a rejected request. */
export type Identified<P extends Place = Place> = Caller<P> | Response;

/** Identifies the callers of all HTTP endpoints of a server. */
export class Callers {
  readonly #core: Core;
  readonly #options: CallersOptions;
  // Host of the latest accepted request. A request with the same host and URL needs no further checks of its host.
  // Stored only if the host is allowed for every caller.
  #lastHost = "";
  #lastTarget = "";
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
      const refusal = this.#check(request, info, way);
      const refusesPath = !refusal && !isPath(request.url, way.path);
      const response = (refusal || refusesPath) && way.transport === "http" && authenticator?.loaded?.respond(request);
      if (response) return response;
      if (refusal) return refuse(this.#core, refusal, way);
      if (refusesPath) return way.refusePath();
      this.#remember(request, way);
      const checked = toChecked({ request, info });
      return this.refuseIfClosing(way) ?? this.#authenticate(checked.request, checked.info, way);
    }
    return this.refuseIfClosing(way) ?? this.#authenticate(request, info, way);
  }

  /** Returns the response to a request if the server is closing, or not ready. Otherwise returns `undefined`. */
  refuseIfClosing(source: Source): Response | undefined {
    const refusal = this.#findRefusal();
    return refusal && refuse(this.#core, refusal, source);
  }

  #findRefusal(): Refusal | undefined {
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

  async #identifyAt<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    way: WayIn<P>,
  ): Promise<Identified<P>> {
    const authenticator = way.open && this.#options.authenticator?.loaded;
    const respond = async () => way.open && await authenticator?.respondAt(request, way.open(request, info));
    const refusal = this.#check(request, info, way) ?? this.#findRefusal();
    if (refusal) return await respond() ?? refuse(this.#core, refusal, way);
    // A route with a fixed path takes precedence over a route with parameters.
    const fixed = authenticator?.respond(request);
    if (fixed) return await fixed;
    const place = await way.find?.(request, info);
    if (!place) return await respond() ?? way.refusePath();
    const checked = toChecked({ request, info });
    return await this.#authenticate(checked.request, checked.info, way, place);
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
  #isUsual({ headers, url }: Request, { transport }: WayIn): boolean {
    return !headers.has("origin") && headers.get("Host") === this.#lastHost && isTarget(url, this.#lastTarget) &&
      transport === "http";
  }

  #remember({ headers }: Request, { transport, path }: WayIn): void {
    const host = headers.get("host");
    if (transport !== "http" || host === null || !isKnownHost(host, this.#options)) return;
    this.#lastHost = host;
    this.#lastTarget = host + path;
  }

  #check(request: Request, info: ConnectionInfo | undefined, way: WayIn): Refusal | undefined {
    const refusal = checkCaller(request, info, this.#options, way);
    return refusal && { ...refusal, message: toMessage(refusal.state) };
  }
}

// Tests whether a URL has the host and path in `target`, optionally followed by a query. Compares the texts, because
// parsing is slower. Compares the host too, because the host in the URL can differ from the Host header.
function isTarget(url: string, target: string): boolean {
  const at = url.indexOf("//") + 2;
  const after = at + target.length;
  return url.startsWith(target, at) && target !== "" && (after === url.length || url[after] === "?");
}

function isPath(url: string, path: string): boolean {
  return URL.canParse(url) && new URL(url).pathname === path;
}
