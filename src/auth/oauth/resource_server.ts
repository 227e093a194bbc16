/**
 * Authenticates callers by access tokens of OAuth authorization servers.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { fetchOnce } from "../../core/fetch_once.ts";
import type { JWTHeaderParameters } from "jose";
import {
  type Authentication,
  type AuthRefusal,
  type AuthRequestInfo,
  type Challenge,
  isRefusal,
  refuseRequest,
  UNREADY,
} from "../../server/engine/auth.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import { isPromiseLike } from "../../core/protocol/promises.ts";
import type { Infer, Schema, StandardSchema } from "../../core/schema/schema.ts";
import type { Principal } from "../../server/call/context.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { readScopes as checkScopes } from "../../server/call/scopes.ts";
import type { ServerHandle } from "../../server/engine/server_handle.ts";
import { FailureBudget, toGuesser } from "../failure_budget.ts";
import { SharedChecks } from "../shared_checks.ts";
import { authScheme } from "../scheme_list.ts";
import { type Claims, type OAuthPrincipal, toOAuthPrincipal } from "./caller.ts";
import { checkClaims, InvalidToken, readGranted, readThumbprint } from "./claims.ts";
import { checkProof, InvalidProof, PROOF } from "./dpop.ts";
import { checkKind, createIntrospection, type IntrospectionOptions, withoutToken } from "./introspection.ts";
import type { Send } from "./http.ts";
import { Issuer } from "./issuer.ts";
import { ALGORITHMS, type JwtRules, readJwtHeader, verifyJwt } from "./jwt.ts";
import { INTROSPECTED_MS, KnownTokens, toCurrent, type Verdict } from "./known_tokens.ts";
import { Unavailable } from "./loaded.ts";
import type { MetadataRoute } from "./metadata.ts";
import { checkClient, CLIENT } from "./oauth_client.ts";
import { type ByPath, checkPath, readResources, type Resource, type Resources } from "./resource.ts";
import { PREFIX, QUERY, readToken, type TokenProblem, type TokenScheme } from "./token_header.ts";
import { type ExchangeOptions, TokenExchange } from "./token_exchange.ts";
import { TypedClaims } from "./typed_claims.ts";

/** Options of {@linkcode oauth}. Only `resource` and `issuers` are required. `S` is the type of the `claims` option. */
export interface OAuthOptions<S extends Schema = StandardSchema<Claims>> {
  /**
   * Public URL of the server's endpoint, such as `https://mcp.example.com/mcp`. Tokens must be issued for this URL.
   * Plain http is allowed only on loopback.
   *
   * If the path has parameters, pass a function that returns the URL for a concrete path. The function receives the
   * parameters that `params` has converted, with URL-encoded strings. The function runs for every request, so it must
   * be fast.
   */
  readonly resource: string | ByPath<string>;
  /**
   * URLs of the authorization servers whose tokens are accepted, exactly as in the `iss` claim of the tokens. The
   * server loads the metadata and the keys of an issuer when the first token of the issuer arrives. Plain http is
   * allowed only on loopback.
   */
  readonly issuers: readonly string[];
  /**
   * Audiences that are accepted in addition to `resource`, for issuers that put a different name into the `aud` claim,
   * such as `api://notes`. If `resource` is a function, this option must be a function too. By default, only `resource`
   * is accepted.
   */
  readonly audience?: string | readonly string[] | ByPath<string | readonly string[]>;
  /**
   * Scopes that clients should request first. The server lists these scopes in its challenge and metadata, but does not
   * require them. To require scopes, set `scopes` in handlers. By default, the server lists no scopes.
   */
  readonly scopes?: readonly string[];
  /**
   * Decides whether the granted scopes of a caller permit an operation. Only the return value `true` grants access. By
   * default, the granted scopes must include each needed scope.
   */
  readonly satisfies?: (granted: readonly string[], needed: readonly string[]) => boolean;
  /**
   * Returns the scopes that a token grants. If the function returns `undefined`, the token grants no scopes. The
   * function must not return `allScopes`. By default, the scopes are read from the `scope` claim, or from `scp` if
   * `scope` is missing.
   */
  readonly readScopes?: (claims: Claims) => readonly string[] | undefined;
  /**
   * Schema that the claims of a token must match, such as `z.object({ roles: z.array(z.string()) })`.
   * `requirePrincipal(ctx, auth).claims` is the output of the schema. If the claims do not match, the server responds
   * with HTTP 401, and `observer.auth` receives the reason. By default, claims are not checked, and handlers receive
   * all claims.
   */
  readonly claims?: S;
  /**
   * Signature algorithms that are accepted for JWTs. Defaults to RS256, RS384, RS512, PS256, PS384, PS512, ES256,
   * ES384, ES512, EdDSA and Ed25519, which all use a public key.
   */
  readonly algorithms?: readonly string[];
  /**
   * Required `typ` of JWTs. Set this option if all issuers mark their access tokens with this type, so that their other
   * JWTs are refused. By default, `typ` can be `at+jwt`, `JWT` or missing.
   */
  readonly type?: "at+jwt";
  /**
   * Set to `"required"` to accept only tokens that are bound to a key of the client (DPoP), because a thief cannot use
   * such tokens without the key. By default, tokens that are not bound to a key are accepted too. A bound token always
   * needs a proof.
   */
  readonly dpop?: "required";
  /** Tolerated difference between this server's clock and an issuer's clock, in milliseconds. Defaults to 5000. */
  readonly skewMs?: number;
  /** Additional fields for the metadata, such as `resource_name` and `resource_documentation`. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /**
   * Whether to serve the metadata also at `/.well-known/oauth-protected-resource`, for clients that look for metadata
   * only at this path. Defaults to `false`, because a host may have several resources.
   */
  readonly rootMetadata?: boolean;
  /**
   * How the server checks opaque tokens, which are tokens that are not JWTs. Pass the options for introspection
   * requests to the issuer, or a function that returns the claims of a token. By default, opaque tokens are refused.
   * Results are cached for at most 30 seconds, because tokens can be revoked.
   */
  readonly introspection?:
    | IntrospectionOptions
    | ((token: string, signal: AbortSignal) => Claims | undefined | Promise<Claims | undefined>);
  /**
   * How the server exchanges a caller's token for a token that another server accepts. Required if handlers call
   * {@linkcode exchangeToken}.
   */
  readonly exchange?: ExchangeOptions;
  /** Function that sends the requests to issuers, for example through a proxy. Defaults to the global `fetch`. */
  readonly fetch?: Send;
}

const INTROSPECTION: KnownOptions<keyof IntrospectionOptions> = {
  names: { ...CLIENT.names, issuer: true, endpoint: true },
  hints: { ...CLIENT.hints, url: "endpoint" },
  hasOtherForms: true,
};

const EXCHANGE: KnownOptions<keyof ExchangeOptions> = {
  names: { ...CLIENT.names, issuer: true },
  hints: CLIENT.hints,
};

const DEMANDED = "set the required scopes in scopes of each handler";

const OPTIONS: KnownOptions<keyof OAuthOptions> = {
  names: {
    resource: true,
    issuers: true,
    audience: true,
    scopes: true,
    satisfies: "function",
    readScopes: "function",
    claims: true,
    algorithms: "texts",
    type: ["at+jwt"],
    dpop: ["required"],
    skewMs: true,
    metadata: true,
    rootMetadata: "boolean",
    introspection: INTROSPECTION,
    exchange: EXCHANGE,
    fetch: true,
  },
  hints: {
    authorizationServers: "issuers",
    algs: "algorithms",
    clockSkew: "skewMs",
    clockTolerance: "skewMs",
  },
  elsewhere: { requiredScopes: DEMANDED, requireScopes: DEMANDED },
};

/**
 * The return value of `oauth` for a single resource. Pass it to `createServer` as `auth`. `C` is the type of the
 * callers' claims.
 */
export interface OAuthAuthentication<C = Claims> extends Authentication<OAuthPrincipal<C>> {
  /** The challenge for callers without a token. */
  readonly challenge: Challenge;
  /**
   * Endpoints that serve the metadata. The server serves these endpoints. If a router passes only requests below a
   * certain path to the server, add the endpoints to the router too.
   */
  readonly routes: readonly MetadataRoute[];
}

/**
 * Authenticates callers by access tokens of OAuth authorization servers. The id of a principal contains the issuer and
 * the subject of the token; see {@linkcode toPrincipalId}.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { oauth } from "@x/mcp/oauth";
 *
 * const auth = oauth({
 *   resource: "https://mcp.example.com/mcp",
 *   issuers: ["https://login.example.com"],
 *   scopes: ["notes:read"],
 * });
 * const list = tool({ name: "list", scopes: ["notes:read"], run: () => [] });
 *
 * export default createServer({ name: "notes", version: "1.0.0", auth, handlers: [list] });
 * ```
 *
 * @throws {TypeError} if an option is missing, unknown or invalid.
 * @see specification/2026-07-28/basic/authorization
 */
export function oauth<const S extends Schema = StandardSchema<Claims>>(
  options: OAuthOptions<S> & { readonly resource: string },
): OAuthAuthentication<Infer<S>>;
/**
 * Authenticates callers of a server whose path has parameters. Each concrete path is a separate protected resource, so
 * a token for one path is refused at all other paths.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { oauth } from "@x/mcp/oauth";
 *
 * const auth = oauth({
 *   resource: ({ tenant }) => `https://mcp.example.com/tenants/${tenant}/mcp`,
 *   issuers: ["https://login.example.com"],
 * });
 *
 * export default createServer({ name: "notes", version: "1.0.0", path: "/tenants/:tenant/mcp", auth });
 * ```
 *
 * @throws {TypeError} if an option is missing, unknown or invalid.
 * @see specification/2026-07-28/basic/authorization
 */
export function oauth<const S extends Schema = StandardSchema<Claims>>(
  options: OAuthOptions<S>,
): Authentication<OAuthPrincipal<Infer<S>>>;
export function oauth(options: OAuthOptions<Schema>): Authentication {
  return new ResourceServer(options);
}

interface Presented {
  readonly scheme: TokenScheme;
  readonly token: string;
  readonly resource: Resource;
}

/** The time of a request in milliseconds since 1970, and the server that serves the request. */
interface Moment {
  readonly now: number;
  readonly server: ServerHandle | undefined;
}

class ResourceServer implements Authentication<OAuthPrincipal> {
  readonly [UNREADY]: Authentication[typeof UNREADY];
  readonly credentials = { headers: ["authorization", PROOF], query: [QUERY] };
  readonly challenge: Resources["challenge"];
  readonly routes: Resources["routes"];
  readonly satisfies: Authentication["satisfies"];
  readonly #toResource: Resources["at"];
  readonly #rules: Omit<JwtRules, "audiences">;
  readonly #readScopes: (claims: Claims) => readonly string[] | undefined;
  readonly #claims: TypedClaims;
  readonly #introspect?: (token: string, info: AuthRequestInfo) => Promise<Introspected>;
  readonly #exchange?: TokenExchange;
  readonly #known = new KnownTokens();
  readonly #budget = new FailureBudget({ limit: "failuresPerPeer" });
  readonly #running = new SharedChecks<Verdict | AuthRefusal>();
  readonly #mustBeBound: boolean;

  constructor(options: OAuthOptions<Schema>) {
    checkOptions("use oauth()", options, OPTIONS);
    const { scopes = [], skewMs = 5000, algorithms = ALGORITHMS, type } = options;
    const send: Send = options.fetch ?? fetchOnce;
    if (!Array.isArray(options.issuers) || !options.issuers.length) {
      throw new TypeError(
        "Cannot use oauth(): issuers must be a list with at least one authorization server; write it in brackets",
      );
    }
    checkAlgorithms(algorithms);
    checkScopes(scopes, "the challenge of oauth()");
    if (scopes.includes("offline_access")) {
      throw new TypeError(
        "Cannot use oauth(): scopes contains offline_access, which is a scope for clients; remove offline_access from scopes",
      );
    }
    // Check the type. If `skewMs` were a string, adding it to a time would append digits, and expired tokens would be
    // accepted.
    if (!(typeof skewMs === "number" && skewMs >= 0 && skewMs <= MAX_SKEW_MS)) {
      throw new TypeError(
        `Cannot use oauth(): skewMs is ${show(skewMs)}; it must be a number from 0 to ${MAX_SKEW_MS}`,
      );
    }
    this.#rules = {
      issuers: new Map(options.issuers.map((issuer) => [issuer, new Issuer(issuer, send)])),
      algorithms,
      needsType: type !== undefined,
      skewMs,
    };
    const { introspection, exchange } = options;
    const { issuers } = this.#rules;
    const missing = [
      typeof introspection === "object" && checkClient(introspection, "oauth({ introspection })"),
      exchange && checkClient(exchange, "oauth({ exchange })"),
    ];
    this[UNREADY] = missing.find((error) => error instanceof TypeError);
    this.#introspect = introspection && toIntrospect(introspection, issuers, send);
    this.#exchange = exchange &&
      new TokenExchange(exchange, { issuer: findIssuer(issuers, exchange.issuer, "exchange"), send });
    this.#readScopes = options.readScopes ?? readGranted;
    this.#claims = new TypedClaims(options.claims, issuers);
    this.satisfies = options.satisfies;
    this.#mustBeBound = options.dpop !== undefined;
    const { at, challenge, routes } = readResources(options);
    this.checkPath = (path) => checkPath(options, path);
    this.#toResource = at;
    this.challenge = challenge;
    this.routes = routes;
  }

  readonly rechecks = () => true;
  readonly scheme = authScheme({ name: "oauth()", schemes: ["bearer", "dpop"], prefix: "oauth" });
  readonly checkPath: (path: string) => void;
  readonly readPrincipal = (principal: Principal): OAuthPrincipal | undefined => this.#claims.read(principal);
  // This property is an arrow function, because the server calls `authenticate` without its object.
  readonly authenticate: Authentication["authenticate"] = (request, info, server) => {
    if (this[UNREADY]) throw this[UNREADY];
    const { now } = info;
    // Fast path: look up the whole header in the cache before parsing the header, because most tokens are already in
    // the cache.
    const header = request.headers.get("Authorization") ?? "";
    const resource = this.#toResource(info);
    const { key } = resource;
    const known = this.#known.findHeader(key + header, now);
    if (known && known.thumbprint === undefined && !request.url.includes("?")) return toCurrent(known, now);
    const read = readToken(header, request.url);
    if (!("token" in read)) return refuseToken(read, resource);
    const presented = { ...read, resource };
    const { token } = presented;
    const found = known ?? this.#known.findHeader(key + PREFIX + token, now);
    if (found && found.thumbprint === undefined) return admitUnbound(found, presented, now);
    const admit = (found: Verdict | AuthRefusal) =>
      isRefusal(found) ? found : this.#admit(found, presented, { request, info, server });
    if (found) return info.refuseIfFull?.() ?? admit(found);
    const checked = this.#isUnknown(presented, now)
      ? this.#budget.run(() => toGuesser(info), info, () => this.#check(presented, info, server))
      : this.#check(presented, info, server);
    return isPromiseLike(checked) ? checked.then(admit) : admit(checked);
  };

  /** Tests whether the server would introspect the token, and does not remember the token. */
  #isUnknown({ token, resource: { key } }: Presented, now: number): boolean {
    return this.#introspect !== undefined && !readJwtHeader(token) && !this.#running.has(key + token) &&
      !this.#known.hasOpaque(key + token, now);
  }

  /** Verifies a token that is not in the cache, or joins the verification of the same token that is in progress. */
  #check(
    presented: Presented,
    info: AuthRequestInfo,
    server: ServerHandle | undefined,
  ): AuthRefusal | Verdict | Promise<Verdict | AuthRefusal> {
    const { token, resource: { key } } = presented;
    // The token may have been accepted while this request was delayed.
    const found = this.#known.findHeader(key + PREFIX + token, info.now);
    if (found) return found;
    const id = key + token;
    const joined = this.#running.join(id, info);
    if (joined) return joined.then(withoutCause);
    // Limit the number of concurrent checks per address, because the token may be invalid.
    return info.refuseIfFull?.() ??
      this.#running.start(id, info, (info) => this.#verify(presented, info, server));
  }

  /** If the token is bound to a key, returns a refusal if the request has no valid proof. */
  async #admit(
    verdict: Verdict,
    presented: Presented,
    { request, info, server }: {
      readonly request: Request;
      readonly info: AuthRequestInfo;
      readonly server: ServerHandle | undefined;
    },
  ): Promise<Principal | AuthRefusal> {
    const { thumbprint, principal: { id: principal } } = verdict;
    const { scheme, token, resource } = presented;
    if (thumbprint === undefined) return admitUnbound(verdict, presented, info.now);
    if (scheme !== "DPoP") {
      // The token may be stolen.
      const reason = "the token is bound to a key; send the token with the scheme DPoP and a proof";
      return refuseToken({ scheme, error: "invalid_token", reason, isBound: true }, resource);
    }
    // The recheck of an open stream needs no proof, because the request that opened the stream had a proof.
    if (info.isRecheck) return toCurrent(verdict, info.now);
    try {
      const proven = { request, token, thumbprint, principal, resource: resource.url };
      return await checkProof(proven, info, requireServer(server)) ?? toCurrent(verdict, info.now);
    } catch (error) {
      if (!(error instanceof InvalidProof)) throw error;
      return refuseToken({ scheme, error: "invalid_dpop_proof", reason: error.message }, resource);
    }
  }

  async #verify(
    presented: Presented,
    info: AuthRequestInfo,
    server: ServerHandle | undefined,
  ): Promise<Verdict | AuthRefusal> {
    try {
      const header = readJwtHeader(presented.token);
      return await (header
        ? this.#verifyJwt(presented, header, { now: info.now, server })
        : this.#verifyOpaque(presented, info, server));
    } catch (error) {
      if (error instanceof InvalidToken) {
        const { message: reason, detail } = error;
        return refuseToken({ scheme: presented.scheme, error: "invalid_token", reason, detail }, presented.resource);
      }
      if (!(error instanceof Unavailable)) throw error;
      return refuseRequest(503, {
        reason: "the token cannot be checked now; try again later",
        cause: error.readCauseOnce(),
      });
    }
  }

  async #verifyJwt(presented: Presented, header: JWTHeaderParameters, { now, server }: Moment): Promise<Verdict> {
    const rules = { ...this.#rules, audiences: presented.resource.audiences };
    const { issuer, claims, expiresAt, keys } = await verifyJwt(presented.token, { header, rules, now });
    const thumbprint = this.#readThumbprint(claims);
    const until = expiresAt + rules.skewMs;
    const principal = await this.#toPrincipal(issuer, claims, expiresAt);
    return this.#accept(presented, { principal, until, issuer, keys, thumbprint }, { now, server });
  }

  async #verifyOpaque(
    presented: Presented,
    info: AuthRequestInfo,
    server: ServerHandle | undefined,
  ): Promise<Verdict | AuthRefusal> {
    const { now } = info;
    const { token, resource } = presented;
    if (!this.#introspect) throw new InvalidToken("the token is not a signed JWT");
    const refused = this.#known.findRefused(resource.key + token, now);
    if (refused) throw refused;
    try {
      const { issuer, claims } = await this.#introspect(token, info);
      const rules = { ...this.#rules, audiences: resource.audiences };
      const expiresAt = checkClaims(claims, rules, now);
      const thumbprint = this.#readThumbprint(claims);
      const until = Math.min(now + INTROSPECTED_MS, (expiresAt ?? Infinity) + rules.skewMs);
      const principal = await this.#toPrincipal(issuer, withoutToken(claims, token), expiresAt);
      this.#known.addSeen(resource.key + token, now);
      return this.#accept(presented, { principal, until, issuer, thumbprint }, { now, server });
    } catch (error) {
      if (error instanceof InvalidToken) this.#known.refuse(resource.key + token, error, now);
      throw error;
    }
  }

  #readThumbprint(claims: Claims): string | undefined {
    const thumbprint = readThumbprint(claims);
    if (thumbprint !== undefined || !this.#mustBeBound) return thumbprint;
    throw new InvalidToken("the token is not bound to a key; request a token with DPoP");
  }

  async #toPrincipal(issuer: Issuer, claims: Claims, expiresAt: number | undefined): Promise<OAuthPrincipal> {
    const checked = await this.#claims.check(claims);
    const principal = toOAuthPrincipal(issuer.name, claims, { expiresAt, readScopes: this.#readScopes, checked });
    if (!principal) throw new InvalidToken("the token has no valid sub or client_id");
    this.#claims.add(principal);
    return principal;
  }

  #accept({ token, resource }: Presented, found: Verdict, { now, server }: Moment): Verdict {
    const { issuer } = found;
    const principal = this.#exchange?.bind(found.principal, requireServer(server), { token, issuer }) ??
      found.principal;
    const verdict = { ...found, principal };
    this.#known.accept({ key: resource.key, token }, verdict, now);
    return verdict;
  }

  /** Returns a function that removes all tokens from memory. */
  readonly start = (server: ServerHandle): () => void => {
    const stopExchange = this.#exchange?.start(server);
    return () => {
      stopExchange?.();
      this.#known.clear();
      this.#budget.clear();
      this.#running.clear();
      this.#exchange?.clear();
    };
  };
}

/** Throws if a function around `authenticate` has not passed the server on. Proofs and exchanges need the server. */
function requireServer(server: ServerHandle | undefined): ServerHandle {
  if (server) return server;
  throw new TypeError(
    "Cannot use oauth(): authenticate() has no server; pass the start function of oauth() on, and all three arguments",
  );
}

function admitUnbound(verdict: Verdict, { scheme, resource }: Presented, now: number): Principal | AuthRefusal {
  if (scheme === "Bearer") return toCurrent(verdict, now);
  return refuseToken({
    scheme,
    error: "invalid_token",
    reason: "the token is not bound to a key; send the token with the scheme Bearer",
  }, resource);
}

function refuseToken({ scheme, error, reason, detail, isBound }: TokenProblem, resource: Resource): AuthRefusal {
  // Send the challenges of both schemes only to clients that use DPoP, because other clients may read only the first
  // challenge.
  const all = scheme === "DPoP" || isBound ? resource.challenges : [resource.challenge];
  const isProblem = (each: Challenge) => all.length === 1 || each.scheme === (scheme ?? "Bearer");
  const challenge = all.map((each) =>
    error && isProblem(each) ? { ...each, params: { error, error_description: reason, ...each.params } } : each
  );
  return refuseRequest(error === "invalid_request" ? 400 : 401, { challenge, reason, detail });
}

interface Introspected {
  readonly issuer: Issuer;
  readonly claims: Claims;
}

function toIntrospect(
  options: NonNullable<OAuthOptions["introspection"]>,
  issuers: ReadonlyMap<string, Issuer>,
  send: Send,
): (token: string, info: AuthRequestInfo) => Promise<Introspected> {
  const toFound = (found: Claims | undefined, issuer: Issuer | undefined): Introspected => {
    // Check `active` here too, because a custom function may return the whole introspection response of an issuer.
    if (!found || found.active !== undefined && found.active !== true) {
      throw new InvalidToken("the token is not active");
    }
    if (!issuer) throw new InvalidToken("the issuer of the token is not trusted");
    checkKind(found);
    return { issuer, claims: found };
  };
  if (typeof options === "function") {
    const [only] = issuers.size === 1 ? issuers.values() : [];
    return async (token, { signal }) => {
      const found = await options(token, signal);
      if (found !== undefined && found !== null && !isObject(found)) {
        throw new TypeError(
          "Cannot introspect a token: the introspection function did not return an object; return the claims of the token, or undefined",
        );
      }
      return toFound(found, found?.iss === undefined ? only : issuers.get(String(found.iss)));
    };
  }
  const issuer = findIssuer(issuers, options.issuer, "introspection");
  const ask = createIntrospection(options, { issuer, send });
  return async (token, { now }) => {
    const found = await ask(token, now);
    return toFound(found, found?.iss === undefined || found.iss === issuer.name ? issuer : undefined);
  };
}

// If there are several issuers, require the `issuer` option, because an issuer must not receive the tokens or the
// secrets of another issuer.
function findIssuer(issuers: ReadonlyMap<string, Issuer>, name: string | undefined, place: string): Issuer {
  const [only] = issuers.values();
  const found = name !== undefined ? issuers.get(name) : issuers.size === 1 ? only : undefined;
  if (found) return found;
  throw new TypeError(
    `Cannot use oauth({ ${place} }): the issuer option is missing or is not in issuers; set issuer to one of issuers`,
  );
}

// Removes the cause of a refusal, because only the request that started the check reports the cause.
function withoutCause(found: Verdict | AuthRefusal): Verdict | AuthRefusal {
  return isRefusal(found) && found.cause !== undefined ? refuseRequest(found.status, { reason: found.reason }) : found;
}

const MAX_SKEW_MS = 300_000;

function checkAlgorithms(algorithms: readonly string[]): void {
  const wrong = algorithms.find((name) => !ALGORITHMS.includes(name));
  if (wrong === undefined && algorithms.length) return;
  const state = wrong === undefined ? "is empty" : `contains the unknown algorithm ${show(wrong)}`;
  throw new TypeError(`Cannot use oauth(): algorithms ${state}; use one or more of ${ALGORITHMS.join(", ")}`);
}
