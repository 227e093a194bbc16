/**
 * Sign-in at providers that do not register MCP clients, such as GitHub and Google. The entry `@x/mcp/oauth/proxy`.
 *
 * The server becomes an authorization server of its own: it registers clients, asks the user for consent, signs the user
 * in at the provider, and gives the client tokens that only this server accepts. Tokens of the provider never reach a
 * client.
 *
 * ```ts
 * import { github, oauthProxy } from "@x/mcp/oauth/proxy";
 *
 * export const login = oauthProxy({
 *   resource: "http://127.0.0.1:3000/mcp",
 *   provider: github({ clientId: "Iv1.0a1b", clientSecret: "0123456789abcdef" }),
 *   who: ({ facts }) => facts.login === "ada",
 * });
 * ```
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
import { checkOptions, isPlain, type KnownOptions } from "../../../core/known_options.ts";
import { INTERNALS } from "../../../core/internals.ts";
import { deadline } from "../../../core/kit/deadline.ts";
import { isObject } from "../../../core/kit/json.ts";
import { isLoopback } from "../../../core/kit/loopback_host.ts";
import { McpError, quote } from "../../../core/protocol/errors.ts";
import type { Context, Principal } from "../../../server/call/context.ts";
import type { Sealer } from "../../../server/call/sealer.ts";
import {
  type Authentication,
  type AuthRequestInfo,
  type AuthRoute,
  refuseRequest,
  SIGN_IN,
  type SignInFacts,
} from "../../../server/engine/auth.ts";
import type { Core } from "../../../server/engine/core.ts";
import type { ServerHandle } from "../../../server/engine/server_handle.ts";
import { memoryStore } from "../../../stores/memory_store.ts";
import { readCredential } from "../../credentials.ts";
import { checkPrefix, isUnset, readOwn, toPrincipal, toUnready } from "../../principal.ts";
import { authScheme } from "../../scheme_list.ts";
import { TokenCache } from "../../token_cache.ts";
import { readSecureUrl } from "../http.ts";
import { fixedRoutes, respond, toMetadataUrl } from "../metadata.ts";
import { Clients, type ListedClient, OAuthError } from "./clients.ts";
import type { ConsentTexts } from "./consent_page.ts";
import { Flow, readBody } from "./flow.ts";
import { Grants, toRandom } from "./grants.ts";
import { MetadataDocuments } from "./metadata_documents.ts";
import type { Provider, ProviderTokens, ProviderUser } from "./provider.ts";
import { knownRedirects, RedirectRules } from "./redirect_uris.ts";
import { checkMethod, toError, toJson, TokenEndpoint } from "./token_endpoint.ts";
import { fetchWith, ProviderEndError, ProviderError, requestTokens, Upstream } from "./upstream.ts";

export type { ConsentTexts, ListedClient, Provider, ProviderTokens, ProviderUser };
export type { ProviderCall, ProviderEndpoints, UserCall } from "./provider.ts";
export {
  entra,
  type EntraOptions,
  github,
  type GitHubOptions,
  google,
  type GoogleOptions,
  oauth2,
  type OAuth2Options,
  type OAuth2UserCall,
  oidc,
  type OidcOptions,
  type ProviderClient,
} from "./providers.ts";
export { knownRedirects };

/** Facts for the `who` function of {@linkcode oauthProxy}. */
export interface WhoOptions {
  /** Sends a request with the user's token to one of the provider's `apis`, such as to ask for organizations. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Scopes that the client has asked for. */
  readonly scopes: readonly string[];
  /** Aborts when the sign-in takes too long. */
  readonly signal: AbortSignal;
}

/** The decision about a user who may use the server. */
export interface WhoDecision {
  /** Id of the user, unique among all users. Defaults to the id at the provider. */
  readonly subject?: string;
  /**
   * Scopes that the user may have. The client gets the scopes that it has requested and the user may have. By default, it
   * gets all scopes that it has requested. Fewer scopes at a refresh end the sign-in.
   */
  readonly scopes?: readonly string[];
}

/** Decides whether a user of the provider may use the server. */
export type Who = (
  user: ProviderUser,
  options: WhoOptions,
) => boolean | WhoDecision | Promise<boolean | WhoDecision>;

/** Options of {@linkcode oauthProxy}. Only `resource`, `provider` and `who` are required. */
export interface OAuthProxyOptions {
  /**
   * Public URL of the MCP endpoint, such as `https://notes.example.com/mcp`. The pages of the sign-in have fixed paths at
   * the same origin.
   */
  readonly resource: string;
  /** The provider at which users sign in, such as `github({ clientId, clientSecret })`. */
  readonly provider: Provider;
  /**
   * Decides whether a user may use the server. Called at each sign-in and each refresh, at least once an hour. Everybody
   * can have an account at a public provider, so there is no default. {@linkcode anyone} accepts every user. If the
   * function throws, the sign-in fails, and a refresh must be repeated. If it returns `false` at a refresh, the sign-in
   * ends.
   */
  readonly who: Who;
  /** Scopes of this server. Scopes of the provider belong to the provider. Defaults to no scopes. */
  readonly scopes?: readonly string[];
  /**
   * Redirect URIs of hosted clients, besides loopback addresses and the hosts of client metadata documents. Compared
   * exactly. Defaults to {@linkcode knownRedirects}, which lists those of common clients.
   */
  readonly redirects?: readonly string[];
  /** Clients that are registered beforehand. */
  readonly clients?: readonly ListedClient[];
  /** Text before the colon in the ids of principals. Defaults to the name of the provider in lower case. */
  readonly prefix?: string;
  /** Name of the server on the consent page. Defaults to the host of `resource`. */
  readonly name?: string;
  /** Texts of the consent page. */
  readonly texts?: ConsentTexts;
  /** Sends the requests to the provider. Defaults to the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Options of client metadata documents. */
  readonly documents?: {
    /** Sends the requests for documents. Defaults to the global `fetch`. */
    readonly fetch?: (request: Request) => Promise<Response>;
  };
}

const OPTIONS: KnownOptions<keyof OAuthProxyOptions> = {
  names: {
    resource: "text",
    provider: true,
    who: "function",
    scopes: "texts",
    redirects: "texts",
    clients: true,
    prefix: true,
    name: "text",
    texts: true,
    fetch: "function",
    documents: true,
  },
  hints: { redirectUris: "redirects", upstream: "provider", identify: "who", allow: "who" },
};

/** An authentication that signs users in at a provider. Created by {@linkcode oauthProxy}. */
export interface OAuthProxy extends Authentication {
  /**
   * Sends a request with the caller's token of the provider. The token goes only to the provider's `apis`.
   *
   * @throws {TypeError} if the request goes to another origin.
   * @throws {McpError} with code -31401 if the caller has not signed in here, or must sign in again.
   */
  readonly fetch: (ctx: Pick<Context<unknown>, "principal">, request: Request) => Promise<Response>;
  /** Ends the caller's sign-in, and revokes the token at the provider where that is possible. */
  readonly revoke: (ctx: Pick<Context<unknown>, "principal">) => Promise<void>;
  /** Ends all sign-ins of a user. `subject` is the id of the user's principal without the prefix. */
  readonly end: (subject: string) => Promise<void>;
}

/** Accepts every user of the provider. */
export const anyone: Who = (): boolean => true;

/** Time for which an accepted token is not looked up again, in milliseconds. */
const SEEN_MS = 10_000;
const SEEN_LIMITS = { entries: 10_000, characters: 8 * 1024 * 1024 };
/** Maximum number of registrations at the same time, because each one takes time and none is stored. */
const MOST_REGISTRATIONS = 64;
const CALL_MS = 20_000;

/**
 * Signs users in at a provider that does not register MCP clients. Use a store and a `secret` of the server: without a
 * store, sign-ins are lost when the process ends; without a secret, `resource` must be a loopback address.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { github, oauthProxy } from "@x/mcp/oauth/proxy";
 *
 * const login = oauthProxy({
 *   resource: "http://127.0.0.1:3000/mcp",
 *   provider: github({ clientId: "Iv1.0a1b", clientSecret: "0123456789abcdef" }),
 *   who: ({ facts }) => facts.login === "ada",
 * });
 * const repos = tool({
 *   name: "repos",
 *   run: async (_input, ctx) => {
 *     const response = await login.fetch(ctx, new Request("https://api.github.com/user/repos"));
 *     return await response.json();
 *   },
 * });
 *
 * export default createServer({ name: "repos", version: "1.0.0", auth: login, handlers: [repos] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function oauthProxy(options: OAuthProxyOptions): OAuthProxy {
  checkOptions("use oauthProxy()", options, OPTIONS);
  const { provider, who } = options;
  if (typeof provider?.findUser !== "function") {
    throw refuse("provider is missing; use a provider such as github({ clientId, clientSecret })");
  }
  if (typeof who !== "function") {
    throw refuse("who is missing, and every user of the provider could sign in; pass a function, or anyone");
  }
  const proxy = new SignIn(options);
  const auth: Authentication = {
    authenticate: (request, info, server) => proxy.authenticate(request, info, server),
    start: (server) => proxy.start(server),
    challenge: proxy.challenge,
    routes: proxy.routes,
    credentials: { headers: ["authorization"] },
    scheme: authScheme({ name: "oauthProxy()", schemes: ["bearer"], prefix: proxy.prefix }),
    readPrincipal: readOwn(proxy.prefix),
    rechecks: () => true,
    [SIGN_IN]: proxy.facts,
    checkPath(path) {
      if (path.includes("/:")) throw refuse(`the server's path ${path} has parameters; use oauth() with an own server`);
      if (path !== proxy.resource.pathname) {
        throw refuse(`resource has the path ${proxy.resource.pathname}, but the server's path is ${path}`);
      }
    },
  };
  const isReady = !isUnset(provider.clientId) && !isUnset(provider.clientSecret);
  const state = `the clientId or the clientSecret of ${provider.name} is not set; check the environment variables`;
  const login: Omit<OAuthProxy, keyof Authentication> = {
    fetch: (ctx, request) => proxy.fetch(ctx, request),
    revoke: (ctx) => proxy.revoke(ctx),
    end: (subject) => proxy.end(subject),
  };
  return withMembers(isReady ? auth : toUnready(auth, refuse(state)), login);
}

/** Adds members that are not options of an authentication, because the server refuses unknown options. */
function withMembers<T extends object, M extends object>(target: T, members: M): T & M {
  const added = Object.entries(members).map(([name, value]) => [name, { value }] as const);
  // The cast is safe, because the object gets all members.
  return Object.defineProperties(target, Object.fromEntries(added)) as T & M;
}

function refuse(state: string): TypeError {
  return new TypeError(`Cannot use oauthProxy(): ${state}`);
}

/** The parts that exist while a server runs. */
interface Running {
  readonly server: ServerHandle;
  readonly grants: Grants;
  readonly upstream: Upstream;
  readonly flow: Flow;
  readonly tokens: TokenEndpoint;
  readonly clients: Clients;
  readonly seen: TokenCache<Principal>;
}

class SignIn {
  readonly resource: URL;
  readonly facts: SignInFacts;
  readonly prefix: string;
  readonly challenge: Authentication["challenge"];
  readonly routes: readonly AuthRoute[];
  readonly #options: OAuthProxyOptions;
  readonly #redirects: RedirectRules;
  readonly #send: (request: Request) => Promise<Response>;
  #registrations = 0;
  /** The servers that use this authentication, such as a server and its new version during a reload. */
  // Bound: the servers that the author starts.
  readonly #running = new Map<ServerHandle | undefined, Running>();

  constructor(options: OAuthProxyOptions) {
    const { resource, scopes = [], redirects, provider, fetch: send = (request) => fetch(request) } = options;
    const url = readSecureUrl(resource);
    if (!url || url.search) {
      throw refuse(`resource ${quote(resource)} is not a URL over https, or over http on loopback`);
    }
    const odd = scopes.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
    if (odd !== undefined) throw refuse(`the scope ${quote(odd)} is empty, or contains a space or another character`);
    const { prefix = provider.name.toLowerCase().replace(/[^\w.-]/g, "-") } = options;
    checkPrefix(prefix, "oauthProxy()");
    this.resource = url;
    this.prefix = prefix;
    this.#options = options;
    this.#redirects = new RedirectRules(redirects);
    this.#send = send;
    const scope = scopes.join(" ");
    this.challenge = {
      scheme: "Bearer",
      params: { resource_metadata: toMetadataUrl(url), ...scope && { scope } },
    };
    this.routes = this.#toRoutes();
    this.facts = {
      provider: provider.name,
      resource: url.href,
      callback: `${url.origin}/callback`,
      isOpen: options.who === anyone,
      redirects: (redirects ?? knownRedirects).length,
      findHosts: async (signal) => {
        const { authorize, token } = await provider.endpoints({ fetch: send, signal });
        return [...new Set([authorize, token].map((each) => new URL(each).host))];
      },
      requestToken: async (signal) => {
        const params = { grant_type: "authorization_code", code: "unknown", redirect_uri: this.facts.callback };
        const call = { fetch: send, signal, now: 0 };
        try {
          await requestTokens(provider, { ...params, code_verifier: toRandom(32) }, call);
        } catch (error) {
          if (!(error instanceof ProviderError)) throw error;
          return error.code;
        }
      },
    };
  }

  start(server: ServerHandle): () => unknown {
    // The cast is safe, because the handle of a server contains the core of this library.
    const core = server[INTERNALS] as Core;
    if (!core.sealer.isShared && !isLoopback(this.resource.hostname)) {
      throw refuse(
        "the server has no secret, so that other instances and restarts end all sign-ins; set `secret` of createServer()",
      );
    }
    const store = server.store?.own ?? memoryStore({ clock: server.clock });
    const { origin } = this.resource;
    if (!server.store) {
      console.warn("oauthProxy(): the server has no store, so all sign-ins end with this process; set `store`");
    }
    console.error(`Callback URL for ${this.#options.provider.name}: ${origin}/callback`);
    const sealer = core.sealer.within(JSON.stringify(["oauth proxy", origin]));
    this.#running.set(server, this.#open(server, store, sealer));
    return () => {
      this.#running.delete(server);
      if ("close" in store && typeof store.close === "function") return store.close();
    };
  }

  #open(
    server: ServerHandle,
    store: NonNullable<ServerHandle["store"]>["own"],
    sealer: Sealer,
  ): Running {
    const { provider, who, scopes = [], name = this.resource.host, texts, clients: known = [], documents } =
      this.#options;
    const { origin } = this.resource;
    const now = () => server.clock.date();
    const { href } = this.resource;
    const toSeals = (purpose: string) => ({
      seal: (value: unknown) => sealer.seal(purpose, value),
      open: (text: string) => sealer.open(purpose, text),
    });
    // After a change of the provider, a grant of the old provider would otherwise name a user of the new provider, who
    // can have the same id, and the new provider would receive the tokens of the old provider.
    const seals = toSeals(JSON.stringify([href, provider.name, provider.clientId]));
    const revoke = (tokens: ProviderTokens, hasOthers: boolean) => this.#revokeAt(tokens, server, hasOthers);
    const grants = new Grants({ store, ...seals, now, digest: (text) => sealer.digest(text), revoke });
    const clients = new Clients({
      sealer: toSeals(href),
      date: now,
      rules: this.#redirects,
      clients: known,
      documents: new MetadataDocuments({ fetch: documents?.fetch, clock: server.clock }),
      own: this.resource,
    });
    const fetch = this.#send;
    const upstream = new Upstream({ provider, grants, fetch, now });
    const decide = async (
      user: ProviderUser,
      { token, scopes, signal }: {
        readonly token: string;
        readonly scopes: readonly string[];
        readonly signal: AbortSignal;
      },
    ) => {
      // Users without an id would all be the same caller.
      if (typeof user.subject !== "string" || !user.subject) {
        throw new TypeError(`Cannot sign in a user: ${provider.name} returned a user whose subject is not an id`);
      }
      const { apis } = provider;
      const options = { scopes, signal, fetch: (request: Request) => fetchWith(token, request, { apis, fetch }) };
      return toDecision(await deadline(who(user, options), { signal }), user, scopes);
    };
    const flow = new Flow({
      ...seals,
      store,
      clock: server.clock,
      now,
      grants,
      clients,
      redirects: this.#redirects,
      provider,
      fetch,
      decide,
      revoke,
      resource: this.resource,
      issuer: origin,
      serverName: name,
      scopes,
      texts,
      report: server.report,
    });
    const tokens = new TokenEndpoint({
      grants,
      clients,
      issuer: origin,
      resource: this.resource,
      clock: server.clock,
      now,
      async markUsed({ id, at, ttlMs }, client) {
        // Each client has its own share, because a client could otherwise use up the ids of all clients.
        return await server.markUsed({ id, principal: `client ${client}`, at, ttlMs }) === "new";
      },
      async recheck(id, grant) {
        const signal = AbortSignal.timeout(CALL_MS);
        let decided;
        try {
          // Renew the tokens where that is possible, because an ID token is valid only for a while, and the provider may
          // have ended the sign-in.
          const { refreshToken, accessToken } = grant.tokens;
          const tokens = await upstream.findTokens(id, signal, refreshToken === undefined ? undefined : accessToken);
          const user = tokens && await provider.findUser(tokens, { fetch, signal });
          const { scopes } = grant;
          decided = user && await decide(user, { token: tokens.accessToken, scopes, signal });
        } catch (error) {
          if (!(error instanceof ProviderEndError)) {
            server.report(error);
            throw new OAuthError("temporarily_unavailable", "the provider does not respond; try again later", 503);
          }
        }
        if (decided?.subject === grant.subject && grant.scopes.every((scope) => decided.scopes.includes(scope))) return;
        await grants.end(id);
        throw new OAuthError("invalid_grant", "the sign-in has ended; sign in again", 400);
      },
    });
    return { server, grants, upstream, flow, tokens, clients, seen: new TokenCache(SEEN_LIMITS) };
  }

  async #revokeAt(tokens: ProviderTokens, { report }: ServerHandle, hasOthers: boolean): Promise<void> {
    const signal = AbortSignal.timeout(CALL_MS);
    // A provider of the author may throw, or ignore its signal. The sign-in has ended anyway.
    try {
      const call = { fetch: this.#send, signal, hasOthers };
      await deadline(this.#options.provider.revoke?.(tokens, call), { signal });
    } catch (error) {
      report(error);
    }
  }

  #toRoutes(): readonly AuthRoute[] {
    const { origin } = this.resource;
    const { scopes = [] } = this.#options;
    const json = JSON.stringify({
      resource: this.resource.href,
      authorization_servers: [origin],
      ...scopes.length && { scopes_supported: scopes },
      bearer_methods_supported: ["header"],
    });
    const metadata = JSON.stringify({
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      revocation_endpoint: `${origin}/revoke`,
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none", "private_key_jwt"],
      token_endpoint_auth_signing_alg_values_supported: ["ES256", "RS256", "PS256", "EdDSA"],
      revocation_endpoint_auth_methods_supported: ["none", "private_key_jwt"],
      ...scopes.length && { scopes_supported: scopes },
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    });
    const page = origin;
    return [
      ...fixedRoutes(this.resource, { json, atRoot: true }),
      {
        path: "/.well-known/oauth-authorization-server",
        fetch: ({ method }) => respond(method, metadata),
      },
      {
        path: "/authorize",
        page: true,
        fetch: (request, info, server) => this.#run(server, ({ flow }) => flow.authorize(request, info)),
      },
      {
        path: "/consent",
        page,
        fetch: (request, info, server) => this.#run(server, ({ flow }) => flow.consent(request, info)),
      },
      {
        path: "/callback",
        page: true,
        fetch: (request, info, server) => this.#run(server, ({ flow }) => flow.callback(request, info)),
      },
      {
        path: "/token",
        fetch: (request, info, server) => this.#run(server, ({ tokens }) => tokens.token(request, info)),
      },
      {
        path: "/revoke",
        fetch: (request, info, server) => this.#run(server, ({ tokens }) => tokens.revoke(request, info)),
      },
      {
        path: "/register",
        fetch: (request, _info, server) => this.#run(server, (running) => this.#register(request, running)),
      },
    ];
  }

  async #run(server: ServerHandle | undefined, run: (running: Running) => Promise<Response>): Promise<Response> {
    const running = this.#running.get(server);
    if (!running) return toError(new OAuthError("temporarily_unavailable", "the server is closing", 503));
    return await run(running);
  }

  async #register(request: Request, { clients, server: { clock } }: Running): Promise<Response> {
    const refused = checkMethod(request);
    if (refused) return refused;
    // Read before a registration counts, because slow bodies would otherwise prevent all registrations.
    const body = await readBody(request, clock);
    if (this.#registrations >= MOST_REGISTRATIONS) {
      return toError(new OAuthError("temporarily_unavailable", "too many registrations; try again later", 503));
    }
    this.#registrations++;
    try {
      const { status, json } = await clients.register(body);
      return toJson(status, json);
    } finally {
      this.#registrations--;
    }
  }

  authenticate(
    request: Request,
    { now }: AuthRequestInfo,
    server: ServerHandle | undefined,
  ): ReturnType<Authentication["authenticate"]> {
    const challenge = { scheme: "Bearer", params: { ...Object(this.challenge).params } };
    const { credential, refusal } = readCredential(request, PLACES, challenge);
    if (refusal) return refusal;
    const running = this.#running.get(server);
    if (!running) return refuseRequest(503, { reason: "the server is closing; try again later" });
    return running.seen.get(credential, now) ?? this.#check(running, credential);
  }

  async #check(
    { grants, seen, server }: Running,
    token: string,
  ): Promise<Awaited<ReturnType<Authentication["authenticate"]>>> {
    const opened = await grants.open("access", token);
    const found = opened && await grants.check(opened);
    const now = server.clock.date();
    if (!found) {
      const params = { ...Object(this.challenge).params, error: "invalid_token" };
      const reason = "the access token is not known, or has ended";
      return refuseRequest(401, { challenge: { scheme: "Bearer", params }, reason });
    }
    const { grant: { subject, client }, scopes } = found;
    const plain = toPrincipal(this.prefix, subject, { scopes, expiresAt: opened.until, clientId: client });
    const principal = server.attach(plain, { grant: opened.grant });
    const until = Math.min(now + SEEN_MS, opened.until);
    seen.set(token, { value: principal, until, characters: token.length + JSON.stringify(principal).length }, now);
    return principal;
  }

  async #findGrant(
    ctx: Pick<Context<unknown>, "principal">,
  ): Promise<{ readonly running: Running; readonly id: string }> {
    const found = [...this.#running.values()].flatMap((running) => {
      const { grant: id } = Object(running.server.attached(ctx));
      return typeof id === "string" ? [{ running, id }] : [];
    });
    // All servers of a process can read the id, and only one of them has the grant.
    for (const each of found) if (found.length === 1 || await each.running.grants.find(each.id)) return each;
    throw McpError.unauthenticated(`Cannot use ${this.#options.provider.name}: the caller has not signed in`);
  }

  async fetch(ctx: Pick<Context<unknown>, "principal">, request: Request): Promise<Response> {
    const { running: { upstream, grants, server, seen }, id } = await this.#findGrant(ctx);
    const { provider } = this.#options;
    const { signal } = request;
    const [fetch, { apis }] = [this.#send, provider];
    const again = () => McpError.unauthenticated(`Cannot use ${provider.name}: the sign-in has ended; sign in again`);
    const end = async () => {
      await grants.drop(id);
      seen.clear();
      return again();
    };
    try {
      const tokens = await upstream.findTokens(id, signal);
      if (!tokens) throw again();
      const response = await fetchWith(tokens.accessToken, request.clone(), { apis, fetch });
      if (response.status !== 401) return response;
      if (tokens.refreshToken === undefined) {
        // Some APIs also respond with 401 to a request that only needs more rights.
        const user = await provider.findUser(tokens, { fetch, signal });
        if (user) return response;
        throw await end();
      }
      await response.body?.cancel();
      const renewed = await upstream.findTokens(id, signal, tokens.accessToken);
      if (!renewed) throw again();
      return await fetchWith(renewed.accessToken, request, { apis, fetch });
    } catch (error) {
      if (!(error instanceof ProviderEndError)) throw error;
      server.report(error);
      throw await end();
    }
  }

  async revoke(ctx: Pick<Context<unknown>, "principal">): Promise<void> {
    const { running: { grants, seen }, id } = await this.#findGrant(ctx);
    await grants.end(id);
    seen.clear();
  }

  async end(subject: string): Promise<void> {
    if (!this.#running.size) throw new TypeError("Cannot end the sign-ins of a user: the server has not started");
    for (const { grants, seen } of this.#running.values()) {
      await grants.endAll(subject);
      seen.clear();
    }
  }
}

const PLACES = { header: "Authorization", scheme: "Bearer" };

/** Fails closed: only `true` and a plain object accept a user. */
function toDecision(
  found: unknown,
  user: ProviderUser,
  wanted: readonly string[],
): { readonly subject: string; readonly scopes: readonly string[] } | undefined {
  if (found === false) return;
  if (found === true) return { subject: user.subject, scopes: wanted };
  const { subject = user.subject, scopes = wanted }: Partial<WhoDecision> = Object(found);
  const isValid = isObject(found) && isPlain(found) && typeof subject === "string" && subject !== "" &&
    Array.isArray(scopes);
  if (!isValid) throw new TypeError("Cannot sign in a user: who returned neither a boolean nor { subject, scopes }");
  return { subject, scopes: wanted.filter((scope) => scopes.includes(scope)) };
}
