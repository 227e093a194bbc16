/**
 * The types of the server's `auth` option, and functions for refusals and challenges.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { isToken } from "../../core/kit/http_token.ts";
import type { McpError, REACHED } from "../../core/protocol/errors.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import { refusePathParams } from "../call/path_params.ts";
import type { Principal, ReadPathParams } from "../call/context.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { Reply } from "../call/link.ts";
import type { TransportName } from "../call/observer.ts";
import type { RoutePeer } from "./route_peer.ts";
import type { ServerHandle, StartPart } from "./server_handle.ts";

/**
 * Authenticates the caller of every request before the request body is read. This is the type of the `auth` option of
 * `createServer`. `@x/mcp/auth` has factories for common schemes. `P` is the type of the callers' principals.
 */
export interface Authentication<P extends Principal = Principal> {
  /** Authenticates the caller of a request. */
  readonly authenticate: Authenticate;
  /**
   * Starts the authentication on a server, before the first request is authenticated. Can return a function that
   * releases the resources of the authentication when the server closes. If `start` fails, requests get HTTP status 500,
   * and the next request starts the authentication again. The schemes of a list share one handle, so each scheme must
   * use its own names for keys and sealed values. All concrete paths of a path with parameters share the handle too, so a
   * sealed value that is valid for one path must contain the path's parameters.
   */
  readonly start?: StartPart;
  /**
   * The headers, cookies and query parameters in which callers send their credentials. The server removes these values
   * from `ctx.http`, so handlers do not see them. The server always removes the `Authorization` header.
   */
  readonly credentials?: Credentials;
  /**
   * One or more challenges for callers without valid credentials or with too few scopes, or a function that returns the
   * challenges for the path of a request. The function receives a principal only if the caller has too few scopes.
   * Defaults to the scheme `Bearer`.
   */
  readonly challenge?:
    | Challenge
    | readonly Challenge[]
    | ((info: PathInfo & { readonly principal?: Principal }) => Challenge | readonly Challenge[]);
  /**
   * Endpoints that need no authentication, such as metadata, or a function that returns the endpoints for the server's
   * path, such as `/tenants/:tenant/mcp`. The server serves these endpoints. If a router serves the server below a
   * path, you can also add the endpoints to the router.
   */
  readonly routes?: readonly AuthRoute[] | ((path: string) => readonly AuthRoute[]);
  /**
   * Decides whether a caller's scopes permit an operation. Only the return value `true` grants access. Not called for
   * callers with `allScopes`. By default, the caller's scopes must include each required scope. `principal` is the
   * caller's principal.
   */
  satisfies?(granted: readonly string[], needed: readonly string[], principal?: Principal): boolean;
  /**
   * Renews the credentials of a caller with an open stream. The server calls the function at most ten seconds before
   * the credentials expire, and again if the function throws. Returns the principal with a later `expiresAt`, or
   * without `expiresAt`. If the function returns `undefined`, or a principal with another id or different scopes, the
   * stream ends when the credentials expire. Without this function, every stream ends when the caller's credentials
   * expire. `server` is the handle that `start` received, or `undefined` without `start`.
   */
  renew?(
    principal: Principal,
    server: ServerHandle | undefined,
  ): Principal | undefined | Promise<Principal | undefined>;
  /**
   * Returns whether the server rechecks the caller of an open stream once per minute even if the principal has an
   * `expiresAt`, for example because the credentials can be revoked. Defaults to `false`.
   */
  rechecks?(principal: Principal): boolean;
  /** Describes the authentication. Required in a list of authentications. */
  readonly scheme?: AuthScheme;
  /** Returns `undefined` for the principal of another authentication. Required for `requirePrincipal(ctx, auth)`. */
  readPrincipal?(principal: Principal): P | undefined;
  /** Throws if the authentication cannot be used with the server's path. Called when the server is created. */
  checkPath?(path: string): void;
  /** Throws if no caller can have the scopes that a handler requires. Called when handlers are added. */
  checkHandler?(name: string, scopes: readonly string[] | undefined): void;
  /**
   * The error because of which a server with the authentication serves nobody, such as a key that is not set.
   *
   * @ignore
   */
  readonly [UNREADY]?: Error;
  /** @ignore */
  readonly [SIGN_IN]?: SignInFacts;
}

/** Key of the readiness error. Global, because another copy of the library may have created the authentication. */
export const UNREADY: unique symbol = Symbol.for("mcp.unready");

/** Key of the facts about a sign-in. Global, because another copy of the library may have created the authentication. */
export const SIGN_IN: unique symbol = Symbol.for("mcp.sign-in");

/** Facts about the sign-in of an authentication that is its own authorization server, for tools that examine it. */
export interface SignInFacts {
  /** Name of the provider at which users sign in. */
  readonly provider: string;
  /** Public URL of the MCP endpoint. */
  readonly resource: string;
  /** Redirect URI of this server at the provider. */
  readonly callback: string;
  /** Whether every user of the provider can sign in. */
  readonly isOpen: boolean;
  /** Number of redirect URIs of hosted clients that are accepted. */
  readonly redirects: number;
  /** Rejects if the endpoints of the provider cannot be read. Resolves to their hosts. */
  readonly findHosts: (signal: AbortSignal) => Promise<readonly string[]>;
  /**
   * Sends a token request with a code that the provider has not issued. Resolves to the error code of the provider, or
   * `undefined` if the response contains none. Rejects if the provider does not respond.
   */
  readonly requestToken: (signal: AbortSignal) => Promise<string | undefined>;
}

/**
 * Authenticates the caller of a request. Returns the caller's principal, or a refusal created by `refuseRequest()`. If
 * the function returns `undefined`, the server responds with HTTP 401. If the function throws, the server responds with
 * HTTP 500 without details.
 *
 * While a caller without `expiresAt` has an open stream, the server calls the function once per minute with a copy of
 * the request that opened the stream. The stream ends if the function refuses the request, or returns a principal with
 * another id or different scopes.
 *
 * The host of the request's URL is the host in the Host header, which the server has checked. The function must not read
 * the body. The number of concurrent asynchronous calls is limited, and each call times out after 10 seconds. `server` is
 * the handle that the authentication's `start` received, or `undefined` without `start`.
 */
export type Authenticate = (
  request: Request,
  info: AuthRequestInfo,
  server: ServerHandle | undefined,
) => Principal | AuthRefusal | undefined | Promise<Principal | AuthRefusal | undefined>;

/** Facts about the path of a request. */
export interface PathInfo {
  /**
   * Returns the parameters of the server's path, like `ctx.pathParams` in a handler. To get typed values, pass the
   * schema from the server's `pathSchema` option. @throws {TypeError} if the path has no parameters, or the passed
   * schema is not the schema from the server's `pathSchema` option.
   */
  readonly pathParams: ReadPathParams;
}

/** Facts about a request that is being authenticated. */
export interface AuthRequestInfo extends PathInfo {
  /** The transport: `http`, `websocket` or `http-sse`. */
  readonly transport: TransportName;
  /** Address of the client, if known. For IPv6, the /64 network, because a client can choose the remaining bits. */
  readonly peer?: string;
  /** Current time of the server's clock, in milliseconds since 1970. */
  readonly now: number;
  /** Aborts when the authentication takes longer than 10 seconds. */
  readonly signal: AbortSignal;
  /**
   * Whether the server rechecks the caller of an open stream, with a copy of the request that opened the stream. The
   * one-time ids of the request were already used when the stream was opened. Defaults to `false`.
   */
  readonly isRecheck?: boolean;
  /**
   * Returns a refusal if too many callers are already waiting for authentication, and `undefined` otherwise. Call it
   * before work that only callers with valid credentials should cause, such as a request to another server. Missing
   * during a recheck.
   */
  refuseIfFull?(): AuthRefusal | undefined;
  /**
   * Waits for `turn`, and then for the number of milliseconds to which it resolves. `limit` names the limit that the
   * caller has reached, for observers. Use the function to slow a caller down that guesses credentials. A waiting request
   * does not count as an authentication in progress. Resolves to `false` if the request has waited for `auth.delayMs`.
   * Returns `undefined` if too many requests wait. Missing during a recheck.
   */
  delay?(turn: Promise<number>, options: { readonly limit: string }): Promise<boolean> | undefined;
  /**
   * Reports that this request only waits for a check that another request has started. It then counts as a waiting request
   * instead of as an authentication in progress, also in its work after the check. Missing during a recheck.
   */
  share?(): void;
}

export type Delay = Parameters<NonNullable<AuthRequestInfo["delay"]>>[1];

/** Describes an authentication that can be used in a list. Created by `authScheme()`. */
export interface AuthScheme {
  /** Name in error messages, such as `apiKey()`. */
  readonly name: string;
  /**
   * Schemes of the `Authorization` header that the authentication accepts. `undefined` if the
   * authentication does not declare the form of its credentials, and therefore cannot be used in a list.
   */
  readonly schemes?: readonly string[];
  /** Text before the colon in each principal's id. `undefined` if the ids can have any form. */
  readonly prefix?: string;
  /**
   * Combines a list of authentications. Each authentication has a reference to this function, so that a server without
   * `auth` does not load the function's code.
   *
   * @ignore
   */
  readonly combine: (list: readonly unknown[]) => Authentication;
}

/** Names of the headers, cookies and query parameters that contain credentials. */
export interface Credentials {
  /** Header names. */
  readonly headers?: readonly string[];
  /** Cookie names. Handlers still see all other cookies. */
  readonly cookies?: readonly string[];
  /** Query parameter names. */
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
   * Path of the endpoint, such as `/.well-known/oauth-protected-resource/mcp`. The path can contain the parameters of
   * the server's path, such as `/.well-known/oauth-protected-resource/tenants/:tenant/mcp`. The server responds with
   * HTTP 404 if the `pathSchema` rejects a parameter.
   */
  readonly path: string;
  /**
   * Whether the endpoint is a page for people, such as a consent page: `true`, or the public origin of the page, such as
   * `https://notes.example.com`. Only this origin can then send requests with an Origin header; with `true`, the Host and
   * Origin headers are checked as for a WebSocket. Responses get the headers of a page that nobody can put into a frame,
   * unless they have these headers. Defaults to `false`: web pages of any origin can call the endpoint.
   */
  readonly page?: boolean | string;
  /**
   * Responds to requests with any HTTP method, including `OPTIONS`. `server` is the handle that the authentication's
   * `start` received, or `undefined` without `start`.
   */
  readonly fetch: (
    request: Request,
    info: PathInfo & RoutePeer,
    server: ServerHandle | undefined,
  ) => Response | Promise<Response>;
}

/** The refusal of a request, created by `refuseRequest()`. */
export interface AuthRefusal {
  /** HTTP status. */
  readonly status: 400 | 401 | 403 | 429 | 503;
  /** Challenges for the client. */
  readonly challenges?: readonly Challenge[];
  /** Human-readable reason. The error message shows the reason after "Cannot serve the request: ". */
  readonly reason?: string;
  /** Reason that only `observer.auth` receives. */
  readonly detail?: string;
  /** Error for `observer.fault`. Set if the caller did not cause the refusal. */
  readonly cause?: unknown;
  /** Milliseconds after which the client may retry. */
  readonly retryAfterMs?: number;
  /** @ignore */
  readonly [REFUSAL]: true;
  /** @ignore */
  readonly [REACHED]?: string;
}

/** Options of {@linkcode refuseRequest}. */
export interface RefuseRequestOptions {
  /**
   * Challenges for the client. For status 401, defaults to the authentication's challenge. For any other status,
   * defaults to no challenge.
   */
  readonly challenge?: Challenge | readonly Challenge[];
  /** Human-readable reason after "Cannot serve the request: " in the client's error. Must not contain credentials. */
  readonly reason?: string;
  /** Additional reason, which only `observer.auth` receives. */
  readonly detail?: string;
  /** Error for `observer.fault`, not for the client. Set `cause` if the caller did not cause the refusal. */
  readonly cause?: unknown;
  /** Milliseconds after which the client may retry, for status 429 or 503. Defaults to 1000. */
  readonly retryAfterMs?: number;
}

export const EXPIRED = "the credentials have expired";

const REFUSAL: unique symbol = Symbol.for("mcp.refusal");

const REFUSE: KnownOptions<keyof RefuseRequestOptions> = {
  names: { challenge: true, reason: true, detail: true, cause: true, retryAfterMs: true },
  hints: { message: "reason" },
};

/** Creates the refusal of a request, which `authenticate` and `admit` can return. */
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

export const CHALLENGE = 'challenge is invalid; use an object such as { scheme: "Bearer", params: { realm: "notes" } }';

/** With an invalid challenge, writing the header would throw instead of refusing the request. */
export function isChallenge(value: unknown): boolean {
  const { scheme, params = {} } = Object(value);
  return isToken(scheme) && Object.entries(params).every(([name, value]) => isToken(name) && typeof value === "string");
}

/** Tests whether `value` is a refusal. Another copy of this library may have created the refusal. */
export function isRefusal(value: unknown): value is AuthRefusal {
  return Object(value)[REFUSAL] === true;
}

export interface Challenger {
  readonly principal?: Principal;
  readonly auth?: Authentication;
  /** Returns the parameters of the request's path. `undefined` if the server's path has no parameters. */
  readonly pathParams?: ReadPathParams;
  report(error: unknown): unknown;
}

/** The response's challenge names all scopes that the call needs. */
export function toScopeReply(server: Challenger, { data }: McpError, reply: Reply): Reply {
  // Check `data`, because a handler can throw the same error with arbitrary data.
  const scope = [Object(data).scopes].flat().filter((scope) => typeof scope === "string").join(" ");
  const named = { error: "insufficient_scope", scope };
  const challenges = findChallenges(server).map(({ scheme, params }) => (
    { scheme, params: { ...named, ...params, ...named } }
  ));
  return { ...reply, status: 403, headers: toChallengeHeaders(challenges) };
}

// Fall back to the default challenge if the author's function throws, so that the response still names the missing
// scopes.
function findChallenges(
  { auth, pathParams = NO_PATH_PARAMS.pathParams, principal, report }: Challenger,
): readonly Challenge[] {
  try {
    return auth ? readChallenges(auth, { pathParams, principal }) : [BEARER];
  } catch (error) {
    report(error);
    return [BEARER];
  }
}

/** Throws if a challenge is invalid. */
export function readChallenges(
  { challenge = BEARER }: Pick<Authentication, "challenge">,
  info: PathInfo & { readonly principal?: Principal },
): readonly Challenge[] {
  const made = [typeof challenge === "function" ? challenge(info) : challenge].flat();
  if (!made.some(isStrayPromise) && made.every(isChallenge)) return made;
  throw new TypeError(`Cannot challenge a caller: ${CHALLENGE}`);
}

export const NO_PATH_PARAMS: PathInfo = { pathParams: refusePathParams };

const BEARER: Challenge = { scheme: "Bearer" };

/** Returns the `WWW-Authenticate` header for `challenges`, or no header if the list is empty. */
export function toChallengeHeaders(challenges: readonly Challenge[]): { readonly [name: string]: string } {
  return challenges.length ? { "www-authenticate": challenges.map(toChallenge).join(", ") } : {};
}

function toChallenge({ scheme, params = {} }: Challenge): string {
  const quoted = Object.entries(params).map(([name, value]) =>
    `${name}="${value.replace(/[^ -~]/g, "?").replace(/["\\]/g, "\\$&")}"`
  );
  return `${scheme} ${quoted.join(", ")}`.trim();
}
