/**
 * Stand-ins for GitHub and Google, for tests of servers whose users sign in there. Both are made from the documents of
 * GitHub and Google. They were not tried against GitHub or Google.
 */
import { toBase64Url } from "../core/kit/base64.ts";
import { parseJson } from "../core/kit/json.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";

/** Facts that both fakes have. */
export interface FakeProvider<U extends { readonly id: string | number }> {
  /** The registered client, for example for `github(fake.client)`. */
  readonly client: { readonly clientId: string; readonly clientSecret: string };
  /** The users. A test can add users. */
  readonly users: U[];
  /** Id of the user who signs in next. Defaults to the id of the first user. */
  current: U["id"];
  /** Whether the user denies the next sign-ins. Defaults to `false`. */
  deny: boolean;
  /** The requests so far, such as `GET https://api.github.com/user`, without their queries. */
  readonly requests: readonly string[];
  /**
   * Responds to a request as the provider would. The authorization page redirects back immediately, as if the current
   * user had agreed. A request to any other host rejects.
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Responds to all further requests with the given status. Without a status, responds normally again. */
  fail(status?: number): void;
  /** Ends all tokens of a user, as if the user had revoked the authorization in the settings. */
  revoke(id: U["id"]): void;
  /** Makes all access tokens expire. Refresh tokens remain valid. */
  expire(): void;
}

/** Options that both fakes have. */
export interface FakeProviderOptions<U> {
  /** The users. Defaults to Ada and Grace. */
  readonly users?: readonly U[];
  /** The registered redirect URI. Defaults to the redirect URI of the first sign-in. Other redirect URIs are rejected. */
  readonly callback?: string;
  /** Returns the current time in milliseconds since 1970. Defaults to the time of the system. */
  readonly date?: () => number;
}

/** A user of {@linkcode fakeGitHub}. */
export interface FakeGitHubUser {
  /** Numeric id. It remains the same if the login changes. */
  readonly id: number;
  /** Name of the account, which the user can change. */
  readonly login: string;
  /** Name for people. */
  readonly name?: string;
  /** E-mail addresses. `primary` marks the address to which GitHub sends mail. */
  readonly emails?: readonly { readonly email: string; readonly verified: boolean; readonly primary: boolean }[];
  /** Repositories that the user owns. Private repositories require the scope `repo`, unless the client is an app. */
  readonly repos?: readonly { readonly name: string; readonly private: boolean }[];
}

/** Options of {@linkcode fakeGitHub}. */
export interface FakeGitHubOptions extends FakeProviderOptions<FakeGitHubUser> {
  /**
   * Whether the client is a GitHub App, whose tokens expire after 8 hours and are rotated, and which ignores scopes.
   * Defaults to `false`: an OAuth App, whose tokens do not expire.
   */
  readonly isApp?: boolean;
}

/** A user of {@linkcode fakeGoogle}. */
export interface FakeGoogleUser {
  /** Id of the user, which becomes the claim `sub`. */
  readonly id: string;
  /** Name for people, which requires the scope `profile`. */
  readonly name?: string;
  /** E-mail address, which requires the scope `email`. */
  readonly email?: string;
  /** Whether Google has verified the address. Defaults to `true`. */
  readonly isVerified?: boolean;
  /** Domain of the user's organization, which becomes the claim `hd`. */
  readonly hostedDomain?: string;
}

/** Options of {@linkcode fakeGoogle}. */
export interface FakeGoogleOptions extends FakeProviderOptions<FakeGoogleUser> {
  /** Claims that replace the claims of each ID token, such as `{ aud: "other" }`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

const SHARED = { users: "list", callback: "text", date: "function" } as const;
const GITHUB: KnownOptions<keyof FakeGitHubOptions> = { names: { ...SHARED, isApp: "boolean" } };
const GOOGLE: KnownOptions<keyof FakeGoogleOptions> = { names: { ...SHARED, claims: true } };

/**
 * Creates a stand-in for GitHub with two users and their repositories.
 *
 * It is made from the documents of GitHub, and was not tried against GitHub. Unlike GitHub, it accepts only the exact
 * redirect URI, and reads the client's credentials only from the body.
 *
 * ```ts
 * import { fakeGitHub } from "@x/mcp/testing";
 *
 * const hub = fakeGitHub();
 * const page = new URL("https://github.com/login/oauth/authorize");
 * const query = { client_id: hub.client.clientId, redirect_uri: "https://notes.example/callback", state: "1" };
 * page.search = String(new URLSearchParams(query));
 * const response = await hub.fetch(new Request(page));
 * if (response.status !== 302) throw new Error("GitHub does not redirect");
 * ```
 */
export function fakeGitHub(options: FakeGitHubOptions = {}): FakeProvider<FakeGitHubUser> {
  checkOptions("create a fake of GitHub", options, GITHUB);
  return new GitHub(options);
}

/**
 * Creates a stand-in for Google with two users. It signs ID tokens with a key of its own.
 *
 * It is made from the documents of Google, and was not tried against Google.
 *
 * ```ts
 * import { fakeGoogle } from "@x/mcp/testing";
 *
 * const google = fakeGoogle();
 * const response = await google.fetch(new Request("https://www.googleapis.com/oauth2/v3/certs"));
 * const { keys } = await response.json();
 * if (keys.length !== 1) throw new Error("the key is missing");
 * ```
 */
export function fakeGoogle(options: FakeGoogleOptions = {}): FakeProvider<FakeGoogleUser> {
  checkOptions("create a fake of Google", options, GOOGLE);
  return new Google(options);
}

/** An authorization of a user, with the tokens that were issued for it. */
interface Grant<I> {
  readonly user: I;
  readonly scopes: readonly string[];
  readonly nonce?: string;
}

interface Code<I> extends Grant<I> {
  readonly redirectUri: string;
  readonly challenge?: string;
  readonly isOffline: boolean;
  readonly expiresAt: number;
}

interface Issued<I> {
  readonly grant: Grant<I>;
  /** Time at which the token expires, in milliseconds since 1970. */
  readonly expiresAt: number;
}

type Respond = (request: Request, url: URL) => Response | Promise<Response>;

/** An error code of a token endpoint. */
class Refusal extends Error {}

const CODE_MS = 600_000;

abstract class Fake<I extends string | number, U extends { readonly id: I }> {
  readonly client = { clientId: "fake-client", clientSecret: "fake-secret" };
  readonly users: U[];
  readonly requests: string[] = [];
  current: I;
  deny = false;
  protected readonly date: () => number;
  protected readonly access = new Map<string, Issued<I>>();
  protected readonly refresh = new Map<string, Issued<I>>();
  readonly #codes = new Map<string, Code<I>>();
  #callback?: string;
  #status?: number;

  constructor({ users, callback, date = () => Date.now() }: FakeProviderOptions<U>, defaults: readonly U[]) {
    this.users = [...users ?? defaults];
    if (!this.users.length) throw new TypeError("Cannot create a fake provider: users is empty; add a user");
    this.current = this.users[0].id;
    this.date = date;
    this.#callback = callback;
  }

  /** The endpoints by method and URL, such as `GET https://api.github.com/user`. */
  protected abstract readonly routes: Readonly<Record<string, Respond>>;

  readonly fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const route = `${request.method} ${url.origin}${url.pathname}`;
    this.requests.push(route);
    if (this.#status !== undefined) return Response.json({ message: "The provider fails" }, { status: this.#status });
    if (!Object.hasOwn(this.routes, route)) {
      throw new TypeError(`Cannot respond to ${route}: the fake has no such endpoint`);
    }
    return await this.routes[route](request, url);
  };

  fail(status?: number): void {
    this.#status = status;
  }

  revoke(id: I): void {
    this.end(({ user }) => user === id);
  }

  expire(): void {
    for (const [token, { grant }] of this.access) this.access.set(token, { grant, expiresAt: this.date() });
  }

  /** Ends the tokens of the grants that `isEnded` accepts. */
  protected end(isEnded: (grant: Grant<I>) => boolean): void {
    for (const tokens of [this.access, this.refresh]) {
      for (const [token, { grant }] of tokens) if (isEnded(grant)) tokens.delete(token);
    }
  }

  protected isClient(id: string | null, secret: string | null): boolean {
    return id === this.client.clientId && secret === this.client.clientSecret;
  }

  /** Returns the registered redirect URI if the request names another redirect URI. */
  protected findOtherCallback({ searchParams: query }: URL): string | undefined {
    this.#callback ??= query.get("redirect_uri") ?? "";
    return query.get("redirect_uri") === this.#callback ? undefined : this.#callback;
  }

  /** Redirects back with a code, or with an error. */
  protected authorize({ searchParams: query }: URL, scopes: readonly string[], isOffline: boolean): Response {
    const redirectUri = query.get("redirect_uri") ?? "";
    if (this.deny) return this.redirect(redirectUri, query, { error: "access_denied" });
    const code = makeToken("");
    this.#codes.set(code, {
      user: this.current,
      scopes,
      nonce: query.get("nonce") ?? undefined,
      redirectUri,
      challenge: query.get("code_challenge") ?? undefined,
      isOffline,
      expiresAt: this.date() + CODE_MS,
    });
    return this.redirect(redirectUri, query, { code });
  }

  protected redirect(to: string, query: URLSearchParams, params: Readonly<Record<string, string>>): Response {
    const location = new URL(to);
    for (const [name, value] of Object.entries(params)) location.searchParams.set(name, value);
    const state = query.get("state");
    if (state !== null) location.searchParams.set("state", state);
    return new Response(null, { status: 302, headers: { location: location.href } });
  }

  /** Takes a code, which can be used once. Returns `undefined` if the code, its redirect URI or its verifier is wrong. */
  protected async takeCode(form: URLSearchParams): Promise<Code<I> | undefined> {
    const text = form.get("code") ?? "";
    const code = this.#codes.get(text);
    this.#codes.delete(text);
    if (!code || code.expiresAt <= this.date() || form.get("redirect_uri") !== code.redirectUri) return;
    const verifier = form.get("code_verifier");
    if (code.challenge !== undefined && code.challenge !== await hash(verifier ?? "")) return;
    return code;
  }

  /** Returns the grant of the access token in the request. */
  protected findGrant(request: Request): Grant<I> | undefined {
    const issued = this.access.get(readCredential(request, "bearer") ?? "");
    return issued && issued.expiresAt > this.date() ? issued.grant : undefined;
  }

  protected findUser({ user }: Grant<I>): U {
    const found = this.users.find(({ id }) => id === user);
    if (!found) throw new Error(`Cannot sign in: the fake has no user ${user}`);
    return found;
  }
}

const GITHUB_USERS: readonly FakeGitHubUser[] = [
  {
    id: 1815,
    login: "ada",
    name: "Ada Lovelace",
    emails: [
      { email: "ada@old.example", verified: false, primary: false },
      { email: "ada@example.com", verified: true, primary: true },
    ],
    repos: [{ name: "engine", private: false }, { name: "notes", private: true }],
  },
  {
    id: 1906,
    login: "grace",
    name: "Grace Hopper",
    emails: [{ email: "grace@example.com", verified: false, primary: true }],
    repos: [{ name: "compiler", private: false }],
  },
];
const APP_SECONDS = 28_800;
const APP_REFRESH_SECONDS = 15_897_600;

class GitHub extends Fake<number, FakeGitHubUser> {
  readonly #isApp: boolean;

  constructor(options: FakeGitHubOptions) {
    super(options, GITHUB_USERS);
    this.#isApp = options.isApp ?? false;
  }

  protected override readonly routes = {
    "GET https://github.com/login/oauth/authorize": (_: Request, url: URL) => this.#authorize(url),
    "POST https://github.com/login/oauth/access_token": (request: Request) => this.#exchange(request),
    "GET https://api.github.com/user": (request: Request) => this.#read("/user", request),
    "GET https://api.github.com/user/emails": (request: Request) => this.#read("/user/emails", request),
    "GET https://api.github.com/user/repos": (request: Request) => this.#read("/user/repos", request),
    [`DELETE https://api.github.com/applications/${this.client.clientId}/token`]: (request: Request) =>
      this.#delete(request, false),
    [`DELETE https://api.github.com/applications/${this.client.clientId}/grant`]: (request: Request) =>
      this.#delete(request, true),
  };

  #authorize(url: URL): Response {
    const query = url.searchParams;
    if (query.get("client_id") !== this.client.clientId) return new Response("Not Found", { status: 404 });
    const other = this.findOtherCallback(url);
    if (other !== undefined) return this.redirect(other, query, { error: "redirect_uri_mismatch" });
    const scopes = this.#isApp ? [] : (query.get("scope") ?? "").split(/[\s,]+/).filter(Boolean);
    return this.authorize(url, scopes, this.#isApp);
  }

  /** All errors have the status 200. */
  async #exchange(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const fields = await this.#issue(form).catch((error) => {
      if (error instanceof Refusal) return { error: error.message, error_description: "The request was rejected." };
      throw error;
    });
    if (request.headers.get("accept")?.includes("application/json")) return Response.json(fields);
    const texts = Object.entries(fields).map(([name, value]) => [name, String(value)]);
    return new Response(new URLSearchParams(texts));
  }

  async #issue(form: URLSearchParams): Promise<Readonly<Record<string, string | number>>> {
    if (!this.isClient(form.get("client_id"), form.get("client_secret"))) {
      throw new Refusal("incorrect_client_credentials");
    }
    if (form.get("grant_type") === "refresh_token") {
      const token = form.get("refresh_token") ?? "";
      const issued = this.refresh.get(token);
      if (!issued || issued.expiresAt <= this.date()) throw new Refusal("bad_refresh_token");
      // A refresh ends the old access token and the old refresh token.
      this.end((grant) => grant === issued.grant);
      return this.#toTokens({ ...issued.grant });
    }
    const code = await this.takeCode(form);
    if (!code) throw new Refusal("bad_verification_code");
    return this.#toTokens({ user: code.user, scopes: code.scopes });
  }

  #toTokens(grant: Grant<number>): Readonly<Record<string, string | number>> {
    const now = this.date();
    const accessToken = makeToken(this.#isApp ? "ghu_" : "gho_");
    const common = { access_token: accessToken, scope: grant.scopes.join(","), token_type: "bearer" };
    this.access.set(accessToken, { grant, expiresAt: this.#isApp ? now + APP_SECONDS * 1000 : Infinity });
    if (!this.#isApp) return common;
    const refreshToken = makeToken("ghr_");
    this.refresh.set(refreshToken, { grant, expiresAt: now + APP_REFRESH_SECONDS * 1000 });
    return {
      ...common,
      expires_in: APP_SECONDS,
      refresh_token: refreshToken,
      refresh_token_expires_in: APP_REFRESH_SECONDS,
    };
  }

  #read(path: string, request: Request): Response {
    if (!request.headers.get("user-agent")) return toMessage(403, "Request forbidden by administrative rules");
    const grant = this.findGrant(request);
    if (!grant) return toMessage(401, "Bad credentials");
    const { scopes } = grant;
    const { id, login, name = null, emails = [], repos = [] } = this.findUser(grant);
    const headers = this.#isApp ? undefined : { "x-oauth-scopes": scopes.join(", ") };
    if (path === "/user") return Response.json({ id, login, name, type: "User", email: null }, { headers });
    if (path === "/user/emails") {
      if (this.#isApp) return toMessage(403, "Resource not accessible by integration");
      if (!scopes.some((each) => each === "user" || each === "user:email")) return toMessage(404, "Not Found");
      return Response.json(emails, { headers });
    }
    const listed = this.#isApp || scopes.includes("repo") ? repos : repos.filter((each) => !each.private);
    const owner = { id, login };
    const list = listed.map((each, at) => ({
      id: id * 100 + at,
      name: each.name,
      full_name: `${login}/${each.name}`,
      private: each.private,
      owner,
      html_url: `https://github.com/${login}/${each.name}`,
    }));
    return Response.json(list, { headers });
  }

  async #delete(request: Request, isGrant: boolean): Promise<Response> {
    const [id, secret] = readBasic(request) ?? [null, null];
    if (!this.isClient(id, secret)) return toMessage(404, "Not Found");
    const body = parseJson(await request.text());
    const token = isObject(body) ? String(body.access_token) : "";
    const issued = this.access.get(token);
    if (!issued) return toMessage(422, "Validation Failed");
    if (isGrant) this.revoke(issued.grant.user);
    else this.access.delete(token);
    return new Response(null, { status: 204 });
  }
}

function toMessage(status: number, message: string): Response {
  return Response.json({ message }, { status });
}

const GOOGLE_USERS: readonly FakeGoogleUser[] = [
  { id: "118150001", name: "Ada Lovelace", email: "ada@example.com", hostedDomain: "example.com" },
  { id: "119060002", name: "Grace Hopper", email: "grace@mail.example", isVerified: false },
];
const GOOGLE_SECONDS = 3599;

class Google extends Fake<string, FakeGoogleUser> {
  readonly #claims: Readonly<Record<string, unknown>>;
  /** Users who have agreed to offline access before. */
  readonly #agreed = new Set<string>();
  #pair?: Promise<CryptoKeyPair>;

  constructor(options: FakeGoogleOptions) {
    super(options, GOOGLE_USERS);
    this.#claims = options.claims ?? {};
  }

  protected override readonly routes = {
    "GET https://accounts.google.com/o/oauth2/v2/auth": (_: Request, url: URL) => this.#authorize(url),
    "POST https://oauth2.googleapis.com/token": (request: Request) => this.#exchange(request),
    "GET https://www.googleapis.com/oauth2/v3/certs": () => this.#listKeys(),
    "GET https://openidconnect.googleapis.com/v1/userinfo": (request: Request) => this.#readUser(request),
    "POST https://oauth2.googleapis.com/revoke": (request: Request, url: URL) => this.#revoke(request, url),
  };

  /** An invalid request shows an error page, and does not redirect. */
  #authorize(url: URL): Response {
    const query = url.searchParams;
    if (query.get("client_id") !== this.client.clientId) return new Response("invalid_client", { status: 401 });
    if (this.findOtherCallback(url) !== undefined) return new Response("redirect_uri_mismatch", { status: 400 });
    const scopes = (query.get("scope") ?? "").split(" ").filter(Boolean);
    if (query.get("response_type") !== "code" || !scopes.length) {
      return new Response("invalid_request", { status: 400 });
    }
    const isFirst = !this.#agreed.has(this.current);
    const isAsked = query.get("prompt")?.split(" ").includes("consent") ?? false;
    // Google returns a refresh token only when the user gives consent.
    const isOffline = query.get("access_type") === "offline" && (isFirst || isAsked);
    if (!this.deny) this.#agreed.add(this.current);
    return this.authorize(url, scopes, isOffline);
  }

  async #exchange(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const [id, secret] = readBasic(request) ?? [form.get("client_id"), form.get("client_secret")];
    if (!this.isClient(id, secret)) return Response.json({ error: "invalid_client" }, { status: 401 });
    const isRefresh = form.get("grant_type") === "refresh_token";
    const code = isRefresh ? undefined : await this.takeCode(form);
    const grant = code ?? this.refresh.get(form.get("refresh_token") ?? "")?.grant;
    if (!grant) return Response.json({ error: "invalid_grant" }, { status: 400 });
    const accessToken = makeToken("ya29.");
    const { user, scopes } = grant;
    this.access.set(accessToken, { grant, expiresAt: this.date() + GOOGLE_SECONDS * 1000 });
    const fields: Record<string, string | number> = {
      access_token: accessToken,
      expires_in: GOOGLE_SECONDS,
      scope: scopes.join(" "),
      token_type: "Bearer",
    };
    if (scopes.includes("openid")) fields.id_token = await this.#sign(grant);
    if (code?.isOffline) {
      const token = makeToken("1//");
      // The ID token of a refresh has no nonce.
      this.refresh.set(token, { grant: { user, scopes }, expiresAt: Infinity });
      fields.refresh_token = token;
    }
    return Response.json(fields);
  }

  #readUser(request: Request): Response {
    const grant = this.findGrant(request);
    if (!grant) return Response.json({ error: "invalid_request" }, { status: 401 });
    return Response.json(this.#toClaims(grant));
  }

  /** Google ends the whole authorization, whichever of its tokens is revoked. */
  async #revoke(request: Request, url: URL): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const token = form.get("token") ?? url.searchParams.get("token") ?? "";
    const issued = this.refresh.get(token) ?? this.access.get(token);
    if (!issued) return Response.json({ error: "invalid_token" }, { status: 400 });
    this.revoke(issued.grant.user);
    return Response.json({});
  }

  override revoke(id: string): void {
    this.#agreed.delete(id);
    super.revoke(id);
  }

  #toClaims(grant: Grant<string>): Readonly<Record<string, unknown>> {
    const { id, name, email, isVerified = true, hostedDomain } = this.findUser(grant);
    const { scopes } = grant;
    const address = scopes.includes("email") && email !== undefined ? { email, email_verified: isVerified } : {};
    return { sub: id, ...scopes.includes("profile") ? { name } : {}, ...address, hd: hostedDomain };
  }

  async #sign(grant: Grant<string>): Promise<string> {
    const { clientId } = this.client;
    const now = Math.floor(this.date() / 1000);
    const claims = {
      iss: "https://accounts.google.com",
      aud: clientId,
      azp: clientId,
      iat: now,
      exp: now + 3600,
      nonce: grant.nonce,
      ...this.#toClaims(grant),
      ...this.#claims,
    };
    const { privateKey } = await this.#getPair();
    const text = [{ alg: "RS256", kid: KEY_ID, typ: "JWT" }, claims].map(toPart).join(".");
    const signature = await crypto.subtle.sign("RSASSA-PKCS1-v1_5", privateKey, new TextEncoder().encode(text));
    return `${text}.${toBase64Url(new Uint8Array(signature))}`;
  }

  async #listKeys(): Promise<Response> {
    const { publicKey } = await this.#getPair();
    const { kty, n, e } = await crypto.subtle.exportKey("jwk", publicKey);
    return Response.json({ keys: [{ kty, n, e, kid: KEY_ID, alg: "RS256", use: "sig" }] });
  }

  #getPair(): Promise<CryptoKeyPair> {
    const modulus = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
    const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", ...modulus };
    return this.#pair ??= crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  }
}

const KEY_ID = "fake-key";

function toPart(value: unknown): string {
  return toBase64Url(new TextEncoder().encode(JSON.stringify(value)));
}

async function hash(text: string): Promise<string> {
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

function makeToken(prefix: string): string {
  return prefix + toBase64Url(crypto.getRandomValues(new Uint8Array(24)));
}

/** Reads form-encoded credentials from the header `Authorization: Basic`. */
function readBasic(request: Request): readonly [string, string] | undefined {
  const credential = readCredential(request, "basic");
  if (credential === undefined) return;
  const [id, secret = ""] = atob(credential).split(":").map((each) => decodeURIComponent(each.replace(/\+/g, " ")));
  return [id, secret];
}

function readCredential(request: Request, scheme: "basic" | "bearer"): string | undefined {
  const [name, credential] = (request.headers.get("authorization") ?? "").split(" ");
  return name.toLowerCase() === scheme ? credential : undefined;
}
