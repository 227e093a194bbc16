/**
 * The contract of authentication: principals of callers, refusals and challenges.
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
import type { McpError } from "../protocol/errors.ts";
import { isStrayPromise } from "../protocol/promises.ts";
import type { Principal, ReadRoute } from "./call/context.ts";
import { checkOptions, type KnownOptions } from "./call/known_options.ts";
import type { CHECK_HANDLER, CHECK_PATH } from "./call/internals.ts";
import type { Reply } from "./call/link.ts";
import type { TransportName } from "./call/observer.ts";

/**
 * Authenticates the caller of every request before its body is read. `createServer({ auth })` takes one.
 *
 * `@x/mcp/auth` has factories for common schemes.
 */
export interface Authentication {
  /** Authenticates the caller of a request. */
  readonly authenticate: Authenticate;
  /** Where callers put their credentials. They are removed from `ctx.http`, as `Authorization` always is. */
  readonly credentials?: Credentials;
  /**
   * Challenge for callers without valid credentials or with too few scopes. A function returns that of one concrete
   * path. Defaults to the scheme `Bearer`.
   */
  readonly challenge?: Challenge | ((facts: PathFacts) => Challenge);
  /**
   * Endpoints that every caller may use, such as metadata. They can also be mounted by hand under a router. A function
   * gets the path of the server, such as `/tenants/:tenant/mcp`.
   */
  readonly routes?: readonly AuthRoute[] | ((path: string) => readonly AuthRoute[]);
  /**
   * Decides whether the scopes of a caller cover all that an operation needs. Only `true` grants. It is not asked about
   * callers with `allScopes`. Defaults to whether the scopes include each of the needed ones.
   */
  satisfies?(granted: readonly string[], needed: readonly string[]): boolean;
  /**
   * Renews the credentials of a caller with an open stream, at most ten seconds before they expire. Returns the principal
   * with a later `expiresAt`, or none. The stream ends at the expiry if it returns `undefined`, or another id or other
   * scopes. It is asked again after an error. Without it, streams end when their credentials expire.
   */
  renew?(principal: Principal): Principal | undefined | Promise<Principal | undefined>;
  /** Releases what the authentication holds. Called when the server closes. */
  close?(): void | Promise<void>;
  /**
   * Whether the callers of open streams are also authenticated again if their principals have an `expiresAt`.
   *
   * @ignore
   */
  readonly [RECHECKS]?: boolean;
  /**
   * Checks at the start that it fits the path of the server.
   *
   * @ignore
   */
  [CHECK_PATH]?(path: string): void;
  /**
   * Checks at the start that some caller can use a handler.
   *
   * @ignore
   */
  [CHECK_HANDLER]?(name: string, scopes: readonly string[] | undefined): void;
}

/**
 * Authenticates the caller of a request: returns its principal, or a refusal made by `refuseRequest()`. `undefined` refuses the
 * request with status 401. An error that it throws becomes status 500 without details.
 *
 * While a stream of a caller without `expiresAt` is open, it is asked again once per minute, with a copy of the request
 * that opened the stream. The stream ends if it refuses, or returns another id or other scopes.
 *
 * It must not read the body. A synchronous function costs no promise. Asynchronous ones are bounded in number
 * and in time: each has 10 seconds.
 */
export type Authenticate = (
  request: Request,
  facts: AuthFacts,
) => Principal | AuthRefusal | undefined | Promise<Principal | AuthRefusal | undefined>;

/** Facts about the path of a request. */
export interface PathFacts {
  /**
   * Returns the parameters of the server's path, like `ctx.route` of handlers. Pass the schema that the server has as
   * `params` to get them with their types.
   *
   * @throws {TypeError} if the path has no parameters, or `params` is not the schema of the server.
   */
  readonly route: ReadRoute;
}

/** Facts about a request that is authenticated. */
export interface AuthFacts extends PathFacts {
  /** The transport: `http`, `websocket` or `http-sse`. */
  readonly transport: TransportName;
  /** Address of the client, if known. An IPv6 address is cut to its /64 network. */
  readonly peer?: string;
  /** Time of the server's clock, in milliseconds since 1970. */
  readonly now: number;
  /** Aborts when the authentication takes longer than 10 seconds. */
  readonly signal: AbortSignal;
  /**
   * Returns the refusal of a request if no more callers may wait for their authentication.
   *
   * @ignore
   */
  [FIND_PLACE]?(): AuthRefusal | undefined;
}

/** Key of whether an authentication is asked again about callers whose credentials expire. */
export const RECHECKS: unique symbol = Symbol.for("mcp.rechecks");

/** Key of the question whether a request may wait for its authentication. */
export const FIND_PLACE: unique symbol = Symbol.for("mcp.findPlace");

/** Names of the headers, cookies and query parameters that carry credentials. */
export interface Credentials {
  /** Names of headers. */
  readonly headers?: readonly string[];
  /** Names of cookies. Other cookies stay visible. */
  readonly cookies?: readonly string[];
  /** Names of query parameters. */
  readonly query?: readonly string[];
}

/** A challenge in a `WWW-Authenticate` header. */
export interface Challenge {
  /** Authentication scheme, such as `Bearer`. */
  readonly scheme: string;
  /** Parameters of the challenge, such as `realm`. Their values are quoted and escaped. */
  readonly params?: Readonly<Record<string, string>>;
}

/** An endpoint that needs no authentication. */
export interface AuthRoute {
  /**
   * Path of the endpoint, such as `/.well-known/oauth-protected-resource/mcp`. It may have the parameters of the server's
   * path, such as `/.well-known/oauth-protected-resource/tenants/:tenant/mcp`. A path whose parameters the schema `params`
   * rejects gets HTTP 404.
   */
  readonly path: string;
  /** Responds to a request of any method, `OPTIONS` included. Pages of every origin reach it. */
  readonly fetch: (request: Request, facts: PathFacts) => Response | Promise<Response>;
}

/** The refusal of a request, made by `refuseRequest()`. */
export interface AuthRefusal {
  /** HTTP status. */
  readonly status: 400 | 401 | 403 | 429 | 503;
  /** Challenges for the client. */
  readonly challenges?: readonly Challenge[];
  /** Reason for people, after "Cannot serve the request: ". */
  readonly reason?: string;
  /** Error for `observer.fault`, if the refusal is not the caller's fault. */
  readonly cause?: unknown;
  /** Milliseconds after which the client may try again. */
  readonly retryAfterMs?: number;
  /** @ignore */
  readonly [REFUSAL]: true;
}

/** Options of {@linkcode refuseRequest}. */
export interface RefuseRequestOptions {
  /** Challenges for the client. Defaults to the challenge of the authentication for status 401, and else to none. */
  readonly challenge?: Challenge | readonly Challenge[];
  /** Reason for people, after "Cannot serve the request: ". The client reads it, so it must not contain credentials. */
  readonly reason?: string;
  /** Error for `observer.fault`, if the refusal is not the caller's fault. The client does not learn it. */
  readonly cause?: unknown;
  /** Milliseconds after which the client may try again, for status 429 or 503. Defaults to 1000. */
  readonly retryAfterMs?: number;
}

/** Reason of the refusal of expired credentials. */
export const EXPIRED = "the credentials have expired";

const REFUSAL: unique symbol = Symbol.for("mcp.refusal");

const REFUSE: KnownOptions<keyof RefuseRequestOptions> = {
  names: { challenge: true, reason: true, cause: true, retryAfterMs: true },
  hints: { message: "reason", challenges: "challenge" },
};

/** Creates the refusal of a request, for `authenticate` to return. */
export function refuseRequest(status: AuthRefusal["status"], options: RefuseRequestOptions = {}): AuthRefusal {
  checkOptions("refuse a request", options, REFUSE);
  const { challenge, reason, cause, retryAfterMs } = options;
  const challenges = challenge && [challenge].flat();
  if (![400, 401, 403, 429, 503].includes(status)) {
    throw new TypeError(`Cannot refuse a request: the status is ${status}; use 400, 401, 403, 429 or 503`);
  }
  if (challenges?.every(isChallenge) === false) throw new TypeError(`Cannot refuse a request: ${CHALLENGE}`);
  return { status, challenges, reason, cause, retryAfterMs, [REFUSAL]: true };
}

/** State of an error: a value that is not a challenge. */
export const CHALLENGE = 'challenge is not a scheme such as { scheme: "Bearer", params: { realm: "notes" } }';

/** Tests for a challenge that fits into a header. Anything else would make an exception of a refusal. */
export function isChallenge(value: unknown): boolean {
  const { scheme, params = {} } = Object(value);
  return isToken(scheme) && Object.entries(params).every(([name, value]) => isToken(name) && typeof value === "string");
}

/** Tests for a text that may be the name of a header. */
export function isToken(value: unknown): boolean {
  return typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value);
}

/** Tests for a refusal from any copy of this library. */
export function isRefusal(value: unknown): value is AuthRefusal {
  return Object(value)[REFUSAL] === true;
}

/** The parts of a server on which the challenge of a call depends. */
export interface Challenger {
  readonly auth?: Authentication;
  /** Returns the parameters of the concrete path, if it has any. */
  readonly route?: ReadRoute;
  report(error: unknown): unknown;
}

/** Returns the response to a call with too few scopes: the challenge names all that it needs. */
export function toScopeReply(server: Challenger, { data }: McpError, reply: Reply): Reply {
  const { scheme, params } = findChallenge(server);
  // A handler can throw this error too, with any data.
  const scope = [Object(data).scopes].flat().filter((scope) => typeof scope === "string").join(" ");
  const named = { error: "insufficient_scope", scope };
  const challenge = { scheme, params: { ...named, ...params, ...named } };
  return { ...reply, status: 403, headers: toChallengeHeaders([challenge]) };
}

// The caller learns of the missing scopes, even if the author's function throws.
function findChallenge({ auth, route = NO_ROUTE.route, report }: Challenger): Challenge {
  try {
    return auth ? readChallenge(auth, { route }) : BEARER;
  } catch (error) {
    report(error);
    return BEARER;
  }
}

/** Returns the challenge of an authentication for a request. */
export function readChallenge({ challenge = BEARER }: Authentication, facts: PathFacts): Challenge {
  if (typeof challenge !== "function") return challenge;
  const made = challenge(facts);
  if (!isStrayPromise(made) && isChallenge(made)) return made;
  throw new TypeError(`Cannot challenge a caller: ${CHALLENGE}`);
}

/** The facts about a path without parameters. */
export const NO_ROUTE: PathFacts = {
  route(): never {
    throw new TypeError("Cannot read path parameters: the path of the server has none");
  },
};

/** The challenge of authentications that name none. */
const BEARER: Challenge = { scheme: "Bearer" };

/** Returns the header `WWW-Authenticate` with challenges, or no header if there are none. */
export function toChallengeHeaders(challenges: readonly Challenge[]): { readonly [name: string]: string } {
  return challenges.length ? { "www-authenticate": challenges.map(toChallenge).join(", ") } : {};
}

function toChallenge({ scheme, params = {} }: Challenge): string {
  const quoted = Object.entries(params).map(([name, value]) =>
    `${name}="${value.replace(/[^ -~]/g, "?").replace(/["\\]/g, "\\$&")}"`
  );
  return `${scheme} ${quoted.join(", ")}`.trim();
}
