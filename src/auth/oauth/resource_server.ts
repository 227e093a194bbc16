/**
 * Authenticates callers by access tokens of OAuth authorization servers.
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
import type { JWTHeaderParameters } from "jose";
import {
  type Authentication,
  type AuthFacts,
  type AuthRefusal,
  type Challenge,
  FIND_PLACE,
  isRefusal,
  READ_PRINCIPAL,
  RECHECKS,
  refuseRequest,
  SCHEME,
} from "../../core/auth.ts";
import { USED } from "../../core/used_ids.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import type { Infer, Schema, StandardSchema } from "../../schema/schema.ts";
import type { Principal } from "../../core/call/context.ts";
import { withExpiry } from "../../core/call/principal.ts";
import { checkOptions, type KnownOptions } from "../../core/call/known_options.ts";
import { readScopes as checkScopes } from "../../core/call/scopes.ts";
import { CHECK_PATH } from "../../core/call/internals.ts";
import { toScheme } from "../scheme_list.ts";
import { type Claims, type OAuthPrincipal, toOAuthPrincipal } from "./caller.ts";
import { checkClaims, InvalidToken, readGranted, readThumbprint } from "./claims.ts";
import { InvalidProof, PROOF, Proofs } from "./dpop.ts";
import { checkKind, createIntrospection, type IntrospectionOptions, withoutToken } from "./introspection.ts";
import { FailureBudget } from "./failure_budget.ts";
import type { Send } from "./http.ts";
import { Issuer, type IssuerKeys } from "./issuer.ts";
import { ALGORITHMS, type JwtRules, readJwtHeader, verifyJwt } from "./jwt.ts";
import { Unavailable } from "./loaded.ts";
import type { MetadataRoute } from "./metadata.ts";
import { CLIENT } from "./oauth_client.ts";
import { type ByPath, checkPath, readResources, type Resource, type Resources } from "./resource.ts";
import { TokenCache } from "./token_cache.ts";
import { PREFIX, QUERY, readToken, type TokenProblem, type TokenScheme } from "./token_header.ts";
import { type ExchangeOptions, shareExchange, TokenExchange } from "./token_exchange.ts";
import { TypedClaims } from "./typed_claims.ts";

/** Options of {@linkcode oauth}. Only `resource` and `issuers` are required. `S` is the schema of the claims. */
export interface OAuthOptions<S extends Schema = StandardSchema<Claims>> {
  /**
   * URL of the server's endpoint as clients write it, such as `https://mcp.example.com/mcp`. Behind a proxy, this is
   * the public URL. Tokens must be issued for this URL. Plain http is allowed only on loopback.
   *
   * For a path with parameters, pass a function that returns the resource of each concrete path. It gets the parameters
   * as `params` converted them, with strings URL-encoded. It runs for every request, so it must be fast.
   */
  readonly resource: string | ByPath<string>;
  /**
   * URLs of the authorization servers whose tokens are accepted, exactly as in the claim `iss` of their tokens. The
   * server finds their keys through their metadata, and loads the keys when a token first needs them. Plain http is
   * allowed on loopback only.
   */
  readonly issuers: readonly string[];
  /**
   * Audiences that are accepted besides `resource`, for issuers that put another name into `aud`, such as
   * `api://notes`. Must be a function if `resource` is a function. Defaults to none.
   */
  readonly audience?: string | readonly string[] | ByPath<string | readonly string[]>;
  /**
   * Scopes for basic use, which clients request first. The server announces these scopes but does not require them: to
   * require scopes, use the option `scopes` of handlers. Defaults to none.
   */
  readonly scopes?: readonly string[];
  /**
   * Decides whether the scopes of a caller are enough for an operation. Grants access only by returning `true`. By
   * default, the caller's scopes must include each needed scope.
   */
  readonly satisfies?: (granted: readonly string[], needed: readonly string[]) => boolean;
  /**
   * Reads the scopes of a token as a list. Defaults to the claim `scope`, otherwise `scp`. A token without scopes does
   * not grant any scope, and no token can grant `allScopes`.
   */
  readonly readScopes?: (claims: Claims) => readonly string[] | undefined;
  /**
   * Schema of the claims that handlers read, such as `z.object({ roles: z.array(z.string()) })`. A token whose claims
   * do not match gets HTTP 401, and `observer.auth` receives the reason. `requirePrincipal(ctx, auth).claims` is the
   * output of the schema. Defaults to all claims, unchecked.
   */
  readonly claims?: S;
  /**
   * Signature algorithms that are accepted for JWTs. Defaults to all algorithms with a public key: RS256, RS384, RS512,
   * PS256, PS384, PS512, ES256, ES384, ES512, EdDSA and Ed25519.
   */
  readonly algorithms?: readonly string[];
  /**
   * The `typ` that JWTs must have. By default, tokens of type `at+jwt`, of type `JWT` and without a type are accepted.
   * Set this option if all issuers mark their access tokens, so that no other token of these issuers is accepted as an
   * access token.
   */
  readonly type?: "at+jwt";
  /**
   * Whether each token must be bound to a key of its client (DPoP), so that a stolen token cannot be used. By default,
   * a token that is bound to a key is accepted with a proof, and a token that is not bound is accepted without a proof.
   */
  readonly dpop?: "required";
  /** Tolerated difference between the clocks of this server and of an issuer, in milliseconds. Defaults to 5000. */
  readonly skewMs?: number;
  /** Further fields of the metadata, such as `resource_name` and `resource_documentation`. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /**
   * Whether to serve the metadata also at `/.well-known/oauth-protected-resource`, for clients that look for it only
   * there. Defaults to `false`, because a host may have several resources.
   */
  readonly rootMetadata?: boolean;
  /**
   * How the server checks tokens that are not JWTs: options of an introspection at their issuer, or a function that
   * returns their claims. By default, such tokens are refused. A result is cached for 30 seconds, and not longer,
   * because tokens can be revoked.
   */
  readonly introspection?:
    | IntrospectionOptions
    | ((token: string, signal: AbortSignal) => Claims | undefined | Promise<Claims | undefined>);
  /**
   * How the server exchanges the tokens of callers for tokens that other servers accept. Required if handlers use
   * {@linkcode exchangeToken}.
   */
  readonly exchange?: ExchangeOptions;
  /** Sends the requests to issuers, for example through a proxy. Defaults to the global `fetch`. */
  readonly fetch?: Send;
}

const INTROSPECTION: KnownOptions<keyof IntrospectionOptions> = {
  names: { ...CLIENT.names, issuer: true, endpoint: true },
  hints: { ...CLIENT.hints, introspectionEndpoint: "endpoint", url: "endpoint" },
  hasOtherForms: true,
};

const EXCHANGE: KnownOptions<keyof ExchangeOptions> = {
  names: { ...CLIENT.names, issuer: true },
  hints: CLIENT.hints,
};

const DEMANDED = "demand scopes with the option scopes of handlers";

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
    issuer: "issuers",
    authorizationServers: "issuers",
    audiences: "audience",
    algs: "algorithms",
    scopesSupported: "scopes",
    claimsSchema: "claims",
    clockSkew: "skewMs",
    clockTolerance: "skewMs",
  },
  elsewhere: { requiredScopes: DEMANDED, requireScopes: DEMANDED },
};

/**
 * The authentication of a server with a single resource, for `auth` of `createServer`. `C` is the type of the claims of
 * its callers.
 */
export interface OAuthAuthentication<C = Claims> extends Authentication<OAuthPrincipal<C>> {
  /** The challenge for callers without a token. */
  readonly challenge: Challenge;
  /** Endpoints of the metadata. The server serves them itself; below a router, you can also mount them by hand. */
  readonly routes: readonly MetadataRoute[];
}

/**
 * Authenticates callers by access tokens of OAuth authorization servers. The id of a principal contains the issuer and
 * the subject of the token, see {@linkcode toPrincipalId}.
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
 * Authenticates callers of a server whose path has parameters. Each concrete path is a separate protected resource: a
 * token for one path is refused at all other paths.
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

const LIMITS = { entries: 10_000, characters: 16 * 1024 * 1024 };
const REFUSED_LIMITS = { entries: 1000, characters: 1024 * 1024 };
/** Time for which the result of an introspection is kept, in milliseconds. */
const INTROSPECTED_MS = 30_000;

/** Facts about an accepted token. */
interface Verdict {
  readonly principal: OAuthPrincipal;
  /** The principal to use after the token has expired, within the tolerated clock difference. */
  late?: OAuthPrincipal;
  /** Time until which the token is accepted, in milliseconds since 1970. */
  readonly until: number;
  readonly issuer: Issuer;
  /** The keys that verified the token. `undefined` for an opaque token. */
  readonly keys?: IssuerKeys;
  /** Thumbprint of the key that the token is bound to. Each request with this token needs a proof. */
  readonly thumbprint?: string;
}

/** A token, and the resource it was presented to. */
interface Presented {
  readonly scheme: TokenScheme;
  readonly token: string;
  readonly resource: Resource;
}

class ResourceServer implements Authentication<OAuthPrincipal> {
  readonly credentials = { headers: ["authorization", PROOF], query: [QUERY] };
  readonly challenge: Resources["challenge"];
  readonly routes: Resources["routes"];
  readonly satisfies: Authentication["satisfies"];
  readonly #toResource: Resources["at"];
  readonly #rules: Omit<JwtRules, "audiences">;
  readonly #readScopes: (claims: Claims) => readonly string[] | undefined;
  readonly #claims: TypedClaims;
  readonly #introspect?: (token: string, facts: AuthFacts) => Promise<Introspected>;
  readonly #exchange?: TokenExchange;
  /** Accepted tokens. The key consists of the resource and the `Authorization` header as most clients write it. */
  readonly #accepted = new TokenCache<Verdict>(LIMITS);
  /** The reasons for which opaque tokens were refused. */
  readonly #refused = new TokenCache<InvalidToken>(REFUSED_LIMITS);
  readonly #budget = new FailureBudget();
  readonly #running = new Map<string, Promise<Verdict | AuthRefusal>>();
  readonly #proofs = new Proofs();
  readonly #mustBeBound: boolean;

  constructor(options: OAuthOptions<Schema>) {
    checkOptions("use oauth()", options, OPTIONS);
    const { scopes = [], skewMs = 5000, algorithms = ALGORITHMS, type } = options;
    const send: Send = options.fetch ?? ((url, init) => fetch(url, init));
    if (!Array.isArray(options.issuers) || !options.issuers.length) {
      throw new TypeError("Cannot use oauth(): issuers is empty; name at least one authorization server");
    }
    checkAlgorithms(algorithms);
    checkScopes(scopes, "the challenge of oauth()");
    if (scopes.includes("offline_access")) {
      throw new TypeError("Cannot use oauth(): offline_access is for clients and issuers; remove it from scopes");
    }
    // Check the type: a number plus a string would be a string, which would compare as later than any time.
    if (!(typeof skewMs === "number" && skewMs >= 0 && skewMs <= MAX_SKEW_MS)) {
      throw new TypeError(`Cannot use oauth(): skewMs must be a number from 0 to ${MAX_SKEW_MS}`);
    }
    this.#rules = {
      issuers: new Map(options.issuers.map((issuer) => [issuer, new Issuer(issuer, send)])),
      algorithms,
      needsType: type !== undefined,
      skewMs,
    };
    const { introspection, exchange } = options;
    const { issuers } = this.#rules;
    this.#introspect = introspection && toIntrospect(introspection, issuers, send);
    this.#exchange = exchange &&
      new TokenExchange(exchange, { issuer: findIssuer(issuers, exchange.issuer, "exchange"), send });
    this.#readScopes = options.readScopes ?? readGranted;
    this.#claims = new TypedClaims(options.claims, issuers);
    this.satisfies = options.satisfies;
    this.#mustBeBound = options.dpop !== undefined;
    const { at, challenge, routes } = readResources(options);
    this[CHECK_PATH] = (path) => checkPath(options, path);
    this.#toResource = at;
    this.challenge = challenge;
    this.routes = routes;
  }

  readonly [RECHECKS] = () => true;
  readonly [SCHEME] = toScheme({ name: "oauth()", schemes: ["bearer", "dpop"], prefix: "oauth" });
  readonly [CHECK_PATH]: (path: string) => void;
  readonly [READ_PRINCIPAL] = (principal: Principal): OAuthPrincipal | undefined => this.#claims.read(principal);
  // An own property with an arrow function, because it is called without its object.
  readonly authenticate: Authentication["authenticate"] = (request, facts) => {
    const { now } = facts;
    // Fast path: most tokens are already in the cache, so their header need not be parsed.
    const header = request.headers.get("Authorization") ?? "";
    const resource = this.#toResource(facts);
    const { key } = resource;
    const known = this.#find(key + header, now);
    if (known && known.thumbprint === undefined && !request.url.includes("?")) return toCurrent(known, now);
    const read = readToken(header, request.url);
    if (!("token" in read)) return refuseToken(read, resource);
    const presented = { ...read, resource };
    const { token } = presented;
    const found = known ?? this.#find(key + PREFIX + token, now);
    if (found && found.thumbprint === undefined) return admitUnbound(found, presented, now);
    const running = this.#running.get(key + token);
    // Find out whether the address has too many open checks, before starting a check for a token that may be invalid.
    const full = facts[FIND_PLACE]?.();
    if (full) return full;
    const admit = (found: Verdict | AuthRefusal) =>
      isRefusal(found) ? found : this.#admit(found, presented, { request, facts });
    if (found) return this.#admit(found, presented, { request, facts });
    if (running) return running.then(withoutCause).then(admit);
    const forget = () => void (this.#running.get(key + token) === verifying && this.#running.delete(key + token));
    const verifying = this.#verify(presented, facts).finally(forget);
    this.#running.set(key + token, verifying);
    // Later requests must not wait for a check that ignores its signal, because it may never end.
    facts.signal.addEventListener("abort", forget, { once: true });
    return verifying.then(admit);
  };

  /**
   * Returns the caller of a request whose token is valid. If the token is bound to a key, the request must have a
   * proof.
   */
  async #admit(
    verdict: Verdict,
    presented: Presented,
    { request, facts }: { readonly request: Request; readonly facts: AuthFacts },
  ): Promise<Principal | AuthRefusal> {
    const { thumbprint, principal: { id: principal } } = verdict;
    const { scheme, token, resource } = presented;
    if (thumbprint === undefined) return admitUnbound(verdict, presented, facts.now);
    if (scheme !== "DPoP") return refuseToken({ scheme, error: "invalid_token", reason: UNPROVEN }, resource);
    // An open stream has used its proof when it was opened, so checking its token again requires no proof.
    if (facts[USED] === null) return toCurrent(verdict, facts.now);
    try {
      const proven = { request, token, thumbprint, principal, resource: resource.url };
      return await this.#proofs.check(proven, facts) ?? toCurrent(verdict, facts.now);
    } catch (error) {
      if (!(error instanceof InvalidProof)) throw error;
      return refuseToken({ scheme, error: "invalid_dpop_proof", reason: error.message }, resource);
    }
  }

  #find(key: string, now: number): Verdict | undefined {
    const known = this.#accepted.get(key, now);
    // Forget tokens when their issuer has new keys, because the new set may lack the key that verified the token.
    return known && (!known.keys || known.issuer.latestKeys === known.keys) ? known : undefined;
  }

  async #verify(presented: Presented, facts: AuthFacts): Promise<Verdict | AuthRefusal> {
    try {
      const header = readJwtHeader(presented.token);
      return await (header ? this.#verifyJwt(presented, header, facts.now) : this.#verifyOpaque(presented, facts));
    } catch (error) {
      if (error instanceof InvalidToken) {
        const { message: reason, detail } = error;
        return refuseToken({ scheme: presented.scheme, error: "invalid_token", reason, detail }, presented.resource);
      }
      if (!(error instanceof Unavailable)) throw error;
      return refuseRequest(503, { reason: "its token cannot be checked now", cause: error.takeCause() });
    }
  }

  async #verifyJwt(presented: Presented, header: JWTHeaderParameters, now: number): Promise<Verdict> {
    const rules = { ...this.#rules, audiences: presented.resource.audiences };
    const { issuer, claims, expiresAt, keys } = await verifyJwt(presented.token, { header, rules, now });
    const thumbprint = this.#readThumbprint(claims);
    const until = expiresAt + rules.skewMs;
    const principal = await this.#toPrincipal(issuer, claims, expiresAt);
    return this.#accept(presented, { principal, until, issuer, keys, thumbprint }, now);
  }

  async #verifyOpaque(presented: Presented, facts: AuthFacts): Promise<Verdict | AuthRefusal> {
    const { now } = facts;
    const { token, resource } = presented;
    if (!this.#introspect) throw new InvalidToken("the token is malformed");
    const refused = this.#refused.get(resource.key + token, now);
    if (refused) throw refused;
    const retryAfterMs = this.#budget.toWait(facts.peer, now);
    if (retryAfterMs !== undefined) return refuseRequest(429, { reason: TOO_MANY_WRONG, retryAfterMs });
    try {
      const { issuer, claims } = await this.#introspect(token, facts);
      const rules = { ...this.#rules, audiences: resource.audiences };
      const expiresAt = checkClaims(claims, rules, now);
      const thumbprint = this.#readThumbprint(claims);
      const until = Math.min(now + INTROSPECTED_MS, (expiresAt ?? Infinity) + rules.skewMs);
      const principal = await this.#toPrincipal(issuer, withoutToken(claims, token), expiresAt);
      return this.#accept(presented, { principal, until, issuer, thumbprint }, now);
    } catch (error) {
      if (error instanceof InvalidToken) {
        this.#budget.fail(facts.peer, now);
        this.#refused.set(resource.key + token, { value: error, until: now + INTROSPECTED_MS }, now);
      }
      throw error;
    }
  }

  #readThumbprint(claims: Claims): string | undefined {
    const thumbprint = readThumbprint(claims);
    if (thumbprint !== undefined || !this.#mustBeBound) return thumbprint;
    throw new InvalidToken("the token is not bound to a key; get one with DPoP");
  }

  async #toPrincipal(issuer: Issuer, claims: Claims, expiresAt: number | undefined): Promise<OAuthPrincipal> {
    const checked = await this.#claims.check(claims);
    const principal = toOAuthPrincipal(issuer.name, claims, { expiresAt, readScopes: this.#readScopes, checked });
    if (!principal) throw new InvalidToken("the token names no subject");
    this.#claims.add(principal);
    return principal;
  }

  #accept({ token, resource }: Presented, verdict: Verdict, now: number): Verdict {
    this.#exchange?.bind(verdict.principal, token, verdict.issuer);
    const key = resource.key + PREFIX + token;
    const characters = key.length + JSON.stringify(verdict.principal.claims).length;
    this.#accepted.set(key, { value: verdict, until: verdict.until, characters }, now);
    return verdict;
  }

  /** Forgets all tokens. */
  close(): void {
    this.#accepted.clear();
    this.#refused.clear();
    this.#budget.clear();
    this.#exchange?.clear();
  }
}

function toCurrent(verdict: Verdict, now: number): Principal {
  const { principal, until } = verdict;
  if (principal.expiresAt === undefined || now < principal.expiresAt) return principal;
  // The token has expired by the clock of this server, but perhaps not yet by the clock of its issuer.
  if (!verdict.late) {
    verdict.late = withExpiry(principal, until);
    shareExchange(principal, verdict.late);
  }
  return verdict.late;
}

/** Reason for refusing a bound token without a proof. The token may be stolen. */
const UNPROVEN = "the token is bound to a key; send it in the scheme DPoP, with a proof";

function admitUnbound(verdict: Verdict, { scheme, resource }: Presented, now: number): Principal | AuthRefusal {
  if (scheme === "Bearer") return toCurrent(verdict, now);
  return refuseToken({ scheme, error: "invalid_token", reason: "the token is not bound to a key" }, resource);
}

function refuseToken({ scheme, error, reason, detail }: TokenProblem, resource: Resource): AuthRefusal {
  // Send the DPoP challenge only to clients that use DPoP, because other clients may understand only the first
  // challenge.
  const all = scheme === "DPoP" || reason === UNPROVEN ? resource.challenges : [resource.challenge];
  const isProblem = (each: Challenge) => all.length === 1 || each.scheme === (scheme ?? "Bearer");
  const challenge = all.map((each) =>
    error && isProblem(each) ? { ...each, params: { error, error_description: reason, ...each.params } } : each
  );
  return refuseRequest(error === "invalid_request" ? 400 : 401, { challenge, reason, detail });
}

/** The issuer and the claims of an opaque token. */
interface Introspected {
  readonly issuer: Issuer;
  readonly claims: Claims;
}

function toIntrospect(
  options: NonNullable<OAuthOptions["introspection"]>,
  issuers: ReadonlyMap<string, Issuer>,
  send: Send,
): (token: string, facts: AuthFacts) => Promise<Introspected> {
  const toFound = (found: Claims | undefined, issuer: Issuer | undefined): Introspected => {
    // Check `active` here too, because a function may return the whole response of an issuer.
    if (!found || found.active !== undefined && found.active !== true) {
      throw new InvalidToken("the token is not active");
    }
    if (!issuer) throw new InvalidToken("the token has another issuer");
    checkKind(found);
    return { issuer, claims: found };
  };
  if (typeof options === "function") {
    const [only] = issuers.size === 1 ? issuers.values() : [];
    return async (token, { signal }) => {
      const found = await options(token, signal);
      if (found !== undefined && found !== null && !isObject(found)) {
        throw new TypeError(
          "Cannot introspect a token: the function returned no object; return its claims or undefined",
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

// Require the name if there are several issuers, because an issuer must not get the tokens or the secrets of another
// issuer.
function findIssuer(issuers: ReadonlyMap<string, Issuer>, name: string | undefined, place: string): Issuer {
  const [only] = issuers.values();
  const found = name !== undefined ? issuers.get(name) : issuers.size === 1 ? only : undefined;
  if (found) return found;
  throw new TypeError(`Cannot use oauth({ ${place} }): name one of the issuers as its issuer`);
}

// Remove the cause, because the request that started the check reports it.
function withoutCause(found: Verdict | AuthRefusal): Verdict | AuthRefusal {
  return isRefusal(found) && found.cause !== undefined ? refuseRequest(found.status, { reason: found.reason }) : found;
}

const TOO_MANY_WRONG = "too many tokens from this address were refused; try again later";

const MAX_SKEW_MS = 300_000;

function checkAlgorithms(algorithms: readonly string[]): void {
  const wrong = algorithms.find((name) => !ALGORITHMS.includes(name));
  if (wrong === undefined && algorithms.length) return;
  throw new TypeError(`Cannot use the algorithm ${JSON.stringify(wrong)}: use some of ${ALGORITHMS.join(", ")}`);
}
