/**
 * The providers at which users sign in: GitHub, Google, Microsoft Entra, and any other provider of OAuth or OpenID Connect.
 */
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from "jose";
import { toBasicCredentials } from "../../../core/kit/basic_credentials.ts";
import type { TextResponse } from "../../../core/kit/body_pieces.ts";
import { deadline } from "../../../core/kit/deadline.ts";
import { parseJson } from "../../../core/kit/json.ts";
import { hideCredentials } from "../../../core/kit/url_text.ts";
import { checkOptions, type KnownOptions } from "../../../core/known_options.ts";
import { quote } from "../../../core/protocol/errors.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import { isScope } from "../../../server/call/scopes.ts";
import { isUnset } from "../../principal.ts";
import { InvalidToken } from "../claims.ts";
import { readSecureUrl, type Send, sendText, TIMEOUT_MS } from "../http.ts";
import { isKeySet, loadIssuerMetadata, readEndpoint } from "../issuer.ts";
import { ALGORITHMS } from "../jwt.ts";
import { Loaded } from "../loaded.ts";
import type { Provider, ProviderCall, ProviderEndpoints, ProviderTokens, ProviderUser, UserCall } from "./provider.ts";

/** Options of each provider: the client that the author has registered at the provider. */
export interface ProviderClient {
  /**
   * Id of the client. If it is empty, or `undefined` from an unset environment variable, `clientId` of the provider is an
   * empty string.
   */
  readonly clientId: string | undefined;
  /** Secret of the client. An unset secret becomes an empty string, like an unset `clientId`. */
  readonly clientSecret: string | undefined;
  /** Scopes to request from the provider. The default depends on the provider. */
  readonly scopes?: readonly string[];
}

const CLIENT = { clientId: true, clientSecret: true, scopes: "texts" } as const;
const HINTS = { id: "clientId", secret: "clientSecret", scope: "scopes" } as const;

/** Options of {@linkcode github}. */
export interface GitHubOptions extends ProviderClient {
  /**
   * Scopes to request, such as `["repo", "user:email"]`. A GitHub App has permissions instead of scopes. Defaults to no
   * scopes, which allows access to public data.
   */
  readonly scopes?: readonly string[];
  /** Whether GitHub always shows its account picker. Defaults to `false`. */
  readonly selectAccount?: boolean;
}

const GITHUB: KnownOptions<keyof GitHubOptions> = { names: { ...CLIENT, selectAccount: "boolean" }, hints: HINTS };
const GITHUB_API = "https://api.github.com";
/** Scopes that allow a client to list the e-mail addresses of the user. `read:user` does not allow it. */
const GITHUB_EMAIL = ["user:email", "user"];

/**
 * Signs users in at GitHub, with an OAuth App or a GitHub App. The id of a user is the numeric id, because a login can be
 * renamed and then belong to another user. `email` is set only if the scope `user:email` was granted.
 *
 * `revoke` ends one token. The user's other tokens of the same app remain valid.
 *
 * @throws {TypeError} if an option is unknown or has the wrong type.
 */
export function github(options: GitHubOptions): Provider {
  checkOptions("use github()", options, GITHUB);
  const client = readClient("github()", options, []);
  const { clientId, clientSecret, scopes } = client;
  const url = "https://github.com/login/oauth";
  return {
    name: "GitHub",
    ...client,
    apis: [GITHUB_API],
    params: options.selectAccount ? { prompt: "select_account" } : {},
    endpoints: toConstant({ authorize: `${url}/authorize`, token: `${url}/access_token` }),
    async findUser({ accessToken }, call) {
      const get = (path: string) => sendTo("GitHub", `${GITHUB_API}${path}`, { headers: bearer(accessToken) }, call);
      const response = await get("/user");
      if (response.status === 401) return;
      const user = readObject("GitHub", response);
      const { id, login, name } = user;
      if (typeof id !== "number" || !Number.isSafeInteger(id)) throw toFailure("GitHub", "a user without an id");
      // GitHub App tokens have no such header, so the requested scopes show whether the author expects an e-mail address.
      const granted = response.headers.get("x-oauth-scopes")?.split(/[\s,]+/).filter(Boolean) ?? [];
      const canList = (granted.length ? granted : scopes).some((scope) => GITHUB_EMAIL.includes(scope));
      const email = canList ? readGitHubEmail(await get("/user/emails")) : undefined;
      return toUser({ subject: String(id), name: toText(name) ?? toText(login), email, facts: user });
    },
    isEnd: endsWith(["bad_refresh_token", "invalid_grant"]),
    async revoke({ accessToken }, call) {
      const init = {
        method: "DELETE",
        headers: { authorization: toBasicCredentials(clientId, clientSecret), "content-type": "application/json" },
        body: JSON.stringify({ access_token: accessToken }),
      };
      const path = `/applications/${encodeURIComponent(clientId)}/token`;
      const { status } = await sendTo("GitHub", GITHUB_API + path, init, call);
      // GitHub responds with 404 or 422 if the token is not valid any more.
      if (![204, 404, 422].includes(status)) throw toFailure("GitHub", `status ${status}`);
    },
  };

  function bearer(token: string): HeadersInit {
    return { accept: "application/vnd.github+json", authorization: `Bearer ${token}` };
  }
}

/** Returns the primary e-mail address if GitHub has verified it, or else the first verified address. */
function readGitHubEmail(response: TextResponse): string | undefined {
  const { status } = response;
  // The token of a GitHub App without the permission for e-mail addresses.
  if (status === 403 || status === 404) return;
  const list = status === 200 ? parseJson(response.text) : undefined;
  if (!Array.isArray(list)) throw toFailure("GitHub", `status ${status}, and no list of e-mail addresses`);
  const verified = list.filter(isObject).filter((each) => each.verified === true);
  return toText((verified.find((each) => each.primary === true) ?? verified[0])?.email);
}

/** Options of {@linkcode google}. */
export interface GoogleOptions extends ProviderClient {
  /** Scopes to request. Defaults to `["openid", "email", "profile"]`. `openid` is always requested. */
  readonly scopes?: readonly string[];
  /** Whether Google always shows its account picker. Defaults to `false`. */
  readonly selectAccount?: boolean;
  /** Domain of the Google Workspace organization to which users must belong. By default, every user can sign in. */
  readonly hostedDomain?: string;
}

const GOOGLE: KnownOptions<keyof GoogleOptions> = {
  names: { ...CLIENT, selectAccount: "boolean", hostedDomain: "text" },
  hints: { ...HINTS, hd: "hostedDomain", domain: "hostedDomain" },
};
/** Google's documentation allows both forms in the `iss` claim. */
const GOOGLE_ISSUERS = ["https://accounts.google.com", "accounts.google.com"];
const GOOGLE_APIS = [
  "https://www.googleapis.com",
  ...["calendar", "docs", "drive", "gmail", "people", "sheets", "slides", "tasks"].map((api) =>
    `https://${api}.googleapis.com`
  ),
];

/**
 * Signs users in at Google. Requests offline access, and asks for consent at each sign-in, because Google returns a
 * refresh token only then. `email` is set only if Google has verified it, and `facts.hd` is the organization of the user.
 *
 * `revoke` ends the user's whole authorization, because Google does not revoke single tokens. Therefore only the end of
 * the user's last sign-in revokes it.
 *
 * @throws {TypeError} if an option is unknown or has the wrong type.
 */
export function google(options: GoogleOptions): Provider {
  checkOptions("use google()", options, GOOGLE);
  const client = readClient("google()", options, ["openid", "email", "profile"], ["openid"]);
  const hostedDomain = options.hostedDomain?.toLowerCase() || undefined;
  const keys = keySource("Google", () => "https://www.googleapis.com/oauth2/v3/certs");
  const read = (claims: Readonly<Record<string, unknown>>) => {
    if (hostedDomain !== undefined && toText(claims.hd)?.toLowerCase() !== hostedDomain) {
      throw new InvalidToken("the user does not belong to the organization that is allowed to sign in (hd)");
    }
    return toOidcUser("Google", claims);
  };
  return {
    name: "Google",
    ...client,
    apis: GOOGLE_APIS,
    params: {
      access_type: "offline",
      prompt: options.selectAccount ? "select_account consent" : "consent",
      ...hostedDomain === undefined ? {} : { hd: hostedDomain },
    },
    endpoints: toConstant({
      authorize: "https://accounts.google.com/o/oauth2/v2/auth",
      token: "https://oauth2.googleapis.com/token",
    }),
    async findUser(tokens, call) {
      if (tokens.idToken !== undefined || call.nonce !== undefined) {
        return read(await verifyIdToken("Google", tokens, { ...client, call, keys, issuers: GOOGLE_ISSUERS }));
      }
      const claims = await loadUserinfo("Google", "https://openidconnect.googleapis.com/v1/userinfo", tokens, call);
      return claims && read(claims);
    },
    isEnd: endsWith(OIDC_ENDS),
    async revoke({ refreshToken, accessToken }, call) {
      if (call.hasOthers) return;
      const init = { method: "POST", body: new URLSearchParams({ token: refreshToken ?? accessToken }) };
      const { status } = await sendTo("Google", "https://oauth2.googleapis.com/revoke", init, call);
      // Google responds with 400 if the token is not valid any more.
      if (status !== 200 && status !== 400) throw toFailure("Google", `status ${status}`);
    },
  };
}

/** Options of {@linkcode entra}. */
export interface EntraOptions extends ProviderClient {
  /**
   * Id or domain of the tenant whose users sign in. `common`, `organizations` and `consumers` require `tenants`, because
   * otherwise every user of Microsoft could sign in.
   */
  readonly tenant: string;
  /** Scopes to request, such as `["User.Read"]`. `openid`, `profile` and `offline_access` are always requested. */
  readonly scopes?: readonly string[];
  /** Ids of the tenants whose users can sign in. Defaults to `tenant`. */
  readonly tenants?: readonly string[];
}

const ENTRA: KnownOptions<keyof EntraOptions> = {
  names: { ...CLIENT, tenant: "text", tenants: "texts" },
  hints: { ...HINTS, tenantId: "tenant" },
};
const ENTRA_HOST = "https://login.microsoftonline.com";
const ENTRA_ISSUER = /^https:\/\/login\.microsoftonline\.com\/([\da-f-]{36})\/v2\.0$/;
const TENANT_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
const SHARED_TENANTS = ["common", "organizations", "consumers"];

/**
 * Signs users in at Microsoft Entra ID. The id of a user is the tenant id, a dot and the object id of the user. `email` is
 * never set, because an administrator of a tenant can write any address into it.
 *
 * @throws {TypeError} if an option is unknown or has the wrong type, or if `tenant` would accept users of all tenants.
 */
export function entra(options: EntraOptions): Provider {
  checkOptions("use entra()", options, ENTRA);
  const { tenant, tenants } = options;
  checkTenant(tenant, tenants);
  const always = ["openid", "profile", "offline_access"];
  const client = readClient("entra()", options, always, always);
  const keys = keySource("Microsoft", () => `${ENTRA_HOST}/${tenant}/discovery/v2.0/keys`);
  const listed = tenants ?? (TENANT_ID.test(tenant) ? [tenant] : undefined);
  const tenantOfDomain = new Remote("the tenant of the domain", (send) => loadTenant(tenant, send));
  return {
    name: "Microsoft",
    ...client,
    apis: ["https://graph.microsoft.com"],
    params: {},
    endpoints: toConstant({
      authorize: `${ENTRA_HOST}/${tenant}/oauth2/v2.0/authorize`,
      token: `${ENTRA_HOST}/${tenant}/oauth2/v2.0/token`,
    }),
    async findUser(tokens, call) {
      const accepted = (listed ?? [await tenantOfDomain.get(call)]).map((each) => each.toLowerCase());
      const issuers = accepted.map((each) => `${ENTRA_HOST}/${each}/v2.0`);
      const claims = await verifyIdToken("Microsoft", tokens, { ...client, call, keys, issuers });
      const { tid, oid, name, preferred_username: username } = claims;
      if (typeof tid !== "string" || ENTRA_ISSUER.exec(claims.iss ?? "")?.[1] !== tid || !toText(oid)) {
        throw new InvalidToken("the ID token has no oid, or a tid that differs from its issuer");
      }
      return toUser({ subject: `${tid}.${oid}`, name: toText(name) ?? toText(username), facts: claims });
    },
    isEnd: endsWith(OIDC_ENDS),
  };
}

function checkTenant(tenant: unknown, tenants: readonly string[] | undefined): asserts tenant is string {
  if (typeof tenant !== "string" || !/^[\w-]+(\.[\w-]+)*$/.test(tenant)) {
    throw new TypeError(`Cannot use entra(): tenant must be the id or the domain of a tenant, such as "contoso.com"`);
  }
  if (tenants?.length === 0 || tenants?.some((each) => !TENANT_ID.test(each))) {
    throw new TypeError("Cannot use entra(): tenants must be a list of tenant ids");
  }
  if (!tenants && SHARED_TENANTS.includes(tenant.toLowerCase())) {
    throw new TypeError(
      `Cannot use entra(): tenant "${tenant}" accepts users of every tenant; set tenants to the ids of the tenants to accept`,
    );
  }
}

/** Returns the id of the tenant that a domain belongs to. */
async function loadTenant(domain: string, send: Send): Promise<string> {
  const accepts = (issuer: unknown) => ENTRA_ISSUER.test(String(issuer));
  const { issuer } = await loadIssuerMetadata(new URL(`${ENTRA_HOST}/${domain}/v2.0`), accepts, send);
  return String(issuer).replace(ENTRA_ISSUER, "$1");
}

/** Options of {@linkcode oidc}. */
export interface OidcOptions extends ProviderClient {
  /** Scopes to request. Defaults to `["openid", "email", "profile"]`. Many providers require `offline_access` too. */
  readonly scopes?: readonly string[];
  /** Origins that receive the user's token, such as `["https://api.example.com"]`. Defaults to no origins. */
  readonly apis?: readonly string[];
  /** Further parameters of the authorization request, such as `{ prompt: "consent" }`. */
  readonly params?: Readonly<Record<string, string>>;
  /** Name for the user. Defaults to the host of the issuer. */
  readonly name?: string;
}

const OIDC: KnownOptions<keyof OidcOptions> = {
  names: { ...CLIENT, apis: "texts", params: true, name: "text" },
  hints: HINTS,
};
/** Errors of the token endpoint after which only the user can continue. */
const OIDC_ENDS = ["invalid_grant", "interaction_required", "login_required", "consent_required"];

/** The metadata of an OpenID Connect provider. */
interface OidcMetadata extends ProviderEndpoints {
  readonly jwks?: string;
  readonly userinfo?: string;
  readonly revoke?: string;
}

/**
 * Signs users in at a provider of OpenID Connect, such as Auth0, Keycloak or Okta. The endpoints are read from the
 * provider's metadata. A sign-in requires an ID token if the scope `openid` is requested.
 *
 * @throws {TypeError} if the issuer is not an https URL, or http on loopback, or if an option is unknown or has the wrong
 * type.
 */
export function oidc(issuer: string, options: OidcOptions): Provider {
  checkOptions("use oidc()", options, OIDC);
  const url = readSecureUrl(issuer);
  if (!url || url.search) {
    throw new TypeError(
      `Cannot use oidc(): ${
        quote(hideCredentials(String(issuer)))
      } is not an https URL without a query; http is allowed only on loopback`,
    );
  }
  const client = readClient("oidc()", options, ["openid", "email", "profile"]);
  const { clientId, clientSecret } = client;
  const name = options.name ?? url.host;
  const metadata = new Remote(`the metadata of ${issuer}`, (send) => loadMetadata(issuer, url, send));
  const keys = keySource(name, async (call) => (await metadata.get(call)).jwks);
  return {
    name,
    ...client,
    apis: readOrigins("oidc()", options.apis ?? []),
    params: readParams("oidc()", options.params),
    async endpoints(call) {
      const { issuer, authorize, token, pkce, secretIn } = await metadata.get(call);
      return { issuer, authorize, token, pkce, secretIn };
    },
    async findUser(tokens, call) {
      const { userinfo } = await metadata.get(call);
      const isRequired = call.nonce !== undefined && client.scopes.includes("openid");
      const claims = tokens.idToken !== undefined || isRequired
        ? await verifyIdToken(name, tokens, { clientId, call, keys, issuers: [issuer] })
        : undefined;
      if (userinfo === undefined) {
        if (!claims) throw toFailure(name, "no ID token, and the metadata contains no userinfo_endpoint");
        return toOidcUser(name, claims);
      }
      const facts = await loadUserinfo(name, userinfo, tokens, call);
      if (!facts) return;
      // OpenID Connect Core 1.0, 5.3.2: without this check, the facts could belong to another user.
      if (claims && facts.sub !== claims.sub) throw new InvalidToken("the ID token belongs to another user (sub)");
      return toOidcUser(name, mergeClaims(claims ?? {}, facts));
    },
    isEnd: endsWith(OIDC_ENDS),
    async revoke({ refreshToken, accessToken }, call) {
      // Many providers end all tokens of the user's session.
      const { revoke } = call.hasOthers ? {} : await metadata.get(call);
      if (revoke === undefined) return;
      const hint = refreshToken === undefined ? "access_token" : "refresh_token";
      const init = {
        method: "POST",
        headers: { authorization: toBasicCredentials(clientId, clientSecret) },
        body: new URLSearchParams({ token: refreshToken ?? accessToken, token_type_hint: hint }),
      };
      const { status } = await sendTo(name, revoke, init, call);
      if (status !== 200) throw toFailure(name, `status ${status}`);
    },
  };
}

async function loadMetadata(issuer: string, url: URL, send: Send): Promise<OidcMetadata> {
  const json = await loadIssuerMetadata(url, (named) => named === issuer, send);
  const read = (name: string) => readEndpoint(url, json[name]);
  const [authorize, token] = [read("authorization_endpoint"), read("token_endpoint")];
  if (authorize === undefined || token === undefined) {
    throw new Error(`the metadata of ${issuer} contains no authorization_endpoint and token_endpoint over https`);
  }
  const { code_challenge_methods_supported: methods } = json;
  // Without the list, the client authenticates with the header (OpenID Connect Discovery 1.0, section 3).
  const { token_endpoint_auth_methods_supported: ways = ["client_secret_basic"] } = json;
  return {
    issuer: json.authorization_response_iss_parameter_supported === true ? issuer : undefined,
    authorize,
    token,
    secretIn: Array.isArray(ways) && ways.includes("client_secret_basic") ? "header" : "body",
    pkce: !Array.isArray(methods) || methods.includes("S256"),
    jwks: read("jwks_uri"),
    userinfo: read("userinfo_endpoint"),
    revoke: read("revocation_endpoint"),
  };
}

/** Facts with which {@linkcode OAuth2Options.user} finds a user. */
export interface OAuth2UserCall {
  /**
   * Sends a request with the user's token in the `Authorization` header. Rejects if the URL belongs to none of the `apis`.
   * Does not follow redirects.
   */
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Aborts when the response is no longer needed. */
  readonly signal: AbortSignal;
}

/** Options of {@linkcode oauth2}. */
export interface OAuth2Options extends ProviderClient {
  /** Name for the user, such as `Linear`. */
  readonly name: string;
  /** URLs of the authorization endpoint and the token endpoint. */
  readonly endpoints: { readonly authorize: string; readonly token: string };
  /** Scopes to request. Defaults to no scopes. */
  readonly scopes?: readonly string[];
  /** Origins that receive the user's token, such as `["https://api.example.com"]`. */
  readonly apis: readonly string[];
  /** Further parameters of the authorization request. */
  readonly params?: Readonly<Record<string, string>>;
  /**
   * Returns the user of the token, or `undefined` if the provider does not accept the token. Must throw if the provider
   * does not respond. `subject` must be an id that never belongs to another user.
   */
  readonly user: (call: OAuth2UserCall) => Promise<ProviderUser | undefined>;
  /** Error codes of the token endpoint that end the grant, in addition to `invalid_grant`. */
  readonly ends?: readonly string[];
}

const OAUTH2: KnownOptions<keyof OAuth2Options> = {
  names: {
    ...CLIENT,
    name: "text",
    endpoints: { names: { authorize: true, token: true } },
    apis: "texts",
    params: true,
    user: "function",
    ends: "texts",
  },
  hints: { ...HINTS, getUser: "user", findUser: "user", authorize: "endpoints.authorize", token: "endpoints.token" },
};

/**
 * Signs users in at a provider of OAuth 2 whose way to describe a user is its own.
 *
 * @throws {TypeError} if an option is missing, unknown or has the wrong type, or if a URL is not https, or http on
 * loopback.
 */
export function oauth2(options: OAuth2Options): Provider {
  checkOptions("use oauth2()", options, OAUTH2);
  const { name, endpoints, user, ends = [] } = options;
  if (!toText(name)) throw new TypeError("Cannot use oauth2(): name is not a non-empty string");
  if (typeof user !== "function") throw new TypeError("Cannot use oauth2(): user is not a function");
  for (const key of ["authorize", "token"] as const) {
    if (!readSecureUrl(endpoints?.[key])) {
      throw new TypeError(`Cannot use oauth2(): endpoints.${key} must be a URL over https, or http on loopback`);
    }
  }
  const apis = readOrigins("oauth2()", options.apis);
  return {
    name,
    ...readClient("oauth2()", options, []),
    apis,
    params: readParams("oauth2()", options.params),
    endpoints: toConstant({ authorize: endpoints.authorize, token: endpoints.token }),
    async findUser({ accessToken }, call) {
      const send = async (url: string | URL, init: RequestInit = {}) => {
        const target = readSecureUrl(String(url));
        if (!target || !apis.includes(target.origin)) {
          const origin = target?.origin ?? "an insecure URL";
          throw new TypeError(
            `Cannot send the token of ${name} to ${origin}: the origin is not in apis; add it to apis`,
          );
        }
        const headers = new Headers(init.headers);
        headers.set("authorization", `Bearer ${accessToken}`);
        const { status, headers: received, text } = await sendTo(name, target.href, { ...init, headers }, call);
        const type = received.get("content-type");
        const isEmpty = [204, 205, 304].includes(status);
        return new Response(isEmpty ? null : text, { status, headers: type === null ? {} : { "content-type": type } });
      };
      const found: unknown = await user({ fetch: send, signal: call.signal });
      if (found === undefined) return;
      if (!isObject(found) || !toText(found.subject)) {
        throw new TypeError("Cannot use oauth2(): user returned no subject; return an object with the id as a string");
      }
      const { subject, name: shown, email, facts } = found;
      return toUser({
        subject: String(subject),
        name: toText(shown),
        email: toText(email),
        facts: isObject(facts) ? facts : {},
      });
    },
    isEnd: endsWith(["invalid_grant", ...ends]),
  };
}

/** Reads the options that all providers have. `always` are scopes that are requested in addition to the given scopes. */
function readClient(
  place: string,
  { clientId, clientSecret, scopes }: ProviderClient,
  defaults: readonly string[],
  always: readonly string[] = [],
): Pick<Provider, "clientId" | "clientSecret" | "scopes"> {
  for (const [name, value] of Object.entries({ clientId, clientSecret })) {
    if (!isUnset(value) && typeof value !== "string") {
      throw new TypeError(`Cannot use ${place}: ${name} is not a non-empty string`);
    }
  }
  const all = [...new Set(scopes ? [...always, ...scopes] : defaults)];
  if (!all.every(isScope)) throw new TypeError(`Cannot use ${place}: scopes contains an invalid scope`);
  return { clientId: clientId ?? "", clientSecret: clientSecret ?? "", scopes: all };
}

function readOrigins(place: string, apis: readonly string[]): readonly string[] {
  const isOrigin = (each: string) => readSecureUrl(each)?.origin === each;
  if (Array.isArray(apis) && apis.every(isOrigin)) return [...apis];
  const rule = `such as "https://api.example.com"; http is allowed only on loopback`;
  throw new TypeError(`Cannot use ${place}: apis must be a list of origins without a path, ${rule}`);
}

/** Parameters that the proxy sets itself. Other values would disable its checks. */
const RESERVED = ["client_id", "client_secret", "redirect_uri", "response_type", "response_mode", "scope", "state"]
  .concat("nonce", "code_challenge", "code_challenge_method", "request", "request_uri");

function readParams(place: string, params: unknown = {}): Readonly<Record<string, string>> {
  if (!isObject(params) || !Object.values(params).every((each) => typeof each === "string")) {
    throw new TypeError(`Cannot use ${place}: params is not an object with strings`);
  }
  const reserved = RESERVED.find((name) => Object.hasOwn(params, name));
  if (reserved !== undefined) {
    throw new TypeError(`Cannot use ${place}: params must not contain ${reserved}, which the proxy sets`);
  }
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
}

function toConstant(endpoints: ProviderEndpoints): Provider["endpoints"] {
  return () => Promise.resolve(endpoints);
}

/** An error of a provider that is down does not end a grant, whatever its body contains. */
function endsWith(codes: readonly string[]): Provider["isEnd"] {
  return ({ status, json }) => status < 500 && typeof json.error === "string" && codes.includes(json.error);
}

/** GitHub rejects requests without a `user-agent`. */
const USER_AGENT = "mcp-oauth-proxy";
const JSON_ONLY = { headers: { accept: "application/json" } };

/** Sends a request that ends at the timeout, or when the signal of the call aborts. */
async function sendTo(name: string, url: string, init: RequestInit, call: ProviderCall): Promise<TextResponse> {
  const headers = new Headers(init.headers);
  if (!headers.has("accept")) headers.set("accept", "application/json");
  if (!headers.has("user-agent")) headers.set("user-agent", USER_AGENT);
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(TIMEOUT_MS), ...init.signal ? [init.signal] : []]);
  try {
    return await sendText(toSend(call), url, { ...init, headers, signal });
  } catch (error) {
    call.signal.throwIfAborted();
    throw new Error(`Cannot reach ${name} at ${new URL(url).host}`, { cause: error });
  }
}

function toSend({ fetch }: Pick<ProviderCall, "fetch">): Send {
  return (url, init) => fetch(new Request(url, init));
}

/** Returns an error whose text contains no part of a response, because a response may repeat a token. */
function toFailure(name: string, state: string): Error {
  return new Error(`Cannot use the response of ${name}: it has ${state}`);
}

function readObject(name: string, { status, text }: TextResponse): Readonly<Record<string, unknown>> {
  const json = status === 200 ? parseJson(text) : undefined;
  if (isObject(json)) return json;
  throw toFailure(name, status === 200 ? "a body that is not a JSON object" : `status ${status}`);
}

/** Returns the claims from the userinfo endpoint, or `undefined` if the provider does not accept the token. */
async function loadUserinfo(
  name: string,
  url: string,
  { accessToken }: ProviderTokens,
  call: ProviderCall,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const response = await sendTo(name, url, { headers: { authorization: `Bearer ${accessToken}` } }, call);
  return response.status === 401 ? undefined : readObject(name, response);
}

function toOidcUser(name: string, claims: Readonly<Record<string, unknown>>): ProviderUser {
  const subject = toText(claims.sub);
  if (subject === undefined) throw toFailure(name, "a user without sub");
  const email = claims.email_verified === true ? toText(claims.email) : undefined;
  return toUser({ subject, name: toText(claims.name) ?? toText(claims.preferred_username), email, facts: claims });
}

/** The address and its verification come from the same source, because the two sources may name different addresses. */
function mergeClaims(
  claims: Readonly<Record<string, unknown>>,
  facts: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { email, email_verified: isVerified } = facts.email === undefined ? claims : facts;
  const merged = { ...claims, ...facts, email, email_verified: isVerified };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}

/** Omits members that are `undefined`. */
function toUser({ subject, name, email, facts }: ProviderUser): ProviderUser {
  return { subject, ...name === undefined ? {} : { name }, ...email === undefined ? {} : { email }, facts };
}

function toText(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

/** A value from the network that several calls share. It is loaded with the `fetch` of the call that first needs it. */
class Remote<T> {
  readonly #loaded: Loaded<T>;
  #call?: ProviderCall;

  constructor(name: string, load: (send: Send, call: ProviderCall) => Promise<T>) {
    this.#loaded = new Loaded(name, () => {
      // The load must not end with the call that started it, because other calls may wait for it.
      const call = { fetch: (request: Request) => (this.#call ?? fail()).fetch(request), signal: NEVER };
      return load(toSend(call), call);
    });
  }

  async get(call: ProviderCall): Promise<T> {
    this.#call = call;
    return await deadline(this.#loaded.get(toNow()), { signal: call.signal });
  }

  /** Loads the value again, unless the last attempt started less than 30 seconds ago. */
  async renew(call: ProviderCall): Promise<T | undefined> {
    this.#call = call;
    return await deadline(this.#loaded.renew(toNow()), { signal: call.signal });
  }
}

const NEVER = new AbortController().signal;

function fail(): never {
  throw new Error("Cannot load a value before the first call");
}

/** The calls carry no time, so there is no other clock. */
function toNow(): number {
  return Date.now();
}

type KeySet = ReturnType<typeof createLocalJWKSet>;

function keySource(
  name: string,
  toUrl: (call: ProviderCall) => string | undefined | Promise<string | undefined>,
): Remote<KeySet> {
  return new Remote(`the keys of ${name}`, async (send, call) => {
    const url = await toUrl(call);
    if (url === undefined) throw new Error("the metadata contains no jwks_uri over https");
    const keys = readObject(name, await sendText(send, url, JSON_ONLY));
    if (!isKeySet(keys)) throw toFailure(name, "an invalid key set");
    return createLocalJWKSet(keys);
  });
}

interface IdTokenRules {
  readonly clientId: string;
  readonly call: UserCall;
  readonly keys: Remote<KeySet>;
  readonly issuers: readonly string[];
}

/** Tolerated difference between this server's clock and the provider's clock, in seconds. */
const SKEW_SECONDS = 30;
/** Maximum lifetime of a sign-in, in seconds. */
const GRANT_SECONDS = 180 * 86_400;

/**
 * Returns the claims of the ID token.
 *
 * @throws {InvalidToken} if there is no ID token, or if it is refused.
 * @see OpenID Connect Core 1.0, 3.1.3.7
 */
async function verifyIdToken(
  name: string,
  { idToken }: ProviderTokens,
  { clientId, call, keys, issuers }: IdTokenRules,
): Promise<JWTPayload> {
  if (idToken === undefined) throw new InvalidToken(`${name} returned no ID token`);
  // Without a nonce, the ID token is the stored one of an earlier sign-in, which this server got from the provider itself.
  const isStored = call.nonce === undefined;
  const verify = async (set: KeySet) =>
    await jwtVerify(idToken, set, {
      algorithms: [...ALGORITHMS],
      issuer: [...issuers],
      audience: clientId,
      requiredClaims: ["exp", "iat", "sub"],
      clockTolerance: isStored ? GRANT_SECONDS : SKEW_SECONDS,
      currentDate: new Date(toNow()),
    });
  const known = await keys.get(call);
  const { payload } = await verify(known).catch(async (error) => {
    // The provider may have rotated its keys.
    const newer = error instanceof errors.JWKSNoMatchingKey ? await keys.renew(call) : undefined;
    if (!newer) throw error;
    return await verify(newer);
  }).catch((error) => {
    throw error instanceof errors.JOSEError ? new InvalidToken(toRefusal(error)) : error;
  });
  const { aud, azp, nonce } = payload;
  if (Array.isArray(aud) && aud.length > 1 && azp !== clientId) {
    throw new InvalidToken("the ID token was issued for another client (aud)");
  }
  if (call.nonce !== undefined && nonce !== call.nonce) {
    throw new InvalidToken("the ID token belongs to another sign-in (nonce)");
  }
  return payload;
}

function toRefusal(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return "the ID token has expired (exp)";
  if (error instanceof errors.JWTClaimValidationFailed) {
    const reasons: Readonly<Record<string, string>> = {
      iss: "the issuer of the ID token is not accepted (iss)",
      aud: "the ID token was issued for another client (aud)",
    };
    return reasons[error.claim] ?? `the ID token has no valid claim ${error.claim}`;
  }
  if (error instanceof errors.JWKSNoMatchingKey) return "the ID token is signed with an unknown key";
  return "the ID token has no valid signature";
}
