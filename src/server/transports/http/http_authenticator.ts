/**
 * Authenticates the callers of HTTP requests, and hides their credentials from handlers, middleware and observers.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { deadline, delay } from "../../../core/kit/deadline.ts";
import { isToken } from "../../../core/kit/http_token.ts";
import { toNative } from "../../../core/light_request.ts";
import { quote, REACHED, withLimits } from "../../../core/protocol/errors.ts";
import { isPromiseLike } from "../../../core/protocol/promises.ts";
import { toOrdinary, type Visit } from "./request_copy.ts";
import {
  type Authentication,
  type AuthRefusal,
  type AuthRequestInfo,
  type AuthRoute,
  CHALLENGE,
  type Challenge,
  type Credentials,
  type Delay,
  EXPIRED,
  isChallenge,
  isRefusal,
  NO_PATH_PARAMS,
  type PathInfo,
  readChallenges,
  refuseRequest,
  toChallengeHeaders,
} from "../../engine/auth.ts";
import { isCancelError } from "../../call/cancel_error.ts";
import type { CallerChecks } from "../../call/caller_watch.ts";
import type { Principal, ReadPathParams } from "../../call/context.ts";
import type { Core } from "../../engine/core.ts";
import { ServerPart } from "../../engine/server_part.ts";
import { RETRY_AFTER, type SeenRequest } from "../../call/link.ts";
import type { TransportName } from "../../call/observer.ts";
import { readPrincipal } from "../../call/principal.ts";
import { type AccessOptions, type ConnectionInfo, readPeer } from "./access.ts";
import type { AuthenticatorParts, EnterOptions, OpenPathParams } from "./authenticator.ts";
import { AuthenticationLimits, CLOSED, toAuthPot, toDelayPot, TOO_SLOW } from "./authentication_limits.ts";
import { Caller, type Place } from "./caller.ts";
import { FRONT } from "./front_principal.ts";
import { PathTemplate } from "./path_template.ts";
import { refuse, refuseInText, toFault, toMessage } from "./refusals.ts";
import { findForeign, isPageOption, RouteRates, toPage } from "./route_facts.ts";
import { toRequestPath } from "./address.ts";

export class HttpAuthenticator {
  readonly #auth: Authentication;
  readonly #part: ServerPart;
  readonly #core: Core;
  readonly #hidden: Hidden;
  readonly #limits: AuthenticationLimits;
  /** Counts rejected requests whose authentication is still in progress. */
  readonly #refused: AuthenticationLimits;
  readonly #parts: EntryParts;
  /** Counts requests that wait for a check that another request has started, together with `#delayed`. */
  readonly #sharing: AuthenticationLimits;
  readonly #access: readonly AccessOptions[];
  readonly #rates: RouteRates;
  /** Routes without parameters, by path. */
  readonly #routes = new Map<string, AuthRoute>();
  readonly #templates: { readonly route: AuthRoute; readonly template: PathTemplate }[] = [];

  /** Throws a `TypeError` if a member of `auth` is invalid. */
  constructor(auth: Authentication, { engine, path, proxies, access }: AuthenticatorParts) {
    const { core, accounts } = engine;
    const routes = typeof auth.routes === "function" ? auth.routes(path) : auth.routes ?? [];
    const problem = findProblem(auth) ?? findRouteProblem(routes, path);
    if (problem !== undefined) throw new TypeError(`Cannot use the authentication: ${problem}`);
    const { start } = auth;
    this.#auth = auth;
    this.#part = new ServerPart(engine, {
      name: "the authentication",
      id: "auth",
      marksIds: true,
      start: start?.bind(auth),
    });
    this.#core = core;
    this.#hidden = toHidden(auth.credentials);
    this.#limits = new AuthenticationLimits(core, accounts, toAuthPot(core, "auth.running"));
    this.#refused = new AuthenticationLimits(core, accounts, toAuthPot(core, "auth.refused"));
    const delayed = new AuthenticationLimits(core, accounts, toDelayPot(core));
    this.#parts = { core, proxies, limits: this.#limits, delayed };
    this.#access = [access];
    this.#rates = new RouteRates(core, proxies);
    this.#sharing = new AuthenticationLimits(core, accounts, { ...toDelayPot(core), timeoutMs: undefined });
    for (const route of routes) {
      if (hasParams(route.path)) this.#templates.push({ route, template: new PathTemplate(route.path) });
      else this.#routes.set(route.path, route);
    }
  }

  /**
   * Returns the response of an authentication route without path parameters. Returns `undefined` if the request is not
   * for such a route. The host in the request's URL is not checked before this call.
   */
  respond(request: Request, connection: ConnectionInfo | undefined): Promise<Response> | undefined {
    const route = this.#routes.get(toRequestPath(request.url));
    return route && this.#serve(route, { request, info: connection }, NO_PATH_PARAMS);
  }

  /** Like `respond`, but also for routes with path parameters, which `open` reads. */
  async respondAt(
    request: Request,
    connection: ConnectionInfo | undefined,
    open: OpenPathParams,
  ): Promise<Response | undefined> {
    const fixed = this.respond(request, connection);
    if (fixed) return await fixed;
    const path = toRequestPath(request.url);
    if (path.length > MAX_PATH) return;
    for (const { route, template } of this.#templates) {
      const values = template.match(path);
      const read = values && await open(values);
      if (read) return await this.#serve(route, { request, info: connection }, { pathParams: read });
    }
  }

  async #serve(
    route: AuthRoute,
    { request, info: connection }: Visit<ConnectionInfo | undefined>,
    place: PathInfo,
  ): Promise<Response> {
    try {
      const { page = false } = route;
      const foreign = page ? findForeign(request, connection, { page, access: this.#access }) : undefined;
      if (foreign) return refuseInText(this.#core, foreign, { transport: "http" });
      const starting = this.#part.start();
      const refused = starting && await this.#untilStarted(starting, request, connection, { transport: "http" });
      if (refused) return refused;
      const info = { ...place, ...this.#rates.toPeer(request, connection) };
      const ordinary = toOrdinary({ request, info });
      const response: unknown = await route.fetch(ordinary.request, info, this.#part.handle);
      if (response instanceof Response) return page ? toPage(response) : response;
      throw new TypeError(
        `Cannot serve the route ${quote(route.path)}: its fetch() did not return a Response; return a Response`,
      );
    } catch (error) {
      return toFault(this.#core, error);
    }
  }

  /** Returns whether a request has credentials in a header, cookie or query parameter that the authentication reads. */
  hasCredentials({ headers: given, url }: Request): boolean {
    const { headers, cookies, query } = this.#hidden;
    return [...headers].some((name) => given.has(name)) ||
      cookies.length > 0 &&
        (given.get("cookie") ?? "").split(";").some((each) => cookies.includes(toCookieName(each))) ||
      query.length > 0 && query.some((name) => new URL(url).searchParams.has(name));
  }

  /** Starts the authentication. Rejects if it cannot be started. */
  ready(): Promise<void> | undefined {
    return this.#part.start();
  }

  /** Rejects all requests that are being authenticated, because the server is closing. */
  close(): void {
    this.#part.close();
    this.#limits.close();
    this.#refused.close();
    this.#parts.delayed.close();
    this.#sharing.close();
  }

  /** Stops the authentication. Waits a limited time. */
  async stop(): Promise<void> {
    await this.#part.stop();
  }

  /** Authenticates the caller of a request. Returns a response if the request is rejected. */
  authenticate<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    options: EnterOptions<P>,
  ): Caller<P> | Response | Promise<Caller<P> | Response> {
    const starting = this.#part.start();
    if (starting) return this.#authenticateAfter(starting, request, info, options);
    const entry = new Entry({ request, info }, options, this.#parts);
    try {
      const given = info?.principal;
      if (given !== undefined) return this.#judge(entry, given, FRONT);
      // Start the authentication even if there is no room for another waiting request, because a synchronous
      // authentication does not wait. Do not start the authentication if too many rejected requests are still being
      // authenticated.
      if (this.#limits.isFull(entry) && this.#refused.isFull(entry)) return this.#refuse(entry, TOO_MANY);
      const found: unknown = this.#auth.authenticate(toNative(request), entry, this.#part.handle);
      if (!isPromiseLike(found)) return this.#judge(entry, found);
      if (entry.delayed) return this.#enterLater(entry, found);
      return this.#enter(entry, found);
    } catch (error) {
      return toFault(this.#core, error);
    }
  }

  async #authenticateAfter<P extends Place>(
    starting: Promise<void>,
    request: Request,
    info: ConnectionInfo | undefined,
    options: EnterOptions<P>,
  ): Promise<Caller<P> | Response> {
    return await this.#untilStarted(starting, request, info, options) ??
      await this.authenticate(request, info, options);
  }

  /** Waits for the start as for an authentication. Returns a response if the request is rejected. */
  async #untilStarted<P extends Place>(
    starting: Promise<void>,
    request: Request,
    info: ConnectionInfo | undefined,
    options: EnterOptions<P>,
  ): Promise<Response | undefined> {
    const entry = new Entry({ request, info }, options, this.#parts);
    if (this.#limits.isFull(entry)) return this.#refuse(entry, TOO_MANY);
    try {
      await this.#limits.wait(starting, entry);
    } catch (error) {
      return this.#toFailure(entry, error);
    }
  }

  /** Waits until a request is no longer delayed. After its delay, a request may be delayed again for another reason. */
  async #enterLater<P extends Place>(entry: Entry<P>, found: PromiseLike<unknown>): Promise<Caller<P> | Response> {
    for (let ended; ended !== entry.delayed;) await (ended = entry.delayed);
    return await this.#enter(entry, found);
  }

  /** Waits for an authentication, or rejects the request if too many authentications are in progress. */
  #enter<P extends Place>(entry: Entry<P>, found: PromiseLike<unknown>): Response | Promise<Caller<P> | Response> {
    if (entry.isSharing && !this.#sharing.isFull(entry)) return this.#wait(entry, found, this.#sharing);
    return this.#limits.isFull(entry) ? this.#refuseWaiting(entry, found) : this.#wait(entry, found);
  }

  /** Until the authentication ends, `#refused` counts the request. */
  #refuseWaiting(entry: Entry, found: PromiseLike<unknown>): Response {
    this.#refused.wait(Promise.resolve(found), entry).catch(() => {});
    entry.abort(new Error("Cannot authenticate a caller: too many callers are being authenticated"));
    return this.#refuse(entry, TOO_MANY);
  }

  async #wait<P extends Place>(
    entry: Entry<P>,
    found: unknown,
    limits: AuthenticationLimits = this.#limits,
  ): Promise<Caller<P> | Response> {
    try {
      return this.#judge(entry, await limits.wait(Promise.resolve(found), entry));
    } catch (error) {
      return this.#toFailure(entry, error);
    }
  }

  #toFailure(entry: Entry, error: unknown): Response {
    if (error === CLOSED || isCancelError(error)) {
      entry.abort(error);
      return this.#refuse(entry, CLOSING);
    }
    if (error !== TOO_SLOW) return toFault(this.#core, error);
    const limit = "auth.timeoutMs";
    const reason = `authentication took longer than ${this.#core.limits.auth.timeoutMs} ms (${limit})`;
    entry.abort(error);
    this.#core.report(withLimits(new Error(`Cannot authenticate a caller: ${reason}`), limit));
    return this.#refuse(entry, withLimits(refuseRequest(503, { reason: `${reason}; try again later` }), limit));
  }

  /** Converts the result of an authentication. Throws if the result is neither a principal nor a refusal. */
  #judge<P extends Place>(entry: Entry<P>, found: unknown, origin = "authenticate()"): Caller<P> | Response {
    if (found === undefined || found === null) return this.#refuse(entry, NO_CALLER);
    if (isRefusal(found)) return this.#refuse(entry, found);
    const principal = readPrincipal(found, origin);
    if ((principal.expiresAt ?? Infinity) <= entry.now) return this.#refuse(entry, LATE);
    const { request, info, transport, place } = entry;
    this.#core.observer.auth?.({ state: "accepted", transport, principal: principal.id });
    // The server cannot recheck a principal that your own code passed to `fetch`.
    const toChecks = origin === FRONT ? undefined : (principal: Principal) => this.#toChecks(entry, principal);
    const seen = new VisibleRequest(request, this.#hidden, toChecks);
    return new Caller(request, info, { principal, seen, place });
  }

  /** The returned functions keep a copy of the request, because a runtime may free the original request. */
  #toChecks(entry: Entry, principal: Principal): CallerChecks {
    const renew = this.#auth.renew ? (principal: Principal) => this.#renew(principal) : undefined;
    if (principal.expiresAt !== undefined && !this.#auth.rechecks?.(principal)) return { renew };
    const { request: { url, method, headers }, transport, pathParams, peer } = entry;
    const copy = new Request(url, { method, headers: new Headers(headers) });
    return { renew, recheck: () => this.#check(copy, { transport, pathParams, peer }, principal) };
  }

  async #renew(principal: Principal): Promise<Principal | false | undefined> {
    const { ticker: { clock }, report } = this.#core;
    try {
      const found: unknown = await this.#auth.renew?.(principal, this.#part.handle);
      if (found === undefined || found === null) return false;
      const renewed = readPrincipal(found, "renew()");
      const { id, scopes, expiresAt = Infinity } = renewed;
      return isSame({ id, scopes }, principal) && expiresAt > clock.date() && renewed;
    } catch (error) {
      report(error);
      return undefined;
    }
  }

  async #check(
    request: Request,
    known: Pick<AuthRequestInfo, "transport" | "pathParams" | "peer">,
    principal: Principal,
  ): Promise<boolean | undefined> {
    const { ticker, limits: { auth: { timeoutMs } }, report } = this.#core;
    const controller = new AbortController();
    const onTimeout = () => {
      controller.abort(TOO_SLOW);
      return CLOSING;
    };
    try {
      const now = ticker.clock.date();
      const info: AuthRequestInfo = { ...known, now, signal: controller.signal, isRecheck: true };
      const limit = { ms: timeoutMs, onTimeout, clock: ticker };
      const found: unknown = await deadline(this.#auth.authenticate(request, info, this.#part.handle), limit);
      if (isRefusal(found)) return found.status === 503 || found.status === 429 ? undefined : false;
      if (found === undefined || found === null) return false;
      const { id, scopes, expiresAt = Infinity } = readPrincipal(found, "authenticate()");
      return isSame({ id, scopes }, principal) && expiresAt > now;
    } catch (error) {
      report(error);
      return undefined;
    }
  }

  #refuse(entry: Entry, refusal: AuthRefusal): Response {
    const { transport } = entry;
    const { status, detail, reason = status === 401 ? "valid credentials are required" : "the caller is not allowed" } =
      refusal;
    const refusedFor = detail === undefined ? { reason } : { reason, detail };
    this.#core.observer.auth?.({ state: "refused", transport, status, ...refusedFor });
    if (refusal.cause !== undefined) this.#core.report(refusal.cause);
    let challenges;
    try {
      challenges = refusal.challenges ?? (status === 401 ? this.#toChallenges(entry, refusal) : []);
    } catch (error) {
      return toFault(this.#core, error);
    }
    const headers = !challenges.length && (status === 429 || status === 503)
      ? refusal.retryAfterMs === undefined
        ? RETRY_AFTER
        : { "retry-after": `${Math.ceil(refusal.retryAfterMs / 1000)}` }
      : toChallengeHeaders(challenges);
    // The code contains the HTTP status, and is outside of the range that the specification reserves.
    const code = -31_000 - status;
    const refused = { status, message: toMessage(reason), headers, reason: "authentication", code } as const;
    return refuse(this.#core, withLimits(refused, refusal[REACHED]), { transport });
  }

  #toChallenges(entry: Entry, refusal: AuthRefusal): readonly Challenge[] {
    const challenges = readChallenges(this.#auth, entry);
    if (refusal !== LATE) return challenges;
    return challenges.map(({ scheme, params }) => ({ scheme, params: { ...params, error: "invalid_token" } }));
  }
}

/** Maximum length in characters of a path that is compared with the routes with parameters. */
const MAX_PATH = 2048;
const NO_CALLER = refuseRequest(401);
const LATE = refuseRequest(401, { reason: EXPIRED });
const CLOSING = refuseRequest(503, { reason: "the server is closing; try again later" });
const TOO_MANY = withLimits(
  refuseRequest(503, {
    reason: `too many callers are being authenticated (auth.running, auth.runningPerPeer); try again later`,
  }),
  "auth.running, auth.runningPerPeer",
);

/** The parts of the authenticator that each request needs. */
interface EntryParts extends Pick<AuthenticatorParts, "proxies"> {
  readonly core: Core;
  readonly limits: AuthenticationLimits;
  /** Counts requests that wait before their authentication, because their callers have failed too often. */
  readonly delayed: AuthenticationLimits;
}

/** `authenticate` receives this object as its `AuthRequestInfo`. Each fact is computed when it is read. */
class Entry<P extends Place = Place> implements AuthRequestInfo {
  readonly transport: TransportName;
  readonly pathParams: ReadPathParams;
  readonly place?: P;
  readonly #request: Request;
  readonly #info: ConnectionInfo | undefined;
  readonly #parts: EntryParts;
  #controller?: AbortController;
  /** Settles when the latest delay of the request has ended. `undefined` if the request was not delayed. Never rejects. */
  delayed?: Promise<boolean>;
  /** Whether the request waits for a check that another request has started. */
  isSharing = false;

  constructor(
    { request, info }: Visit<ConnectionInfo | undefined>,
    { transport, place }: EnterOptions<P>,
    parts: EntryParts,
  ) {
    this.transport = transport;
    this.pathParams = place?.pathParams ?? NO_PATH_PARAMS.pathParams;
    this.place = place;
    this.#request = request;
    this.#info = info;
    this.#parts = parts;
  }

  delay(turn: Promise<number>, { limit }: Delay): Promise<boolean> | undefined {
    const { core: { observing, ticker }, delayed } = this.#parts;
    observing?.reach(limit, `peer ${this.peer}`);
    if (delayed.isFull(this)) return;
    const ready = turn.then((ms) => ms ? delay(ms, { clock: ticker }) : undefined);
    return this.delayed = delayed.wait(ready, this).then(() => true, () => false);
  }

  share(): void {
    this.isSharing = true;
  }

  refuseIfFull(): AuthRefusal | undefined {
    return this.#parts.limits.isFull(this) ? TOO_MANY : undefined;
  }

  get request(): Request {
    return this.#request;
  }

  get info(): ConnectionInfo | undefined {
    return this.#info;
  }

  get peer(): string | undefined {
    return readPeer(this.#request, this.#info, this.#parts.proxies);
  }

  get now(): number {
    return this.#parts.core.ticker.clock.date();
  }

  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  abort(reason: unknown): void {
    this.#controller?.abort(reason);
  }
}

function findProblem({ challenge, credentials = {} }: Authentication): string | undefined {
  const { headers = [], cookies = [], query = [] } = credentials;
  const isFixed = challenge !== undefined && typeof challenge !== "function";
  if (isFixed && ![challenge].flat().every(isChallenge)) return CHALLENGE;
  const isNames = [headers, cookies, query].every((names) => Array.isArray(names) && names.every(isToken));
  if (!isNames) {
    return 'credentials is not an object with lists of header, cookie or query parameter names; write { headers: ["x-user"] }';
  }
}

function findRouteProblem(routes: readonly AuthRoute[], serverPath: string): string | undefined {
  if (!Array.isArray(routes)) return "routes must be a list; write it in brackets";
  const wanted = new PathTemplate(serverPath).names.toSorted().join(", ");
  for (const [at, { path, fetch, page }] of routes.entries()) {
    if (typeof fetch !== "function") return `route ${quote(path)} has no fetch()`;
    if (!isPageOption(page)) {
      return `page of route ${quote(path)} is not true or an origin; write "https://example.com"`;
    }
    // Throw for a path that a URL parser changes, because the path would never match a request.
    const { pathname } = new URL(path, "http://x");
    if (pathname !== path) return `route ${quote(path)} is not a normalized path; write ${quote(pathname)}`;
    if (routes.findIndex((route) => route.path === path) < at) return `route ${quote(path)} is listed twice`;
    if (hasParams(path) && new PathTemplate(path).names.toSorted().join(", ") !== wanted) {
      const rule = wanted
        ? `must have the parameters ${wanted} like`
        : "cannot have parameters, because there are none in";
      return `route ${quote(path)} ${rule} the server's path`;
    }
  }
}

function hasParams(path: string): boolean {
  return path.includes("/:");
}

/**
 * Names of the headers, cookies and query parameters that contain credentials. The names of headers are in lower case.
 */
interface Hidden {
  readonly headers: ReadonlySet<string>;
  readonly cookies: readonly string[];
  readonly query: readonly string[];
}

function toHidden({ headers = [], cookies = [], query = [] }: Credentials = {}): Hidden {
  return { headers: new Set(["authorization", ...headers.map((name) => name.toLowerCase())]), cookies, query };
}

/** Tests whether two principals are the same caller with the same scopes. */
function isSame(one: Pick<Principal, "id" | "scopes">, other: Principal): boolean {
  // Compare JSON, because a scope may contain a comma.
  return one.id === other.id && JSON.stringify(one.scopes) === JSON.stringify(other.scopes);
}

/** A request without its credentials. The copy without credentials is created only when a handler reads it. */
class VisibleRequest implements SeenRequest {
  // The fields are private, so that a printed context shows no credentials.
  readonly #raw: Request;
  readonly #hidden: Hidden;
  readonly #toChecks?: (principal: Principal) => CallerChecks;
  #request?: Request;

  constructor(raw: Request, hidden: Hidden, toChecks?: (principal: Principal) => CallerChecks) {
    this.#raw = raw;
    this.#hidden = hidden;
    this.#toChecks = toChecks;
  }

  toChecks(principal: Principal | undefined): CallerChecks | undefined {
    return principal && this.#toChecks?.(principal);
  }

  get request(): Request {
    return this.#request ??= toVisible(this.#raw, this.#hidden);
  }

  get headers(): SeenRequest["headers"] {
    return this;
  }

  get(name: string): string | null {
    return this.#hidden.headers.has(name.toLowerCase()) ? null : this.#raw.headers.get(name);
  }
}

function toVisible({ url, method, headers: all }: Request, hidden: Hidden): Request {
  const headers = new Headers(all);
  for (const name of hidden.headers) headers.delete(name);
  const cookies = headers.get("cookie");
  if (cookies !== null && hidden.cookies.length) {
    const rest = cookies.split(";").filter((cookie) => !hidden.cookies.includes(toCookieName(cookie)));
    if (rest.length) headers.set("cookie", rest.join(";").trim());
    else headers.delete("cookie");
  }
  const visible = new URL(url);
  for (const name of hidden.query) visible.searchParams.delete(name);
  return new Request(hidden.query.length ? visible : url, { method, headers });
}

function toCookieName(cookie: string): string {
  return cookie.split("=", 1)[0].trim();
}
