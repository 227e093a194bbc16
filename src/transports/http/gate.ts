/**
 * Authenticates the callers of HTTP requests, and hides their credentials from everything behind.
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import { isPromiseLike } from "../../protocol/promise_like.ts";
import {
  type Authentication,
  type AuthFacts,
  type AuthRefusal,
  type AuthRoute,
  BEARER,
  CHALLENGE,
  type Credentials,
  isChallenge,
  isRefusal,
  isToken,
  refuse,
  toChallengeHeaders,
} from "../../core/auth.ts";
import type { Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import { RETRY_AFTER, type SeenRequest } from "../../core/link.ts";
import type { TransportName } from "../../core/observer.ts";
import { type ConnectionInfo, readPeer, readPrincipal } from "./access.ts";
import type { Admitted, Gate } from "./entrance.ts";
import { toFault, toRefusal } from "./exchange.ts";
import { readPath } from "./request_path.ts";

/** Authenticates callers. */
export class HttpGate implements Gate {
  readonly #auth: Authentication;
  readonly #core: Core;
  readonly #proxies: readonly string[];
  readonly #hidden: Hidden;
  /** Number of authentications in progress, in all and by peer. */
  #running = 0;
  readonly #runningOf = new Map<string, number>();

  /** Creates the gate of a server. Throws if the authentication has parts that it cannot use. */
  constructor(auth: Authentication, core: Core, proxies: readonly string[]) {
    const problem = findProblem(auth);
    if (problem !== undefined) throw new TypeError(`Cannot serve with this authentication: ${problem}`);
    this.#auth = auth;
    this.#core = core;
    this.#proxies = proxies;
    this.#hidden = toHidden(auth.credentials);
  }

  respond(request: Request): Promise<Response> | undefined {
    const path = readPath(request.url);
    const route = this.#auth.routes?.find((route) => route.path === path);
    return route && this.#serve(route, request);
  }

  async #serve(route: AuthRoute, request: Request): Promise<Response> {
    try {
      return await route.fetch(request);
    } catch (error) {
      return toFault(this.#core, error);
    }
  }

  findAdmitted(info: ConnectionInfo | undefined): Admitted | undefined {
    return info instanceof AdmittedInfo ? info : undefined;
  }

  // Fast path: no promise and no closure, if the authentication is synchronous.
  admit(
    request: Request,
    info: ConnectionInfo | undefined,
    fetch: (request: Request, admitted: Admitted) => Promise<Response>,
  ): Promise<Response> {
    const entered = this.enter(request, info, "http");
    if (entered instanceof AdmittedInfo) return fetch(request, entered);
    if (entered instanceof Response) return Promise.resolve(entered);
    return Promise.resolve(entered).then((entered) => entered instanceof Response ? entered : fetch(request, entered));
  }

  enter(
    request: Request,
    info: ConnectionInfo | undefined,
    transport: TransportName,
  ): Admitted | Response | Promise<Admitted | Response> {
    const entry = new Entry(request, info, { transport, core: this.#core, proxies: this.#proxies });
    if (info?.principal !== undefined) return this.#judge(entry, readPrincipal(info));
    if (this.#running && this.#isFull(entry)) return this.#refuse(entry, TOO_MANY);
    let found: unknown;
    try {
      found = this.#auth.authenticate(request, entry);
    } catch (error) {
      return toFault(this.#core, error);
    }
    return isPromiseLike(found) ? this.#wait(entry, found) : this.#judge(entry, found);
  }

  #isFull({ peer }: Entry): boolean {
    const { observing, limits: { auth: { running, runningPerPeer } } } = this.#core;
    const isAll = this.#running >= running;
    if (!isAll && (peer === undefined || (this.#runningOf.get(peer) ?? 0) < runningPerPeer)) return false;
    observing?.reach(isAll ? "auth.running" : "auth.runningPerPeer", isAll ? undefined : `peer ${peer}`);
    return true;
  }

  // An authentication that never settles is given up, so that it holds its place for a limited time.
  async #wait(entry: Entry, found: unknown): Promise<Admitted | Response> {
    const { ticker, limits: { auth: { timeoutMs } } } = this.#core;
    const { peer } = entry;
    this.#count(peer, 1);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timeout = ticker.startTimeout(timeoutMs, () => reject(TOO_SLOW));
    try {
      return this.#judge(entry, await Promise.race([found, late]));
    } catch (error) {
      if (error !== TOO_SLOW) return toFault(this.#core, error);
      const reason = `authentication took longer than ${timeoutMs} ms (auth.timeoutMs)`;
      entry.abort();
      this.#core.report(new Error(`Cannot authenticate a caller: ${reason}`));
      return this.#refuse(entry, refuse(503, { reason }));
    } finally {
      ticker.cancel(timeout);
      this.#count(peer, -1);
    }
  }

  #count(peer: string | undefined, change: number): void {
    this.#running += change;
    if (peer === undefined) return;
    const count = (this.#runningOf.get(peer) ?? 0) + change;
    if (count) this.#runningOf.set(peer, count);
    else this.#runningOf.delete(peer);
  }

  #judge(entry: Entry, found: unknown): Admitted | Response {
    if (found === undefined || found === null) return this.#refuse(entry, NO_CALLER);
    if (isRefusal(found)) return this.#refuse(entry, found);
    if (!isPrincipal(found)) {
      const state = "authenticate() returned neither a principal with an id nor refuse()";
      return toFault(this.#core, new TypeError(`Cannot authenticate a caller: ${state}`));
    }
    if (found.expiresAt !== undefined && found.expiresAt <= entry.now) return this.#refuse(entry, this.#toExpired());
    const { request, info, transport } = entry;
    this.#core.observer.auth?.({ state: "accepted", transport, principal: found.id });
    return new AdmittedInfo(info?.info ?? info, found, new VisibleRequest(request, this.#hidden));
  }

  #toExpired(): AuthRefusal {
    const { scheme, params } = this.#auth.challenge ?? BEARER;
    const challenge = { scheme, params: { ...params, error: "invalid_token" } };
    return refuse(401, { challenge, reason: "the credentials have expired" });
  }

  #refuse({ transport, request }: Entry, refusal: AuthRefusal): Response {
    const { status, reason = status === 401 ? "it needs valid credentials" : "the caller is not allowed" } = refusal;
    this.#core.observer.auth?.({ state: "refused", transport, status, reason });
    if (refusal.cause !== undefined) this.#core.report(refusal.cause);
    const { challenges = status === 401 ? [this.#auth.challenge ?? BEARER] : [] } = refusal;
    const headers = !challenges.length && (status === 429 || status === 503)
      ? RETRY_AFTER
      : toChallengeHeaders(challenges);
    // The codes are those of the statuses, outside the range that the specification reserves.
    const code = -31_000 - status;
    const message = `Cannot serve the request: ${reason}`;
    this.#core.observing?.refuse({ transport, http: request }, { status, message, code, reason: "authentication" });
    return toRefusal({ status, message, headers }, code);
  }
}

class AdmittedInfo implements Admitted {
  readonly info: ConnectionInfo | undefined;
  readonly principal: Principal;
  readonly seen: SeenRequest;

  constructor(info: ConnectionInfo | undefined, principal: Principal, seen: SeenRequest) {
    this.info = info;
    this.principal = principal;
    this.seen = seen;
  }
}

const NO_CALLER = refuse(401);
const TOO_MANY = refuse(503, {
  reason: "too many callers are being authenticated (auth.running, auth.runningPerPeer)",
});
const TOO_SLOW = new Error("Cannot authenticate a caller: it took too long");

interface EntryParts {
  readonly transport: TransportName;
  readonly core: Core;
  /** Addresses of trusted proxies. */
  readonly proxies: readonly string[];
}

/** A request at the gate. It is the `AuthFacts` of `authenticate`, and computes each fact when it is read. */
class Entry implements AuthFacts {
  readonly transport: TransportName;
  readonly #request: Request;
  readonly #info: ConnectionInfo | undefined;
  readonly #core: Core;
  readonly #proxies: readonly string[];
  #controller?: AbortController;

  constructor(
    request: Request,
    info: ConnectionInfo | undefined,
    { transport, core, proxies }: EntryParts,
  ) {
    this.transport = transport;
    this.#request = request;
    this.#info = info;
    this.#core = core;
    this.#proxies = proxies;
  }

  get request(): Request {
    return this.#request;
  }

  get info(): ConnectionInfo | undefined {
    return this.#info;
  }

  get peer(): string | undefined {
    return readPeer(this.#request, this.#info, this.#proxies);
  }

  get now(): number {
    return this.#core.ticker.clock.date();
  }

  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  abort(): void {
    this.#controller?.abort(TOO_SLOW);
  }
}

function findProblem({ challenge, credentials = {}, routes = [] }: Authentication): string | undefined {
  const { headers = [], cookies = [], query = [] } = credentials;
  if (challenge !== undefined && !isChallenge(challenge)) return CHALLENGE;
  const isNames = [headers, cookies, query].every((names) => Array.isArray(names) && names.every(isToken));
  if (!isNames) return 'credentials are not lists of names such as { headers: ["x-user"] }';
  if (!Array.isArray(routes)) return "routes are not a list";
  for (const [at, { path, fetch }] of routes.entries()) {
    if (typeof fetch !== "function") return `route ${quote(path)} has no fetch()`;
    // Any other spelling would never be found.
    if (new URL(path, "http://x").pathname !== path) return `route ${quote(path)} is not a path as a URL has it`;
    if (routes.findIndex((route) => route.path === path) < at) return `route ${quote(path)} is there twice`;
  }
}

/** Names of credentials, in lower case where case does not matter. */
interface Hidden {
  readonly headers: ReadonlySet<string>;
  readonly cookies: readonly string[];
  readonly query: readonly string[];
}

function toHidden({ headers = [], cookies = [], query = [] }: Credentials = {}): Hidden {
  return { headers: new Set(["authorization", ...headers.map((name) => name.toLowerCase())]), cookies, query };
}

/** A request without its credentials. The copy is made when a handler reads it. */
class VisibleRequest implements SeenRequest {
  // Private, so that a printed context shows no credentials.
  readonly #raw: Request;
  readonly #hidden: Hidden;
  #request?: Request;

  constructor(raw: Request, hidden: Hidden) {
    this.#raw = raw;
    this.#hidden = hidden;
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

function isPrincipal(value: unknown): value is Principal {
  if (!isObject(value) || typeof value.id !== "string" || !value.id) return false;
  const { scopes, expiresAt } = value;
  const isList = scopes === undefined || Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string");
  return isList && (expiresAt === undefined || Number.isFinite(expiresAt));
}
