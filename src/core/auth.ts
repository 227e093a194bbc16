/**
 * The interface of authentication: the principals of callers, refusals, and challenges.
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
import type { Mark, Marking } from "./marked_ids.ts";
import type { USED } from "./used_ids.ts";

/**
 * Authenticates the caller of every request before the request body is read. This is the type of the `auth` option of
 * `createServer`. `@x/mcp/auth` has factories for common schemes. `P` is the type of the principals.
 */
export interface Authentication<P extends Principal = Principal> {
  /** Authenticates the caller of a request. */
  readonly authenticate: Authenticate;
  /**
   * The headers, cookies and query parameters in which callers send their credentials. The server removes these values
   * from `ctx.http`, so handlers do not see them. It always removes the `Authorization` header.
   */
  readonly credentials?: Credentials;
  /**
   * Challenge, or list of challenges, for callers without valid credentials or with too few scopes. A function returns
   * the challenges for one concrete path. For a caller with too few scopes, the function receives the principal.
   * Defaults to the scheme `Bearer`.
   */
  readonly challenge?:
    | Challenge
    | readonly Challenge[]
    | ((facts: PathFacts & { readonly principal?: Principal }) => Challenge | readonly Challenge[]);
  /**
   * Endpoints that need no authentication, such as metadata. The server serves these endpoints; below a router, you can
   * also mount them by hand. A function receives the path of the server, such as `/tenants/:tenant/mcp`.
   */
  readonly routes?: readonly AuthRoute[] | ((path: string) => readonly AuthRoute[]);
  /**
   * Decides whether the scopes of a caller are enough for an operation. Grants access only by returning `true`. Not
   * called for callers with `allScopes`. By default, the caller's scopes must include each required scope. `principal`
   * is the caller.
   */
  satisfies?(granted: readonly string[], needed: readonly string[], principal?: Principal): boolean;
  /**
   * Renews the credentials of a caller with an open stream, at most ten seconds before they expire. Returns the
   * principal with a later `expiresAt`, or without `expiresAt`. The stream ends when the credentials expire if the
   * function returns `undefined`, or a principal with another id or other scopes. After an error, the server calls the
   * function again. Without this function, streams end when their credentials expire.
   */
  renew?(principal: Principal): Principal | undefined | Promise<Principal | undefined>;
  /** Releases the resources of the authentication. Called when the server closes. */
  close?(): void | Promise<void>;
  /**
   * Whether the server also checks the caller of an open stream again if its principal has an `expiresAt`.
   *
   * @ignore
   */
  [RECHECKS]?(principal: Principal): boolean;
  /**
   * Describes the authentication, so that it can be part of a list of authentications.
   *
   * @ignore
   */
  readonly [SCHEME]?: ListedScheme;
  /**
   * Returns a principal with the type of this authentication, or `undefined` for a caller of another authentication.
   *
   * @ignore
   */
  [READ_PRINCIPAL]?(principal: Principal): P | undefined;
  /**
   * Checks that the authentication fits the path of the server. Called when the server is created.
   *
   * @ignore
   */
  [CHECK_PATH]?(path: string): void;
  /**
   * Checks that some caller can use a handler. Called when handlers are added.
   *
   * @ignore
   */
  [CHECK_HANDLER]?(name: string, scopes: readonly string[] | undefined): void;
}

/**
 * Authenticates the caller of a request. Returns the caller's principal, or a refusal created by `refuseRequest()`. If
 * the function returns `undefined`, the server responds with HTTP 401. If the function throws, the server responds with
 * HTTP 500 without details.
 *
 * While a caller without `expiresAt` has an open stream, the server calls the function again once per minute, with a
 * copy of the request that opened the stream. The stream ends if the function refuses the request, or returns another
 * id or other scopes.
 *
 * The function must not read the body. A synchronous function need not return a promise. The number of concurrent
 * asynchronous calls is limited, and each call times out after 10 seconds.
 */
export type Authenticate = (
  request: Request,
  facts: AuthFacts,
) => Principal | AuthRefusal | undefined | Promise<Principal | AuthRefusal | undefined>;

/** Facts about the path of a request. */
export interface PathFacts {
  /**
   * Returns the parameters of the server's path, like `ctx.route` of handlers. Pass the schema of the server's option
   * `params` to get typed values.
   *
   * @throws {TypeError} if the path has no parameters, or `params` is not the schema of the server.
   */
  readonly route: ReadRoute;
}

/** Facts about a request that is being authenticated. */
export interface AuthFacts extends PathFacts {
  /** The transport: `http`, `websocket` or `http-sse`. */
  readonly transport: TransportName;
  /**
   * Address of the client, if known. An IPv6 address is cut to its /64 network, because a client can choose the
   * remaining groups.
   */
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
  /**
   * Marks ids as used, if the server has a store. `null` if the request was accepted before and the server checks its
   * caller again, because the request's stream is still open.
   *
   * @ignore
   */
  readonly [USED]?: { spend(mark: Mark, ttlMs: number): Promise<Marking | undefined> } | null;
}

/** The description of an authentication that is part of a list. */
export interface ListedScheme {
  /** Name for errors, such as `apiKey()`. */
  readonly name: string;
  /**
   * Schemes of the `Authorization` header that the authentication reads, in lower case. Its other credentials are in
   * `credentials`. `undefined` if it does not state the form of its credentials, and therefore cannot be part of a
   * list.
   */
  readonly schemes?: readonly string[];
  /** Text before the colon in the ids of its principals. `undefined` if the ids may have any form. */
  readonly prefix?: string;
  /**
   * Combines a list of authentications. Each authentication refers to this function, so that a server without `auth`
   * does not load its code.
   */
  readonly combine: (list: readonly unknown[]) => Authentication;
}

/** Key of the description of an authentication for a list. */
export const SCHEME: unique symbol = Symbol.for("mcp.scheme");

/** Key of the function that reads principals. */
export const READ_PRINCIPAL: unique symbol = Symbol.for("mcp.readPrincipal");

/** Names of the fields of an authentication. */
export const AUTHENTICATION: KnownOptions<Extract<keyof Authentication, string>> = {
  names: {
    authenticate: "function",
    credentials: { names: { headers: "texts", cookies: "texts", query: "texts" } },
    challenge: true,
    routes: true,
    satisfies: "function",
    renew: "function",
    close: "function",
  },
  hints: { verify: "authenticate" },
  hasOtherForms: true,
  isPlain: true,
};

/** Key of the function that decides whether callers with an `expiresAt` are checked again. */
export const RECHECKS: unique symbol = Symbol.for("mcp.rechecks");

/** Key of the function that decides whether a request may wait for its authentication. */
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

/** An endpoint that requires no authentication. */
export interface AuthRoute {
  /**
   * Path of the endpoint, such as `/.well-known/oauth-protected-resource/mcp`. It may have the parameters of the
   * server's path, such as `/.well-known/oauth-protected-resource/tenants/:tenant/mcp`. The server responds with HTTP
   * 404 to a path whose parameters the `params` schema rejects.
   */
  readonly path: string;
  /**
   * Responds to a request with any HTTP method, including `OPTIONS`. Web pages from every origin can call the endpoint.
   */
  readonly fetch: (request: Request, facts: PathFacts) => Response | Promise<Response>;
}

/** The refusal of a request, created by `refuseRequest()`. */
export interface AuthRefusal {
  /** HTTP status. */
  readonly status: 400 | 401 | 403 | 429 | 503;
  /** Challenges for the client. */
  readonly challenges?: readonly Challenge[];
  /** Human-readable reason. Error messages show it after "Cannot serve the request: ". */
  readonly reason?: string;
  /** Reason that only `observer.auth` receives. */
  readonly detail?: string;
  /** Error for `observer.fault`, if the caller did not cause the refusal. */
  readonly cause?: unknown;
  /** Milliseconds after which the client may try again. */
  readonly retryAfterMs?: number;
  /** @ignore */
  readonly [REFUSAL]: true;
}

/** Options of {@linkcode refuseRequest}. */
export interface RefuseRequestOptions {
  /**
   * Challenges for the client. For status 401, defaults to the challenge of the authentication. For any other status,
   * defaults to no challenge.
   */
  readonly challenge?: Challenge | readonly Challenge[];
  /**
   * Human-readable reason. Error messages show it after "Cannot serve the request: ". The client receives it, so it
   * must not contain credentials.
   */
  readonly reason?: string;
  /** Further reason, which only `observer.auth` receives. */
  readonly detail?: string;
  /** Error for `observer.fault`, if the caller did not cause the refusal. The client does not receive it. */
  readonly cause?: unknown;
  /** Milliseconds after which the client may try again, for status 429 or 503. Defaults to 1000. */
  readonly retryAfterMs?: number;
}

/** Reason for refusing expired credentials. */
export const EXPIRED = "the credentials have expired";

const REFUSAL: unique symbol = Symbol.for("mcp.refusal");

const REFUSE: KnownOptions<keyof RefuseRequestOptions> = {
  names: { challenge: true, reason: true, detail: true, cause: true, retryAfterMs: true },
  hints: { message: "reason", challenges: "challenge" },
};

/** Creates the refusal of a request. Return it from `authenticate`. */
export function refuseRequest(status: AuthRefusal["status"], options: RefuseRequestOptions = {}): AuthRefusal {
  checkOptions("refuse a request", options, REFUSE);
  const { challenge, reason, detail, cause, retryAfterMs } = options;
  const challenges = challenge && [challenge].flat();
  if (![400, 401, 403, 429, 503].includes(status)) {
    throw new TypeError(`Cannot refuse a request: the status is ${status}; use 400, 401, 403, 429 or 503`);
  }
  if (challenges?.every(isChallenge) === false) throw new TypeError(`Cannot refuse a request: ${CHALLENGE}`);
  return { status, challenges, reason, detail, cause, retryAfterMs, [REFUSAL]: true };
}

/** End of the error message for a value that is not a challenge. */
export const CHALLENGE = 'challenge is not a scheme such as { scheme: "Bearer", params: { realm: "notes" } }';

/** Tests for a challenge that is valid in a header. An invalid challenge would turn a refusal into an exception. */
export function isChallenge(value: unknown): boolean {
  const { scheme, params = {} } = Object(value);
  return isToken(scheme) && Object.entries(params).every(([name, value]) => isToken(name) && typeof value === "string");
}

/** Tests for text that is valid as the name of a header. */
export function isToken(value: unknown): boolean {
  return typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value);
}

/** Tests for a refusal from any copy of this library. */
export function isRefusal(value: unknown): value is AuthRefusal {
  return Object(value)[REFUSAL] === true;
}

/** The facts that determine the challenge of a call. */
export interface Challenger {
  readonly principal?: Principal;
  readonly auth?: Authentication;
  /** Returns the parameters of the concrete path. `undefined` if the path has no parameters. */
  readonly route?: ReadRoute;
  report(error: unknown): unknown;
}

/** Returns the response to a call with too few scopes. Its challenge names all scopes that the call needs. */
export function toScopeReply(server: Challenger, { data }: McpError, reply: Reply): Reply {
  // Check the data, because a handler can throw this error too, with any data.
  const scope = [Object(data).scopes].flat().filter((scope) => typeof scope === "string").join(" ");
  const named = { error: "insufficient_scope", scope };
  const challenges = findChallenges(server).map(({ scheme, params }) => (
    { scheme, params: { ...named, ...params, ...named } }
  ));
  return { ...reply, status: 403, headers: toChallengeHeaders(challenges) };
}

// Fall back to the default challenge if the author's function throws, so that the client still learns of the missing
// scopes.
function findChallenges({ auth, route = NO_ROUTE.route, principal, report }: Challenger): readonly Challenge[] {
  try {
    return auth ? readChallenges(auth, { route, principal }) : [BEARER];
  } catch (error) {
    report(error);
    return [BEARER];
  }
}

/** Returns the challenges of an authentication for a request. */
export function readChallenges(
  { challenge = BEARER }: Pick<Authentication, "challenge">,
  facts: PathFacts & { readonly principal?: Principal },
): readonly Challenge[] {
  const made = [typeof challenge === "function" ? challenge(facts) : challenge].flat();
  if (!made.some(isStrayPromise) && made.every(isChallenge)) return made;
  throw new TypeError(`Cannot challenge a caller: ${CHALLENGE}`);
}

/** The facts about a path without parameters. */
export const NO_ROUTE: PathFacts = {
  route(): never {
    throw new TypeError("Cannot read path parameters: the path of the server has no parameters");
  },
};

/** The challenge of an authentication that does not specify one. */
const BEARER: Challenge = { scheme: "Bearer" };

/** Returns the `WWW-Authenticate` header with challenges, or no header if there are no challenges. */
export function toChallengeHeaders(challenges: readonly Challenge[]): { readonly [name: string]: string } {
  return challenges.length ? { "www-authenticate": challenges.map(toChallenge).join(", ") } : {};
}

function toChallenge({ scheme, params = {} }: Challenge): string {
  const quoted = Object.entries(params).map(([name, value]) =>
    `${name}="${value.replace(/[^ -~]/g, "?").replace(/["\\]/g, "\\$&")}"`
  );
  return `${scheme} ${quoted.join(", ")}`.trim();
}
