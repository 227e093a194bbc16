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
  type AuthRoute,
  type Challenge,
  isRefusal,
  refuse,
} from "../../core/auth.ts";
import type { Principal } from "../../core/context.ts";
import { readScopes as checkScopes } from "../../core/scopes.ts";
import { type Bearer, PREFIX, QUERY, readBearer } from "./bearer.ts";
import { type Claims, type OAuthPrincipal, readGranted, type ReadScopes, toOAuthPrincipal } from "./caller.ts";
import { checkClaims, InvalidToken, toAudience } from "./claims.ts";
import {
  checkKind,
  createIntrospection,
  type Introspect,
  type IntrospectionOptions,
  withoutToken,
} from "./introspection.ts";
import { readSecureUrl, type Send } from "./http.ts";
import { Issuer, type IssuerKeys } from "./issuer.ts";
import { ALGORITHMS, type JwtRules, readJwtHeader, verifyJwt } from "./jwt.ts";
import { Unavailable } from "./loaded.ts";
import { createMetadataRoutes, toMetadataUrl } from "./metadata.ts";
import { TokenCache } from "./token_cache.ts";
import { type ExchangeOptions, shareExchange, TokenExchange } from "./token_exchange.ts";

/** Options of {@linkcode oauth}. Only `resource` and `issuers` are required. */
export interface OAuthOptions {
  /**
   * URL of the server's endpoint as clients write it, such as `https://mcp.example.com/mcp`. Behind a proxy this is the
   * public URL. Tokens must be issued for it. Plain http is for loopback only.
   */
  readonly resource: string;
  /**
   * URLs of the authorization servers whose tokens are accepted, exactly as in the claim `iss` of their tokens. Their
   * keys are found through their metadata and loaded when a token first needs them. Plain http is for loopback only.
   */
  readonly issuers: readonly string[];
  /**
   * Audiences that are accepted besides `resource`, for issuers that name something else in `aud`, such as
   * `api://notes`. Defaults to none.
   */
  readonly audience?: string | readonly string[];
  /**
   * Scopes for basic use, which clients ask for first. They are announced and not demanded: demand them with `scopes` of
   * handlers. Defaults to none.
   */
  readonly scopes?: readonly string[];
  /**
   * Decides whether the scopes of a caller cover all that an operation needs. Defaults to whether they include each of
   * them.
   */
  readonly satisfies?: (granted: readonly string[], needed: readonly string[]) => boolean;
  /**
   * Reads the scopes of a token. Defaults to the claim `scope`, else `scp`. A token without scopes grants none.
   */
  readonly readScopes?: ReadScopes;
  /**
   * Signature algorithms of JWTs that are accepted. Defaults to all with a public key: RS256, RS384, RS512, PS256,
   * PS384, PS512, ES256, ES384, ES512, EdDSA and Ed25519.
   */
  readonly algorithms?: readonly string[];
  /**
   * The `typ` that JWTs must have. By default, tokens of type `at+jwt`, of type `JWT` and without type are accepted. Set
   * it if all issuers mark their access tokens, so that no other token of theirs is mistaken for one.
   */
  readonly type?: "at+jwt";
  /** Difference between the clocks of this server and an issuer that is tolerated, in milliseconds. Defaults to 5000. */
  readonly skewMs?: number;
  /** Further fields of the metadata, such as `resource_name` and `resource_documentation`. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /**
   * Whether the metadata is also at `/.well-known/oauth-protected-resource`, for clients that look nowhere else. Defaults
   * to `false`, because a host may have several resources.
   */
  readonly rootMetadata?: boolean;
  /**
   * How tokens that are no JWTs are checked at their issuer, or a function that finds out what they stand for. Defaults
   * to not accepting them. The answers are kept for 30 seconds, because tokens can be revoked.
   */
  readonly introspection?: IntrospectionOptions | Introspect;
  /**
   * How the tokens of callers are exchanged for tokens that other servers accept. Then handlers can use
   * {@linkcode exchangeToken}.
   */
  readonly exchange?: ExchangeOptions;
  /** Sends the requests to issuers, for example through a proxy. Defaults to the global `fetch`. */
  readonly fetch?: Send;
}

/** The authentication of a protected server, for `auth` of `createServer`. */
export interface OAuthAuthentication extends Authentication {
  /** Endpoints of the metadata. The server answers them. They can also be mounted by hand under a router. */
  readonly routes: readonly AuthRoute[];
}

/**
 * Authenticates callers by access tokens of OAuth authorization servers. The id of a principal has the issuer and the
 * subject of the token, see {@linkcode toPrincipalId}.
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
 * @throws {TypeError} if an option cannot be used.
 * @see specification/2026-07-28/basic/authorization
 */
export function oauth(options: OAuthOptions): OAuthAuthentication {
  return new ResourceServer(options);
}

const LIMITS = { entries: 10_000, characters: 16 * 1024 * 1024 };
const REFUSED_LIMITS = { entries: 1000, characters: 1024 * 1024 };
/** Time for which the answer to an introspection is kept, in milliseconds. */
const INTROSPECTED_MS = 30_000;

/** Facts about an accepted token. */
interface Verdict {
  readonly principal: OAuthPrincipal;
  /** Time until which the token is accepted, in milliseconds since 1970. */
  readonly until: number;
  readonly issuer: Issuer;
  /** The keys that verified it. An opaque token has none. */
  readonly keys?: IssuerKeys;
}

class ResourceServer implements OAuthAuthentication {
  readonly credentials = { headers: ["authorization"], query: [QUERY] };
  readonly challenge: Challenge;
  readonly routes: readonly AuthRoute[];
  readonly satisfies: Authentication["satisfies"];
  readonly #rules: JwtRules;
  readonly #readScopes: ReadScopes;
  readonly #introspect?: (token: string, facts: AuthFacts) => Promise<Introspected>;
  readonly #exchange?: TokenExchange;
  /** By `Authorization` header, as most clients write it. */
  readonly #accepted = new TokenCache<Verdict>(LIMITS);
  /** Why opaque tokens are refused. */
  readonly #refused = new TokenCache<InvalidToken>(REFUSED_LIMITS);
  readonly #running = new Map<string, Promise<Principal | AuthRefusal>>();

  constructor(options: OAuthOptions) {
    const { scopes = [], audience = [], skewMs = 5000, algorithms = ALGORITHMS, type } = options;
    const resource = readResource(options.resource);
    const send: Send = options.fetch ?? ((url, init) => fetch(url, init));
    if (!Array.isArray(options.issuers) || !options.issuers.length) {
      throw new TypeError("Cannot use oauth(): issuers is empty; name at least one authorization server");
    }
    checkAlgorithms(algorithms);
    checkScopes(scopes, "the challenge of oauth()");
    if (scopes.includes("offline_access")) {
      throw new TypeError("Cannot use oauth(): offline_access is for clients and issuers; remove it from scopes");
    }
    if (!(skewMs >= 0 && skewMs <= MAX_SKEW_MS)) {
      throw new TypeError(`Cannot use oauth(): skewMs must be a number from 0 to ${MAX_SKEW_MS}`);
    }
    const name = toName(options.resource, resource);
    this.#rules = {
      issuers: new Map(options.issuers.map((issuer) => [issuer, new Issuer(issuer, send)])),
      audiences: new Set([name, ...[audience].flat()].map(toAudience)),
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
    this.satisfies = options.satisfies;
    const scope = scopes.join(" ");
    this.challenge = {
      scheme: "Bearer",
      params: { resource_metadata: toMetadataUrl(resource), ...scope && { scope } },
    };
    const metadata = {
      ...options.metadata,
      resource: name,
      authorization_servers: options.issuers,
      ...scope && { scopes_supported: scopes },
      bearer_methods_supported: ["header"],
    };
    this.routes = createMetadataRoutes(resource, { metadata, atRoot: options.rootMetadata ?? false });
  }

  // An own property, because it is called without its object.
  readonly authenticate: Authentication["authenticate"] = (request, facts) => {
    const { now } = facts;
    // Most tokens are known. Their header needs no reading.
    const header = request.headers.get("Authorization") ?? "";
    const known = this.#find(header, now);
    if (known && !request.url.includes("?")) return toCurrent(known, now);
    const bearer = readBearer(header, request.url);
    if (!("token" in bearer)) return this.#refuse(bearer);
    const { token } = bearer;
    const found = known ?? this.#find(PREFIX + token, now);
    if (found) return toCurrent(found, now);
    const running = this.#running.get(token);
    if (running) return running.then(withoutCause);
    const forget = () => void (this.#running.get(token) === verifying && this.#running.delete(token));
    const verifying = this.#verify(token, facts).finally(forget);
    this.#running.set(token, verifying);
    // A check that ignores the signal may never end. Later requests must not wait for it too.
    facts.signal.addEventListener("abort", forget, { once: true });
    return verifying;
  };

  #find(header: string, now: number): Verdict | undefined {
    const known = this.#accepted.get(header, now);
    // New keys of an issuer may leave out the one that verified the token.
    return known && (!known.keys || known.issuer.latestKeys === known.keys) ? known : undefined;
  }

  async #verify(token: string, facts: AuthFacts): Promise<Principal | AuthRefusal> {
    try {
      const header = readJwtHeader(token);
      return header ? await this.#verifyJwt(token, header, facts.now) : await this.#verifyOpaque(token, facts);
    } catch (error) {
      if (error instanceof InvalidToken) return this.#refuse({ error: "invalid_token", reason: error.message });
      if (!(error instanceof Unavailable)) throw error;
      return refuse(503, { reason: "its token cannot be checked now", cause: error.takeCause() });
    }
  }

  async #verifyJwt(token: string, header: JWTHeaderParameters, now: number): Promise<Principal> {
    const { issuer, claims, expiresAt, keys } = await verifyJwt(token, { header, rules: this.#rules, now });
    const until = expiresAt + this.#rules.skewMs;
    return this.#accept(token, { principal: this.#toPrincipal(issuer, claims, expiresAt), until, issuer, keys }, now);
  }

  async #verifyOpaque(token: string, facts: AuthFacts): Promise<Principal> {
    const { now } = facts;
    if (!this.#introspect) throw new InvalidToken("the token is malformed");
    const refused = this.#refused.get(token, now);
    if (refused) throw refused;
    try {
      const { issuer, claims } = await this.#introspect(token, facts);
      const expiresAt = checkClaims(claims, this.#rules, now);
      const until = Math.min(now + INTROSPECTED_MS, (expiresAt ?? Infinity) + this.#rules.skewMs);
      const principal = this.#toPrincipal(issuer, withoutToken(claims, token), expiresAt);
      return this.#accept(token, { principal, until, issuer }, now);
    } catch (error) {
      if (error instanceof InvalidToken) {
        this.#refused.set(token, { value: error, until: now + INTROSPECTED_MS }, now);
      }
      throw error;
    }
  }

  #toPrincipal(issuer: Issuer, claims: Claims, expiresAt: number | undefined): OAuthPrincipal {
    const principal = toOAuthPrincipal(issuer.name, claims, { expiresAt, readScopes: this.#readScopes });
    if (principal) return principal;
    throw new InvalidToken("the token names no subject");
  }

  #accept(token: string, verdict: Verdict, now: number): Principal {
    this.#exchange?.bind(verdict.principal, token, verdict.issuer);
    const characters = token.length + JSON.stringify(verdict.principal.claims).length;
    this.#accepted.set(PREFIX + token, { value: verdict, until: verdict.until, characters }, now);
    return toCurrent(verdict, now);
  }

  #refuse({ error, reason }: Exclude<Bearer, { readonly token: string }>): AuthRefusal {
    if (!error) return refuse(401, { challenge: this.challenge, reason });
    const { scheme, params } = this.challenge;
    const challenge = { scheme, params: { error, error_description: reason, ...params } };
    return refuse(error === "invalid_request" ? 400 : 401, { challenge, reason });
  }

  /** Forgets all tokens. */
  close(): void {
    this.#accepted.clear();
    this.#refused.clear();
    this.#exchange?.clear();
  }
}

function toCurrent({ principal, until }: Verdict, now: number): Principal {
  if (principal.expiresAt === undefined || now < principal.expiresAt) return principal;
  // The token has expired by this server's clock, and perhaps not by that of its issuer.
  const late = Object.freeze({ ...principal, expiresAt: until });
  shareExchange(principal, late);
  return late;
}

/** Facts about an opaque token. */
interface Introspected {
  readonly issuer: Issuer;
  readonly claims: Claims;
}

function toIntrospect(
  options: IntrospectionOptions | Introspect,
  issuers: ReadonlyMap<string, Issuer>,
  send: Send,
): (token: string, facts: AuthFacts) => Promise<Introspected> {
  const toFound = (found: Claims | undefined, issuer: Issuer | undefined): Introspected => {
    if (!found) throw new InvalidToken("the token is not active");
    if (!issuer) throw new InvalidToken("the token has another issuer");
    checkKind(found);
    return { issuer, claims: found };
  };
  if (typeof options === "function") {
    const [only] = issuers.size === 1 ? issuers.values() : [];
    return async (token, { signal }) => {
      const found = await options(token, signal);
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

// One issuer must not get the tokens or the secrets of another.
function findIssuer(issuers: ReadonlyMap<string, Issuer>, name: string | undefined, place: string): Issuer {
  const [only] = issuers.values();
  const found = name !== undefined ? issuers.get(name) : issuers.size === 1 ? only : undefined;
  if (found) return found;
  throw new TypeError(`Cannot use oauth({ ${place} }): name one of the issuers as its issuer`);
}

// The request that started the check reports its error.
function withoutCause(found: Principal | AuthRefusal): Principal | AuthRefusal {
  return isRefusal(found) && found.cause !== undefined ? refuse(found.status, { reason: found.reason }) : found;
}

const MAX_SKEW_MS = 300_000;

function readResource(text: string): URL {
  const url = readSecureUrl(text);
  if (url) return url;
  const state = "it must be the endpoint's URL over https without fragment; http is for loopback only";
  throw new TypeError(`Cannot use the resource ${JSON.stringify(text)}: ${state}`);
}

/** The name of a resource: scheme and host in lower case, and no slash that was not written. */
function toName(text: string, { href, origin, pathname, search }: URL): string {
  return pathname === "/" && !search && !text.endsWith("/") ? origin : href;
}

function checkAlgorithms(algorithms: readonly string[]): void {
  const wrong = algorithms.find((name) => !ALGORITHMS.includes(name));
  if (wrong === undefined && algorithms.length) return;
  throw new TypeError(`Cannot use the algorithm ${JSON.stringify(wrong)}: use some of ${ALGORITHMS.join(", ")}`);
}
