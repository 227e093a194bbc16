// The providers at which users of an OAuth proxy sign in, against fakes: which users are found, and which tokens and
// responses are refused.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import type { Provider, ProviderTokens, ProviderUser } from "../../src/auth/oauth/proxy/provider.ts";
import { entra, github, google, oauth2, oidc } from "../../src/auth/oauth/proxy/providers.ts";
import { InvalidToken } from "../../src/auth/oauth/claims.ts";
import { fakeGitHub, fakeGoogle } from "../../src/testing/testing.ts";
import { SignJWT } from "jose";
import { type IssuerKey, makeKey } from "../support/issuer.ts";
import { sentence } from "../support/messages.ts";
import { patch } from "../support/patch.ts";

const CALLBACK = "https://notes.example/callback";
const CLIENT = { clientId: "client", clientSecret: "secret" };
const NONCE = "nonce-1";

type Fetch = (request: Request) => Promise<Response>;

function toCall(fetch: Fetch, nonce?: string) {
  return { fetch, signal: new AbortController().signal, nonce, hasOthers: false };
}

/** Sends the authorization request as a browser does, and returns the redirect. */
async function authorize(provider: Provider, fetch: Fetch, callback = CALLBACK): Promise<Response> {
  const { authorize } = await provider.endpoints(toCall(fetch));
  const url = new URL(authorize);
  const { clientId, scopes, params } = provider;
  const own = { client_id: clientId, redirect_uri: callback, response_type: "code", state: "state-1", nonce: NONCE };
  url.search = String(new URLSearchParams({ ...own, scope: scopes.join(" "), ...params }));
  return await fetch(new Request(url));
}

async function exchange(
  provider: Provider,
  fetch: Fetch,
  params: Record<string, string>,
): Promise<{ readonly status: number; readonly json: Record<string, unknown> }> {
  const { token } = await provider.endpoints(toCall(fetch));
  const { clientId, clientSecret } = provider;
  const body = new URLSearchParams({ client_id: clientId, client_secret: clientSecret, ...params });
  const headers = { accept: "application/json" };
  const response = await fetch(new Request(token, { method: "POST", headers, body }));
  return { status: response.status, json: await response.json() };
}

function readTokens(json: Record<string, unknown>): ProviderTokens {
  const read = (name: string) => json[name] === undefined ? undefined : String(json[name]);
  return {
    accessToken: String(json.access_token),
    refreshToken: read("refresh_token"),
    idToken: read("id_token"),
  };
}

async function signIn(provider: Provider, fetch: Fetch): Promise<ProviderTokens> {
  const location = new URL((await authorize(provider, fetch)).headers.get("location") ?? "");
  assertEquals(location.searchParams.get("state"), "state-1");
  const code = location.searchParams.get("code") ?? "";
  const form = { grant_type: "authorization_code", code, redirect_uri: CALLBACK };
  return readTokens((await exchange(provider, fetch, form)).json);
}

async function refresh(provider: Provider, fetch: Fetch, { refreshToken = "" }: ProviderTokens) {
  return await exchange(provider, fetch, { grant_type: "refresh_token", refresh_token: refreshToken });
}

function withoutFacts(user: ProviderUser | undefined): Omit<ProviderUser, "facts"> | undefined {
  if (!user) return;
  const { facts: _, ...rest } = user;
  return rest;
}

/**
 * Asserts that an operation rejects with a message that contains `name`, in the last of its causes, and that no message
 * contains a secret.
 */
async function assertFails(
  run: () => Promise<unknown>,
  { name, secrets = [] }: { readonly name: string; readonly secrets?: readonly string[] },
): Promise<void> {
  const error = await assertRejects(run, Error);
  const texts: string[] = [];
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) texts.push(cause.message);
  assertEquals(texts.at(-1), sentence(name));
  for (const secret of secrets) assert(!texts.some((text) => text.includes(secret)), `a message contains ${secret}`);
}

Deno.test("github() finds the user of an OAuth App by the numeric id, with a verified e-mail address", async () => {
  const hub = fakeGitHub();
  const provider = github({ ...hub.client, scopes: ["user:email", "repo"] });
  const tokens = await signIn(provider, hub.fetch);
  assertEquals(tokens.refreshToken, undefined);
  const user = await provider.findUser(tokens, toCall(hub.fetch));
  assertEquals(withoutFacts(user), { subject: "1815", name: "Ada Lovelace", email: "ada@example.com" });
  assertEquals(user?.facts.login, "ada");
  hub.current = 1906;
  const other = await provider.findUser(await signIn(provider, hub.fetch), toCall(hub.fetch));
  assertEquals(withoutFacts(other), { subject: "1906", name: "Grace Hopper" });
});

Deno.test("github() does not request e-mail addresses without the scope", async () => {
  for (const scopes of [undefined, ["read:user"]]) {
    const hub = fakeGitHub();
    const provider = github({ ...hub.client, scopes });
    const user = await provider.findUser(await signIn(provider, hub.fetch), toCall(hub.fetch));
    assertEquals(user?.email, undefined);
    assert(!hub.requests.includes("GET https://api.github.com/user/emails"));
  }
});

Deno.test("github() accepts a user without a name, and a GitHub App that cannot read e-mail addresses", async () => {
  const hub = fakeGitHub({ isApp: true, users: [{ id: 7, login: "bot" }] });
  const provider = github({ ...hub.client, scopes: ["user:email"] });
  const user = await provider.findUser(await signIn(provider, hub.fetch), toCall(hub.fetch));
  assertEquals(withoutFacts(user), { subject: "7", name: "bot" });
  assert(hub.requests.includes("GET https://api.github.com/user/emails"));
});

Deno.test("github() refreshes the tokens of a GitHub App, and ends the grant at bad_refresh_token", async () => {
  let now = Date.now();
  const hub = fakeGitHub({ isApp: true, date: () => now });
  const provider = github(hub.client);
  const first = await signIn(provider, hub.fetch);
  now += 8 * 3_600_000;
  assertEquals(await provider.findUser(first, toCall(hub.fetch)), undefined);
  const second = await refresh(provider, hub.fetch, first);
  assertEquals([second.json.expires_in, provider.isEnd(second)], [28_800, false]);
  const tokens = readTokens(second.json);
  assertEquals((await provider.findUser(tokens, toCall(hub.fetch)))?.subject, "1815");
  const again = await refresh(provider, hub.fetch, first);
  assertEquals([again.status, again.json.error, provider.isEnd(again)], [200, "bad_refresh_token", true]);
  hub.revoke(1815);
  assertEquals(provider.isEnd(await refresh(provider, hub.fetch, tokens)), true);
});

Deno.test("errors of GitHub's token endpoint have the status 200, and only bad_refresh_token ends a grant", async () => {
  const hub = fakeGitHub();
  const provider = github(hub.client);
  const form = { grant_type: "authorization_code", code: "unknown", redirect_uri: CALLBACK };
  const wrong = await exchange(provider, hub.fetch, form);
  assertEquals([wrong.status, wrong.json.error, provider.isEnd(wrong)], [200, "bad_verification_code", false]);
  const foreign = await exchange(provider, hub.fetch, { ...form, client_secret: "other" });
  assertEquals([foreign.json.error, provider.isEnd(foreign)], ["incorrect_client_credentials", false]);
  assertEquals(provider.isEnd({ status: 503, json: { error: "bad_refresh_token" } }), false);
});

Deno.test("github() revokes one token with the client's credentials", async () => {
  const hub = fakeGitHub();
  const provider = github({ ...hub.client, selectAccount: true });
  assertEquals(provider.params, { prompt: "select_account" });
  const [first, second] = [await signIn(provider, hub.fetch), await signIn(provider, hub.fetch)];
  await provider.revoke?.(first, { ...toCall(hub.fetch), hasOthers: true });
  assertEquals(await provider.findUser(first, toCall(hub.fetch)), undefined);
  assertEquals((await provider.findUser(second, toCall(hub.fetch)))?.subject, "1815");
  await provider.revoke?.(first, toCall(hub.fetch));
  hub.fail(500);
  const secrets = [second.accessToken, hub.client.clientSecret];
  await assertFails(async () => await provider.revoke?.(second, toCall(hub.fetch)), { name: "status 500", secrets });
});

Deno.test("the fake of GitHub denies, fails and rejects other redirect URIs", async () => {
  const hub = fakeGitHub({ callback: CALLBACK });
  const provider = github(hub.client);
  const readError = async (callback?: string) => {
    const location = new URL((await authorize(provider, hub.fetch, callback)).headers.get("location") ?? "");
    return [location.origin + location.pathname, location.searchParams.get("error")];
  };
  assertEquals(await readError("https://attacker.example/"), [CALLBACK, "redirect_uri_mismatch"]);
  hub.deny = true;
  assertEquals(await readError(), [CALLBACK, "access_denied"]);
  hub.fail(503);
  assertEquals((await authorize(provider, hub.fetch)).status, 503);
  hub.fail();
  await assertRejects(() => hub.fetch(new Request("https://other.example/")), TypeError);
});

Deno.test("the fake of GitHub lists private repositories only with the scope repo", async () => {
  const hub = fakeGitHub();
  const list = async (scopes: readonly string[]) => {
    const { accessToken } = await signIn(github({ ...hub.client, scopes }), hub.fetch);
    const headers = { authorization: `Bearer ${accessToken}`, "user-agent": "test" };
    const response = await hub.fetch(new Request("https://api.github.com/user/repos", { headers }));
    return (await response.json()).map(({ full_name: name }: { readonly full_name: string }) => name);
  };
  assertEquals([await list([]), await list(["repo"])], [["ada/engine"], ["ada/engine", "ada/notes"]]);
});

Deno.test("a provider that fails, redirects, or sends too much is an error without tokens and bodies", async () => {
  const tokens = { accessToken: "token-7f3a", refreshToken: "refresh-7f3a" };
  const providers = [
    github(CLIENT),
    google(CLIENT),
    oauth2({
      ...CLIENT,
      name: "Own",
      endpoints: { authorize: "https://own.example/authorize", token: "https://own.example/token" },
      apis: ["https://own.example"],
      user: async ({ fetch }) => {
        const { status } = await fetch("https://own.example/me");
        throw new Error(`status ${status}`);
      },
    }),
  ];
  const responses: readonly (readonly [response: () => Response, name: string])[] = [
    [() => new Response("token-7f3a body-7f3a", { status: 500 }), "status 500"],
    [() => new Response(null, { status: 302, headers: { location: "https://attacker.example/" } }), "status 302"],
    [() => new Response("body-7f3a".repeat(100_000)), "bytes"],
  ];
  for (const provider of providers) {
    for (const [respond, name] of responses) {
      const requests: Request[] = [];
      const fetch = (request: Request) => {
        requests.push(request);
        return Promise.resolve(respond());
      };
      const secrets = [tokens.accessToken, tokens.refreshToken, CLIENT.clientSecret, "body-7f3a"];
      await assertFails(() => provider.findUser(tokens, toCall(fetch)), { name, secrets });
      assertEquals(requests.map(({ redirect }) => redirect), ["manual"]);
    }
  }
  for (const text of ["no JSON body-7f3a", "[]", JSON.stringify({ id: "text", sub: 7 })]) {
    for (const provider of providers.slice(0, 2)) {
      const fetch = () => Promise.resolve(new Response(text));
      await assertFails(() => provider.findUser(tokens, toCall(fetch)), {
        name: provider.name,
        secrets: ["7f3a"],
      });
    }
  }
});

Deno.test("a request ends at the timeout, and when the call is cancelled", async () => {
  const provider = github(CLIENT);
  const { promise: never } = Promise.withResolvers<Response>();
  const tokens = { accessToken: "token-7f3a" };
  const late = new AbortController();
  {
    using _ = patch(AbortSignal, { timeout: () => late.signal });
    const finding = provider.findUser(tokens, toCall(() => never));
    late.abort(new Error("timeout"));
    await assertFails(() => finding, { name: "timeout" });
  }
  const end = new AbortController();
  const finding = provider.findUser(tokens, { fetch: () => never, signal: end.signal });
  end.abort(new Error("cancelled"));
  await assertFails(() => finding, { name: "cancelled" });
});

Deno.test("google() finds the user in the ID token, with the address only if it is verified", async () => {
  const fake = fakeGoogle();
  const provider = google(fake.client);
  const tokens = await signIn(provider, fake.fetch);
  assert(tokens.refreshToken !== undefined && tokens.idToken !== undefined);
  const user = await provider.findUser(tokens, toCall(fake.fetch, NONCE));
  assertEquals(withoutFacts(user), { subject: "118150001", name: "Ada Lovelace", email: "ada@example.com" });
  assertEquals(user?.facts.hd, "example.com");
  fake.current = "119060002";
  const other = await provider.findUser(await signIn(provider, fake.fetch), toCall(fake.fetch, NONCE));
  assertEquals(withoutFacts(other), { subject: "119060002", name: "Grace Hopper" });
  assertEquals(fake.requests.filter((each) => each.endsWith("/certs")).length, 1, "the keys are loaded once");
});

Deno.test("google() refreshes without a nonce, and without an ID token asks for the user", async () => {
  const fake = fakeGoogle();
  const provider = google({ ...fake.client, scopes: ["email"], selectAccount: true });
  assertEquals(provider.params, { access_type: "offline", prompt: "select_account consent" });
  assertEquals(provider.scopes, ["openid", "email"]);
  const first = await signIn(provider, fake.fetch);
  fake.expire();
  const { refreshToken, accessToken } = first;
  assertEquals(await provider.findUser({ accessToken }, toCall(fake.fetch)), undefined);
  const next = await refresh(provider, fake.fetch, { accessToken, refreshToken });
  const tokens = readTokens(next.json);
  assertEquals(tokens.refreshToken, undefined, "Google does not rotate refresh tokens");
  assertEquals((await provider.findUser(tokens, toCall(fake.fetch)))?.subject, "118150001");
  const { idToken: _, ...opaque } = tokens;
  const user = await provider.findUser(opaque, toCall(fake.fetch));
  assertEquals(withoutFacts(user), { subject: "118150001", email: "ada@example.com" });
  await provider.revoke?.(first, { ...toCall(fake.fetch), hasOthers: true });
  assertEquals((await provider.findUser(opaque, toCall(fake.fetch)))?.subject, "118150001");
  await provider.revoke?.(first, toCall(fake.fetch));
  assertEquals(await provider.findUser(opaque, toCall(fake.fetch)), undefined);
  const ended = await refresh(provider, fake.fetch, first);
  assertEquals([ended.status, provider.isEnd(ended)], [400, true]);
  await provider.revoke?.(first, toCall(fake.fetch));
});

Deno.test("google() refuses ID tokens of other sign-ins, clients, issuers and times", async () => {
  const past = Math.floor(Date.now() / 1000) - 3600;
  const cases: readonly (readonly [claims: Record<string, unknown>, name: string])[] = [
    [{ nonce: "other" }, "(nonce)"],
    [{ nonce: undefined }, "(nonce)"],
    [{ aud: "other" }, "(aud)"],
    [{ aud: ["fake-client", "other"], azp: "other" }, "(aud)"],
    [{ iss: "https://accounts.google.com.attacker.example" }, "(iss)"],
    [{ exp: past }, "(exp)"],
    [{ exp: undefined }, "exp"],
    [{ sub: undefined }, "sub"],
  ];
  for (const [claims, name] of cases) {
    const fake = fakeGoogle({ claims });
    const provider = google(fake.client);
    const tokens = await signIn(provider, fake.fetch);
    const secrets = [tokens.accessToken, tokens.idToken ?? "", tokens.refreshToken ?? ""];
    const find = () => provider.findUser(tokens, toCall(fake.fetch, NONCE));
    await assertFails(find, { name, secrets });
    await assertRejects(find, InvalidToken);
  }
  const [one, two] = [fakeGoogle(), fakeGoogle()];
  const provider = google(one.client);
  const { accessToken, idToken = "" } = await signIn(provider, two.fetch);
  const find = (token?: string) => () => provider.findUser({ accessToken, idToken: token }, toCall(one.fetch, NONCE));
  await assertFails(find(idToken), { name: "signature" });
  await assertFails(find("a.b.c"), { name: "signature" });
  await assertFails(find(undefined), { name: "Google" });
});

Deno.test("google() accepts only users of the hosted domain, if there is one", async () => {
  const fake = fakeGoogle();
  const provider = google({ ...fake.client, hostedDomain: "Example.com" });
  assertEquals(provider.params.hd, "example.com");
  const tokens = await signIn(provider, fake.fetch);
  assertEquals((await provider.findUser(tokens, toCall(fake.fetch, NONCE)))?.subject, "118150001");
  fake.current = "119060002";
  const other = await signIn(provider, fake.fetch);
  await assertFails(() => provider.findUser(other, toCall(fake.fetch, NONCE)), { name: "(hd)" });
  const { accessToken } = other;
  await assertFails(() => provider.findUser({ accessToken }, toCall(fake.fetch)), { name: "(hd)" });
});

Deno.test("the fake of Google returns a refresh token only after consent", async () => {
  const fake = fakeGoogle();
  const online = { ...google(fake.client), params: {} };
  assertEquals((await signIn(online, fake.fetch)).refreshToken, undefined);
  const silent = { ...google(fake.client), params: { access_type: "offline" } };
  assertEquals((await signIn(silent, fake.fetch)).refreshToken, undefined);
  assert((await signIn(google(fake.client), fake.fetch)).refreshToken !== undefined);
  assertEquals((await authorize(online, fake.fetch, "https://attacker.example/")).status, 400);
});

const TENANT = "11111111-2222-3333-4444-555555555555";
const OTHER_TENANT = "99999999-2222-3333-4444-555555555555";

/** Signs an ID token that is valid unless `claims` replaces claims. */
async function sign(key: IssuerKey, claims: Record<string, unknown>): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const all = { aud: CLIENT.clientId, sub: "pairwise", iat: now, exp: now + 600, nonce: NONCE, ...claims };
  const { kid } = key.jwk;
  return await new SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader({ alg: key.alg, kid }).sign(
    key.privateKey,
  );
}

/** Responds with JSON by URL. Counts the requests. */
class Pages {
  readonly paths: string[] = [];
  readonly #pages: Record<string, unknown>;

  constructor(pages: Record<string, unknown>) {
    this.#pages = pages;
  }

  readonly fetch = (request: Request): Promise<Response> => {
    this.paths.push(request.url);
    const page = this.#pages[request.url];
    return Promise.resolve(page === undefined ? new Response("", { status: 404 }) : Response.json(page));
  };
}

function entraPages(key: IssuerKey, tenant: string): Pages {
  const base = `https://login.microsoftonline.com/${tenant}`;
  return new Pages({
    [`${base}/discovery/v2.0/keys`]: { keys: [key.jwk] },
    [`${base}/v2.0/.well-known/openid-configuration`]: {
      issuer: `https://login.microsoftonline.com/${TENANT}/v2.0`,
    },
  });
}

function entraClaims(tenant: string): Record<string, unknown> {
  const iss = `https://login.microsoftonline.com/${tenant}/v2.0`;
  return { iss, tid: tenant, oid: "object-1", name: "Ada", email: "ada@example.com", email_verified: true };
}

Deno.test("entra() finds the user by tenant and object, and does not trust the e-mail address", async () => {
  const key = await makeKey("RS256");
  for (const tenant of [TENANT, "contoso.com"]) {
    const pages = entraPages(key, tenant);
    const provider = entra({ ...CLIENT, tenant, scopes: ["User.Read"] });
    assertEquals(provider.scopes, ["openid", "profile", "offline_access", "User.Read"]);
    const { authorize } = await provider.endpoints(toCall(pages.fetch));
    assertEquals(authorize, `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/authorize`);
    const find = async (claims: Record<string, unknown>) =>
      await provider.findUser({ accessToken: "t", idToken: await sign(key, claims) }, toCall(pages.fetch, NONCE));
    const user = await find(entraClaims(TENANT));
    assertEquals(withoutFacts(user), { subject: `${TENANT}.object-1`, name: "Ada" });
    const refused: readonly (readonly [claims: Record<string, unknown>, name: string])[] = [
      [entraClaims(OTHER_TENANT), "(iss)"],
      [{ ...entraClaims(TENANT), tid: OTHER_TENANT }, "tid"],
      [{ ...entraClaims(TENANT), tid: undefined }, "tid"],
      [{ ...entraClaims(TENANT), oid: undefined }, "oid"],
      [{ ...entraClaims(TENANT), aud: "other" }, "(aud)"],
      [{ ...entraClaims(TENANT), nonce: "other" }, "(nonce)"],
    ];
    for (const [claims, name] of refused) await assertFails(() => find(claims), { name });
    await assertFails(() => provider.findUser({ accessToken: "t" }, toCall(pages.fetch)), { name: "ID token" });
    assertEquals(provider.isEnd({ status: 400, json: { error: "interaction_required" } }), true);
  }
});

Deno.test("entra() accepts only the listed tenants of a shared endpoint", async () => {
  const key = await makeKey("RS256");
  const pages = entraPages(key, "organizations");
  const provider = entra({ ...CLIENT, tenant: "organizations", tenants: [TENANT.toUpperCase()] });
  const find = async (tenant: string) => {
    const idToken = await sign(key, entraClaims(tenant));
    return await provider.findUser({ accessToken: "t", idToken }, toCall(pages.fetch, NONCE));
  };
  assertEquals((await find(TENANT))?.subject, `${TENANT}.object-1`);
  await assertFails(() => find(OTHER_TENANT), { name: "(iss)" });
  for (const tenant of ["common", "organizations", "consumers", "Common"]) {
    assertThrows(() => entra({ ...CLIENT, tenant }), TypeError, sentence(tenant));
  }
  for (const tenant of ["", "a/b", "..", "https://contoso.com"]) {
    assertThrows(() => entra({ ...CLIENT, tenant }), TypeError, sentence("entra()"));
  }
  for (const tenants of [[], ["contoso.com"]]) {
    assertThrows(() => entra({ ...CLIENT, tenant: "common", tenants }), TypeError, sentence("tenants"));
  }
});

const ISSUER = "https://login.example/realms/a";
const METADATA_URL = "https://login.example/.well-known/openid-configuration/realms/a";
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  jwks_uri: `${ISSUER}/jwks`,
};

function oidcPages(key: IssuerKey, { metadata = {}, ...pages }: Record<string, unknown> = {}): Pages {
  const more = { [METADATA_URL]: { ...METADATA, ...Object(metadata) }, [`${ISSUER}/jwks`]: { keys: [key.jwk] } };
  return new Pages({ ...more, ...pages });
}

Deno.test("oidc() reads the endpoints from metadata with the same issuer", async () => {
  const key = await makeKey();
  const provider = oidc(ISSUER, { ...CLIENT, params: { audience: "notes" }, apis: ["https://api.example"] });
  assertEquals([provider.name, provider.params, provider.apis], [
    "login.example",
    { audience: "notes" },
    ["https://api.example"],
  ]);
  const pages = oidcPages(key);
  const found = {
    issuer: undefined,
    authorize: `${ISSUER}/authorize`,
    token: `${ISSUER}/token`,
    secretIn: "header" as const,
    pkce: true,
  };
  assertEquals(await provider.endpoints(toCall(pages.fetch)), found);
  assertEquals(await provider.endpoints(toCall(pages.fetch)), found);
  assertEquals(pages.paths, ["https://login.example/.well-known/oauth-authorization-server/realms/a", METADATA_URL]);
  const metadata = {
    authorization_response_iss_parameter_supported: true,
    code_challenge_methods_supported: ["plain"],
  };
  const other = await oidc(ISSUER, CLIENT).endpoints(toCall(oidcPages(key, { metadata }).fetch));
  assertEquals([other.issuer, other.pkce], [ISSUER, false]);
  const refused = [{ issuer: `${ISSUER}/` }, { token_endpoint: "http://login.example/token" }, {
    authorization_endpoint: "http://127.0.0.1/authorize",
  }];
  for (const metadata of refused) {
    const pages = oidcPages(key, { metadata });
    const load = () => oidc(ISSUER, CLIENT).endpoints(toCall(pages.fetch));
    await assertFails(load, { name: "issuer" in metadata ? METADATA_URL : ISSUER });
  }
});

Deno.test("oidc() finds the user in the ID token, in the userinfo, or in both if they agree", async () => {
  const key = await makeKey();
  const claims = { iss: ISSUER, sub: "ada", email: "ada@example.com", email_verified: false };
  const idToken = await sign(key, claims);
  const find = async (pages: Pages, { idToken, nonce }: { readonly idToken?: string; readonly nonce?: string }) =>
    withoutFacts(
      await oidc(ISSUER, CLIENT).findUser({ accessToken: "t", idToken }, toCall(pages.fetch, nonce)),
    );
  assertEquals(await find(oidcPages(key), { idToken, nonce: NONCE }), { subject: "ada" });
  const info = (userinfo: unknown) =>
    oidcPages(key, { metadata: { userinfo_endpoint: `${ISSUER}/me` }, [`${ISSUER}/me`]: userinfo });
  const verified = { sub: "ada", name: "Ada", email: "ada@new.example", email_verified: true };
  const both = await find(info(verified), { idToken, nonce: NONCE });
  assertEquals(both, { subject: "ada", name: "Ada", email: "ada@new.example" });
  assertEquals((await find(info(verified), {}))?.email, "ada@new.example");
  // The verification of one address says nothing about another address.
  const mixed = { idToken: await sign(key, { ...claims, email_verified: true }), nonce: NONCE };
  assertEquals(await find(info({ sub: "ada", email: "grace@example.com" }), mixed), { subject: "ada" });
  assertEquals(await find(info({ sub: "ada", email_verified: true }), { idToken, nonce: NONCE }), { subject: "ada" });
  const missing = info(verified);
  await assertFails(() => find(missing, { nonce: NONCE }), { name: "ID token" });
  await assertFails(() => find(info({ sub: "grace" }), { idToken, nonce: NONCE }), { name: "(sub)" });
  await assertFails(() => find(oidcPages(key), {}), { name: "ID token" });
  await assertFails(() => find(oidcPages(key), { idToken, nonce: "other" }), { name: "(nonce)" });
  const foreign = await sign(key, { ...claims, iss: `${ISSUER}/` });
  await assertFails(() => find(oidcPages(key), { idToken: foreign, nonce: NONCE }), { name: "(iss)" });
  const unknown = await sign(await makeKey(), claims);
  await assertFails(() => find(oidcPages(key), { idToken: unknown, nonce: NONCE }), { name: "key" });
});

Deno.test("oidc() loads the keys again if the provider has rotated its keys", async () => {
  const [first, second] = [await makeKey(), await makeKey()];
  let key = first;
  const provider = oidc(ISSUER, CLIENT);
  const fetch = (request: Request) => oidcPages(key).fetch(request);
  const find = async () => {
    const idToken = await sign(key, { iss: ISSUER, sub: "ada" });
    return (await provider.findUser({ accessToken: "t", idToken }, toCall(fetch, NONCE)))?.subject;
  };
  assertEquals(await find(), "ada");
  key = second;
  await assertFails(find, { name: "key" });
  const later = Date.now() + 31_000;
  using _ = patch(Date, { now: () => later });
  assertEquals(await find(), "ada");
});

Deno.test("a load that a cancelled call has started continues for other calls", async () => {
  const key = await makeKey();
  const provider = oidc(ISSUER, CLIENT);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const fetch = async (request: Request) => {
    await released;
    return await oidcPages(key).fetch(request);
  };
  const end = new AbortController();
  const cancelled = provider.endpoints({ fetch, signal: end.signal });
  const waiting = provider.endpoints(toCall(fetch));
  end.abort(new Error("cancelled"));
  await assertFails(() => cancelled, { name: "cancelled" });
  release();
  assertEquals((await waiting).token, `${ISSUER}/token`);
});

Deno.test("the fakes require the verifier of a PKCE challenge, and accept each code once", async () => {
  const hub = fakeGitHub();
  const verifier = "verifier-".repeat(6);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const challenge = btoa(String.fromCharCode(...digest)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  const provider = { ...github(hub.client), params: { code_challenge: challenge, code_challenge_method: "S256" } };
  const run = async (given: Record<string, string>) => {
    const location = new URL((await authorize(provider, hub.fetch)).headers.get("location") ?? "");
    const form = { code: location.searchParams.get("code") ?? "", redirect_uri: CALLBACK, ...given };
    return [await exchange(provider, hub.fetch, form), await exchange(provider, hub.fetch, form)].map(({ json }) =>
      json.error
    );
  };
  assertEquals(await run({ code_verifier: verifier }), [undefined, "bad_verification_code"]);
  assertEquals(await run({}), ["bad_verification_code", "bad_verification_code"]);
});

Deno.test("oidc() refuses ID tokens that are signed with a shared key or not at all", async () => {
  const key = await makeKey();
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: ISSUER, sub: "ada", aud: CLIENT.clientId, iat: now, exp: now + 600, nonce: NONCE };
  const shared = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" })
    .sign(new TextEncoder().encode(CLIENT.clientSecret.padEnd(32, "-")));
  const toPart = (value: unknown) => btoa(JSON.stringify(value)).replace(/=/g, "");
  for (const idToken of [shared, `${toPart({ alg: "none" })}.${toPart(claims)}.`]) {
    const find = () =>
      oidc(ISSUER, CLIENT).findUser({ accessToken: "t", idToken }, toCall(oidcPages(key).fetch, NONCE));
    await assertFails(find, { name: "signature", secrets: [idToken] });
  }
});

Deno.test("oidc() revokes the refresh token, if the provider has an endpoint for it", async () => {
  const key = await makeKey();
  const provider = oidc(ISSUER, CLIENT);
  await provider.revoke?.({ accessToken: "t" }, toCall(oidcPages(key).fetch));
  const pages = oidcPages(key, { metadata: { revocation_endpoint: `${ISSUER}/revoke` } });
  const bodies: string[] = [];
  const fetch = async (request: Request) => {
    if (request.method !== "POST") return await pages.fetch(request);
    bodies.push(await request.text());
    assertEquals(request.headers.get("authorization"), `Basic ${btoa("client:secret")}`);
    return new Response(null, { status: bodies.length === 1 ? 200 : 503 });
  };
  const other = oidc(ISSUER, CLIENT);
  await other.revoke?.({ accessToken: "t", refreshToken: "r" }, { ...toCall(fetch), hasOthers: true });
  assertEquals(bodies, []);
  await other.revoke?.({ accessToken: "t", refreshToken: "r" }, toCall(fetch));
  assertEquals(bodies, ["token=r&token_type_hint=refresh_token"]);
  await assertFails(async () => await other.revoke?.({ accessToken: "t" }, toCall(fetch)), { name: "status 503" });
});

Deno.test("oauth2() sends the token only to the listed origins", async () => {
  const seen: (readonly [url: string, authorization: string | null])[] = [];
  const fetch = (request: Request) => {
    seen.push([request.url, request.headers.get("authorization")]);
    return Promise.resolve(Response.json({ viewer: { id: "u1", name: "Ada" } }));
  };
  let url = "https://api.own.example/me";
  const options = {
    ...CLIENT,
    name: "Own",
    endpoints: { authorize: "https://own.example/authorize", token: "https://own.example/token" },
    apis: ["https://api.own.example"],
    ends: ["token_revoked"],
  };
  const provider = oauth2({
    ...options,
    user: async ({ fetch }) => {
      const { viewer } = await (await fetch(url)).json();
      return { subject: viewer.id, name: viewer.name, facts: viewer };
    },
  });
  const find = () => provider.findUser({ accessToken: "token-7f3a" }, toCall(fetch));
  assertEquals(await find(), { subject: "u1", name: "Ada", facts: { id: "u1", name: "Ada" } });
  for (
    const other of ["https://own.example/me", "https://api.own.example.attacker.example/", "http://api.own.example/"]
  ) {
    url = other;
    await assertFails(find, { name: "apis", secrets: ["7f3a"] });
  }
  assertEquals(seen, [["https://api.own.example/me", "Bearer token-7f3a"]]);
  assertEquals(
    ["token_revoked", "invalid_grant", "server_error"].map((error) => provider.isEnd({ status: 400, json: { error } })),
    [true, true, false],
  );
  const none = oauth2({ ...options, user: () => Promise.resolve(undefined) });
  assertEquals(await none.findUser({ accessToken: "t" }, toCall(fetch)), undefined);
  const empty = oauth2({ ...options, user: () => Promise.resolve({ subject: "", facts: {} }) });
  await assertFails(() => empty.findUser({ accessToken: "t" }, toCall(fetch)), { name: "subject" });
});

Deno.test("providers refuse wrong options, and accept unset credentials as empty texts", () => {
  const own = {
    ...CLIENT,
    name: "Own",
    endpoints: { authorize: "https://own.example/authorize", token: "https://own.example/token" },
    apis: [],
    user: () => Promise.resolve(undefined),
  };
  for (const unset of [{ clientId: undefined, clientSecret: undefined }, { clientId: "", clientSecret: "" }]) {
    const all = [
      github(unset),
      google(unset),
      entra({ ...unset, tenant: TENANT }),
      oidc(ISSUER, unset),
      oauth2({ ...own, ...unset }),
    ];
    for (const { clientId, clientSecret } of all) assertEquals([clientId, clientSecret], ["", ""]);
  }
  const cast = (options: unknown) => options as never;
  const refused: readonly (readonly [make: () => Provider, names: string])[] = [
    [() => github(cast({ ...CLIENT, clientSecret: 7 })), "github() clientSecret"],
    [() => github(cast({ ...CLIENT, secret: "s" })), "secret clientSecret"],
    [() => github({ ...CLIENT, scopes: ["a b"] }), "scopes"],
    [() => google(cast({ ...CLIENT, hd: "example.com" })), "hd hostedDomain"],
    [() => oidc("http://login.example", CLIENT), "oidc() http://login.example"],
    [() => oidc("https://user:pass@login.example", CLIENT), `oidc() "https://login.example"`],
    [() => oidc(ISSUER, { ...CLIENT, apis: ["https://api.example/v1"] }), "oidc() apis"],
    [() => oidc(ISSUER, { ...CLIENT, apis: ["http://api.example"] }), "oidc() apis"],
    [() => oidc(ISSUER, { ...CLIENT, params: { state: "1" } }), "params state"],
    [() => oidc(ISSUER, { ...CLIENT, params: cast({ a: 1 }) }), "oidc() params"],
    [() => oauth2({ ...own, endpoints: { ...own.endpoints, token: "http://own.example/" } }), "endpoints.token"],
    [() => oauth2(cast({ ...own, user: undefined })), "oauth2() user"],
    [() => oauth2(cast({ ...own, apis: undefined })), "oauth2() apis"],
    [() => oauth2({ ...own, name: "" }), "oauth2() name"],
  ];
  for (const [make, names] of refused) assertThrows(make, TypeError, sentence(...names.split(" ")));
});
