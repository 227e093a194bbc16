// Attacks on `oauthProxy`: each test is an attack that must fail.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { createServer, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { MetadataDocuments } from "../../src/auth/oauth/proxy/metadata_documents.ts";
import { Grants } from "../../src/auth/oauth/proxy/grants.ts";
import type { ProviderTokens } from "../../src/auth/oauth/proxy/provider.ts";
import { fetchWith, requestTokens, Upstream } from "../../src/auth/oauth/proxy/upstream.ts";
import { sha256 } from "../../src/core/kit/sha256.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import {
  authorize,
  Browser,
  call,
  open,
  type Opened,
  origin,
  redeem,
  redirectUri,
  refresh,
  register,
  resource,
  secret,
  signIn,
  TestProvider,
  toRequest,
} from "./proxy_flow.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** A body that sends one byte and never ends. `isCancelled` is set when the server stops reading it. */
function toSlowBody() {
  const state = { isCancelled: false };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array([97])),
    cancel() {
      state.isCancelled = true;
    },
  });
  return { body, state };
}

Deno.test("bodies that never end prevent no registration, and the server stops reading them", async () => {
  const clock = fakeClock();
  const { browser, server } = open({}, { clock, store: memoryStore({ clock }) });
  await server.ready();
  const bodies = Array.from({ length: 70 }, toSlowBody);
  const paths = ["/token", "/consent", "/revoke", ...Array.from({ length: 67 }, () => "/register")];
  const answers = paths.map((path, at) =>
    browser.open(origin + path, { method: "POST", body: bodies[at].body, headers: { ...FORM, origin } })
  );
  // The server reads all bodies before it handles the next request of another peer.
  const registration = { method: "POST", body: JSON.stringify({ redirect_uris: [redirectUri] }) };
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve));
  assertEquals((await new Browser(server, "192.0.2.9").open(`${origin}/register`, registration)).status, 201);
  await clock.advance(10_000);
  for (const { status } of await Promise.all(answers)) assert([200, 400, 503].includes(status), `${status}`);
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(bodies.filter(({ state }) => !state.isCancelled).length, 0);
  await server.close();
});

Deno.test("a request with very many parameters costs little, and the page shows none of their names", async () => {
  const { browser, server } = open();
  const query = Array.from({ length: 16_000 }, (_, at) => at.toString(36)).join("&");
  await (await browser.open(`${origin}/authorize`)).body?.cancel();
  const start = performance.now();
  const page = await browser.open(`${origin}/authorize?${query}&call+us=1&call+us=2`);
  // A comparison of each name with each other name takes more than a second.
  assert(performance.now() - start < 300, `${performance.now() - start} ms`);
  assertEquals([page.status, (await page.text()).includes("call us")], [400, false]);
  await server.close();
});

Deno.test("after a change of the provider, tokens of the old provider are not accepted and not sent", async () => {
  const store = memoryStore();
  const old = open({}, { store });
  const { client, access, refresh: token } = await signIn(old);
  const { provider: { provider } } = old;
  for (const change of [{ name: "Other" }, { clientId: "other" }]) {
    const other = new TestProvider();
    const changed = open({ provider: { ...provider, ...change }, fetch: other.fetch, prefix: "provider" }, { store });
    assertEquals((await call(changed, access))[0], 401);
    assertEquals((await refresh(changed.browser, client, token)).status, 400);
    assertEquals(other.requests.length, 0);
    // Clients remain registered.
    assertEquals((await changed.browser.open(await toRequest(client))).status, 200);
  }
  await old.server.close();
});

Deno.test("an invalid request is no redirect to the host of a metadata document", async () => {
  const id = "https://app.example.com/client.json";
  const redirect_uri = "https://app.example.com/callback";
  const document = { client_id: id, client_name: "App", redirect_uris: [redirect_uri, redirectUri] };
  const { browser, server } = open({ documents: { fetch: () => Promise.resolve(Response.json(document)) } });
  const page = await browser.open(await toRequest(id, { redirect_uri, response_type: "token" }));
  assertEquals([page.status, page.headers.get("location")], [400, null]);
  assertEquals((await browser.open(await toRequest(id, { redirect_uri }))).status, 200);
  assertEquals((await browser.open(await toRequest(id, { response_type: "token" }))).status, 303);
  await server.close();
});

const API = "https://api.provider.example";

/** Sends a request as `login.fetch()` does. `redirects` maps URLs to locations. Returns the requests that were sent. */
async function follow(url: string, redirects: Readonly<Record<string, string>>, init: RequestInit = {}) {
  const sent: Request[] = [];
  const answer = (request: Request) => {
    sent.push(request);
    const location = redirects[request.url];
    return Promise.resolve(
      location === undefined ? new Response("end") : new Response(null, { status: 302, headers: { location } }),
    );
  };
  const send = async () => await fetchWith("token", new Request(url, init).clone(), { apis: [API], fetch: answer });
  const end = await send().then(({ status }) => status, (error) => String(error));
  return {
    end,
    sent: sent.map((each) => [each.url, ...["authorization", "x-api-key"].map((name) => each.headers.get(name))]),
  };
}

Deno.test("a host to which an API redirects gets no header, and cannot choose a request with the token", async () => {
  const redirects = { [`${API}/a`]: "https://evil.example/b", "https://evil.example/b": `${API}/delete` };
  const headers = { "x-api-key": "key", authorization: "Bearer own" };
  assertEquals((await follow(`${API}/a`, redirects, { headers })).sent, [
    [`${API}/a`, "Bearer token", "key"],
    ["https://evil.example/b", null, null],
    [`${API}/delete`, null, null],
  ]);
  assertEquals((await follow(`${API}/a`, { [`${API}/a`]: "/b" }, { headers })).sent, [
    [`${API}/a`, "Bearer token", "key"],
    [`${API}/b`, "Bearer token", "key"],
  ]);
});

Deno.test("a request with the token follows redirects only if it allows redirects", async () => {
  const redirects = { [`${API}/a`]: "/b" };
  const manual = await follow(`${API}/a`, redirects, { redirect: "manual" });
  assertEquals([manual.end, manual.sent.length], [302, 1]);
  const error = await follow(`${API}/a`, redirects, { redirect: "error" });
  assertEquals([error.sent.length, String(error.end).includes('redirect: "error"')], [1, true]);
  assertEquals((await follow(`${API}/b`, redirects, { redirect: "error" })).end, 200);
  const post = await follow(`${API}/a`, redirects, { method: "POST", body: "text" });
  assertEquals([post.end, post.sent.length], [302, 1]);
});

Deno.test("the token goes to no other spelling, port or scheme of an API", async () => {
  const urls = [
    "https://api.provider.example.",
    `${API}:8443/`,
    "http://api.provider.example/",
    `${API}@evil.example/`,
    `${API}.evil.example/`,
    "https://xapi.provider.example/",
  ];
  // Node refuses to make a request with credentials in its URL.
  for (const url of urls) assertEquals(await follow(url, {}).then(({ sent }) => sent, () => []), [], url);
  for (
    const location of ["http://evil.example/", "http://127.0.0.1/", "file:///etc/passwd", "https://u:p@evil.example/"]
  ) {
    const { sent } = await follow(`${API}/a`, { [`${API}/a`]: location });
    assertEquals(sent.slice(1).filter(([url, token]) => token !== null || `${url}`.startsWith("http:")), [], location);
  }
});

/** Opens the tokens of grants, without a server. */
function openUpstream() {
  const provider = new TestProvider();
  const time = { at: Date.now() };
  const now = () => time.at;
  const seal = (value: unknown) => Promise.resolve(JSON.stringify(value));
  const revoked: (readonly [string, boolean])[] = [];
  const grants = new Grants({
    store: memoryStore(),
    seal,
    open: (text) => Promise.resolve(JSON.parse(text)),
    now,
    digest: async (text) => [await sha256(text)],
    revoke: ({ accessToken }, hasOthers) => Promise.resolve(void revoked.push([accessToken, hasOthers])),
  });
  const upstream = new Upstream({
    provider: provider.provider,
    grants,
    fetch: (request) => provider.fetch(request),
    now,
  });
  const create = async (tokens: ProviderTokens): Promise<string> => {
    const binding = { challenge: "", redirectUri };
    const [, id] = JSON.parse(await grants.create({ subject: "7", scopes: [], client: "client", tokens, binding }));
    return id;
  };
  return { provider, grants, upstream, time, create, revoked };
}

Deno.test("a lease of an instance that has ended, or whose clock is wrong, does not prevent renewals", async () => {
  const { provider, grants, upstream, time, create } = openUpstream();
  for (const [leaseMs, passedMs] of [[15_000, 15_001], [3_600_000, 0]]) {
    const tokens = { accessToken: "old", refreshToken: `refresh-${leaseMs}`, expiresAt: time.at };
    provider.refreshTokens.set(tokens.refreshToken, "7");
    const id = await create(tokens);
    await grants.update(id, (grant) => ({ ...grant, renewingUntil: time.at + leaseMs }));
    time.at += passedMs;
    const found = await upstream.findTokens(id, AbortSignal.timeout(2000));
    assertEquals(found?.accessToken.startsWith("provider-access"), true, `${leaseMs}`);
  }
});

Deno.test("a caller that aborts during a renewal does not lose the renewed tokens", async () => {
  const { provider, grants, upstream, time, create } = openUpstream();
  provider.refreshTokens.set("refresh", "7");
  const id = await create({ accessToken: "old", refreshToken: "refresh", expiresAt: time.at });
  const caller = new AbortController();
  const send = provider.provider.endpoints;
  const aborting = {
    ...provider.provider,
    endpoints: (...args: Parameters<typeof send>) => {
      caller.abort();
      return send(...args);
    },
  };
  const now = () => time.at;
  const fetch = async (request: Request) => {
    const response = await provider.fetch(request);
    request.signal.throwIfAborted();
    return response;
  };
  const own = new Upstream({ provider: aborting, grants, fetch, now });
  await assertRejects(() => own.findTokens(id, caller.signal));
  const found = await upstream.findTokens(id, AbortSignal.timeout(2000));
  assertEquals(found?.accessToken.startsWith("provider-access"), true);
});

Deno.test("odd responses of the provider's token endpoint are errors without a token", async () => {
  const { provider } = new TestProvider();
  const bodies: readonly unknown[] = [
    {},
    [],
    "text",
    { access_token: "" },
    { access_token: 7 },
    { access_token: {} },
    { access_token: "secret\r\nx-evil: 1" },
    { access_token: "secret\0" },
    { error: "<script>secret" },
    ...[undefined, "mac", "DPoP", 7, ["bearer"], "bearer, secret"].map((token_type) => ({
      access_token: "t",
      token_type,
    })),
  ];
  const request = (body: unknown) => {
    const fetch = () => Promise.resolve(Response.json(body));
    return requestTokens(provider, { code: "x" }, { fetch, signal: new AbortController().signal, now: 0 });
  };
  for (const body of bodies) {
    const error = await assertRejects(() => request(body), Error, "Cannot get a token from Provider");
    assertEquals(/secret|evil/.test(error.message), false, error.message);
  }
  for (const expires_in of ["Infinity", "x", -1, 0, null, {}]) {
    const tokens = await request({ access_token: "token", token_type: "BEARER", expires_in });
    assertEquals(tokens.expiresAt, undefined, `${expires_in}`);
  }
});

Deno.test("a user who signs in again and again does not fill the store", async () => {
  const { provider, grants, time, create, revoked } = openUpstream();
  const tokens = { accessToken: "token" };
  const first = await create(tokens);
  time.at++;
  const second = await create({ accessToken: "second" });
  time.at++;
  await grants.update(first, (grant) => ({ ...grant, usedAt: time.at }));
  for (let count = 2; count < 65; count++) {
    time.at++;
    await create(tokens);
  }
  assertEquals([await grants.find(first), await grants.find(second)].map((each) => each !== undefined), [true, false]);
  // The provider must not end the other sign-ins of the user too.
  assertEquals(revoked.splice(0), [["second", true]]);
  await grants.endAll("7");
  assertEquals(revoked.length, 64);
  assertEquals(provider.requests.length, 0);
});

/** Signs in, and returns the query of the redirect to the client. */
async function signInAt({ browser, provider }: Opened): Promise<URLSearchParams> {
  const page = await browser.open(await toRequest(await register(browser)));
  const target = new URL((await browser.answer(page)).headers.get("location") ?? "");
  const back = await browser.open(provider.signIn(target));
  return new URL(back.headers.get("location") ?? "").searchParams;
}

Deno.test("only true and a decision of who sign in a user, and only a user with an id", async () => {
  const faults = { observer: { fault() {} } };
  const decisions = [undefined, null, "yes", 1, [], { subject: "" }, { subject: 7 }, { scopes: null }, { scopes: "a" }]
    .concat([new Date(), new Map(), () => true, Object(true), Promise.resolve(false)] as never[]);
  for (const decision of decisions) {
    const opened = open({ who: (() => decision) as never }, { store: memoryStore(), ...faults });
    assertEquals((await signInAt(opened)).has("code"), false, String(decision));
    await opened.server.close();
  }
  for (const subject of [undefined, null, "", 7, {}, ["7"]]) {
    const provider = new TestProvider();
    const findUser = () => Promise.resolve({ subject: subject as string, facts: {} });
    const opened = open(
      { provider: { ...provider.provider, findUser } },
      { store: memoryStore(), ...faults },
      provider,
    );
    assertEquals((await signInAt(opened)).get("error"), "temporarily_unavailable", String(subject));
    await opened.server.close();
  }
});

Deno.test("a client that authenticates very often does not use up the assertions of other clients", async () => {
  const keys = await generateKeyPair("ES256");
  const jwk = { ...await exportJWK(keys.publicKey), alg: "ES256", kid: "1" };
  const ids = ["https://one.example.com/client.json", "https://two.example.com/client.json"];
  const fetch = ({ url }: Request) =>
    Promise.resolve(Response.json({
      client_id: url,
      client_name: "App",
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: "private_key_jwt",
      jwks: { keys: [jwk] },
    }));
  const opened = open({ documents: { fetch } }, { store: memoryStore() });
  const { browser, server } = opened;
  const assertion = async (client: string, aheadS: number) => {
    const now = Math.floor(Date.now() / 1000) + aheadS;
    const jwt = new SignJWT({ jti: crypto.randomUUID() }).setProtectedHeader({ alg: "ES256", kid: "1" })
      .setIssuer(client).setSubject(client).setAudience(origin).setIssuedAt(now).setExpirationTime(now + 60);
    return {
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: await jwt.sign(keys.privateKey),
    };
  };
  const [code, other] = [await authorize(opened, ids[0]), await authorize(opened, ids[1])];
  // The redirect URI is wrong, so that the code is not spent.
  const wrong = { redirect_uri: "http://127.0.0.1:1/" };
  for (let count = 0; count < 600; count++) {
    const more = { ...wrong, ...await assertion(ids[0], 50) };
    await (await redeem(browser, ids[0], code.get("code") ?? "", more)).body?.cancel();
  }
  const response = await redeem(browser, ids[1], other.get("code") ?? "", await assertion(ids[1], 0));
  assertEquals(response.status, 200, await response.text());
  await server.close();
});

Deno.test("two servers with the same login work apart, and one that stops does not stop the other", async () => {
  const opened = open({}, { store: memoryStore() });
  const { provider, login, server } = opened;
  await server.ready();
  const handlers = server.handlers.list().map(({ name }) => name);
  assertEquals(handlers, ["whoami"]);
  const other = createServer({
    name: "notes",
    version: "2.0.0",
    secret,
    auth: login,
    store: memoryStore(),
    handlers: [tool({
      name: "whoami",
      run: async (_input, ctx) => {
        await login.revoke(ctx);
        return "revoked";
      },
    })],
  });
  await other.ready();
  const next = { provider, login, server: other, browser: new Browser(other) };
  const [first, second] = [await signIn(opened), await signIn(next)];
  // Each server has its own store.
  assertEquals([(await call(next, first.access))[0], (await call(opened, second.access))[0]], [401, 401]);
  assertStringIncludes((await call(opened, first.access))[1], "provider:7");
  assertStringIncludes((await call(next, second.access))[1], "revoked");
  assertEquals([(await call(next, second.access))[0], (await call(opened, first.access))[0]], [401, 200]);
  await server.close();
  assertEquals((await call(next, (await signIn(next)).access))[0], 200);
  const third = await signIn(next);
  await login.end("7");
  assertEquals((await call(next, third.access))[0], 401);
  await other.close();
});

Deno.test("reuse of a refresh token or a code revokes the tokens at the provider", async () => {
  const provider = new TestProvider();
  const revoked: boolean[] = [];
  const counting = {
    ...provider.provider,
    revoke: (_: unknown, { hasOthers }: { readonly hasOthers: boolean }) =>
      Promise.resolve(void revoked.push(hasOthers)),
  };
  const clock = fakeClock();
  const opened = open({ provider: counting }, { store: memoryStore({ clock }), clock }, provider);
  const { browser, server } = opened;
  const [one, two] = [await signIn(opened), await signIn(opened)];
  assertEquals((await refresh(browser, one.client, one.refresh)).status, 200);
  await clock.advance(61_000);
  assertEquals((await refresh(browser, one.client, one.refresh)).status, 400);
  assertEquals(revoked.splice(0), [true]);
  assertEquals((await browser.post("/revoke", { token: two.refresh, client_id: two.client })).status, 200);
  assertEquals(revoked.splice(0), [false]);
  const client = await register(browser);
  const code = (await authorize(opened, client)).get("code") ?? "";
  for (const status of [200, 400]) assertEquals((await redeem(browser, client, code)).status, status);
  assertEquals(revoked, [false]);
  await server.close();
});

Deno.test("the keys of a store do not state who has signed in", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const opened = open({}, { store: customStore(connect) });
  await signIn(opened);
  const engine = await connect();
  const { signal } = new AbortController();
  const keys = (await engine.list("", { limit: 100, signal })).map(({ key }) => key);
  assert(keys.some((key) => key.includes("grant-")), keys.join());
  for (const text of ["7", "provider:7", "owner 7"]) {
    const guess = (await sha256(text)).slice(0, 22);
    assertEquals(keys.filter((key) => key.includes(guess)), []);
  }
  await opened.server.close();
});

Deno.test("sign-ins survive the rotation of the secret, and login.end() finds them", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const provider = new TestProvider();
  provider.expiresIn = 3600;
  const old = "old secret of 32 characters or more";
  const start = (secrets: readonly string[]) => open({}, { store: customStore(connect), secret: secrets }, provider);
  let opened = start([old]);
  let { client, refresh: token, access } = await signIn(opened);
  const dismissed = await signIn(opened, client);
  for (const secrets of [[old, secret], [secret, old]]) {
    await opened.server.close();
    opened = start(secrets);
    assertStringIncludes((await call(opened, access))[1], "provider:7");
    const next = await (await refresh(opened.browser, client, token)).json();
    [access, token] = [next.access_token, next.refresh_token];
    // The client remains registered too.
    assertEquals((await opened.browser.open(await toRequest(client))).status, 200);
  }
  await opened.server.close();
  opened = start([secret]);
  // This token was sealed with the new secret.
  assertEquals((await call(opened, access))[0], 200);
  await opened.server.close();
  opened = start([secret, old]);
  await opened.server.ready();
  await opened.login.end("7");
  for (const each of [access, dismissed.access]) assertEquals((await call(opened, each))[0], 401);
  await opened.server.close();
});

Deno.test("only the browser of a sign-in reaches the store with its state, and with one cookie", async () => {
  const clock = fakeClock();
  const opened = open({}, { clock, store: memoryStore({ clock }) });
  const { browser, provider, server } = opened;
  const page = await browser.open(await toRequest(await register(browser)));
  const back = provider.signIn(new URL((await browser.answer(page)).headers.get("location") ?? ""));
  const [[name, value]] = browser.cookies;
  // The store has dropped the sign-in, and only its browser learns this.
  await clock.advance(600_001);
  const answers = [`${name}=${value}; ${name}=x`, `${name}=x; ${name}=${value}`, `${name}=1.x`, ""]
    .map((cookie) => new Browser(server, "192.0.2.9").open(back, { headers: { cookie } }));
  for (const answer of await Promise.all(answers)) {
    assertEquals((await answer.text()).includes("another browser"), true);
  }
  assertEquals((await (await browser.open(back)).text()).includes("has ended"), true);
  await server.close();
});

Deno.test("another page cannot use up the rate of its visitors, and a state is short", async () => {
  const { browser, server } = open();
  const url = await toRequest(await register(browser));
  for (const dest of ["image", "iframe", "empty"]) {
    for (let count = 0; count < 30; count++) {
      assertEquals((await browser.open(url, { headers: { "sec-fetch-dest": dest } })).status, 403);
    }
  }
  assertEquals((await browser.open(url, { headers: { "sec-fetch-dest": "document" } })).status, 200);
  url.searchParams.set("state", "x".repeat(2049));
  assertEquals((await browser.open(url)).status, 400);
  await server.close();
});

Deno.test("a sealed text of one kind is not accepted as another kind", async () => {
  const opened = open({}, { store: memoryStore() });
  const { browser, server, provider } = opened;
  const { client, access, refresh: token } = await signIn(opened);
  const page = await (await browser.open(await toRequest(client))).text();
  const consent = /name="request" value="([^"]+)"/.exec(page)?.[1] ?? "";
  const target = await browser.answer(await browser.open(await toRequest(client)));
  const state = new URL(target.headers.get("location") ?? "").searchParams.get("state") ?? "";
  const code = (await authorize({ browser, provider }, client)).get("code") ?? "";
  const uses: Readonly<Record<string, (text: string) => Promise<Response>>> = {
    client: async (text) => await browser.open(await toRequest(text)),
    consent: (request) => {
      const body = new URLSearchParams({ request, action: "allow" });
      return browser.open(`${origin}/consent`, { method: "POST", body, headers: { origin } });
    },
    state: (text) => browser.open(`${origin}/callback?${new URLSearchParams({ state: text, code: "x" })}`),
    code: (text) => redeem(browser, client, text),
    token: (text) => refresh(browser, client, text),
    access: (text) => browser.open(`${origin}/mcp`, { method: "POST", headers: { authorization: `Bearer ${text}` } }),
  };
  for (const [kind, text] of Object.entries({ client, consent, state, code, token, access })) {
    for (const [other, use] of Object.entries(uses)) {
      if (kind === other) continue;
      const { status, headers } = await use(text);
      assertEquals([status >= 400, headers.get("location")], [true, null], `${kind} as ${other}: ${status}`);
    }
  }
  await server.close();
});

Deno.test("no route accepts another method, path, origin, content type or repeated field", async () => {
  const opened = open({}, { store: memoryStore() });
  const { browser, server } = opened;
  const { client, refresh: token } = await signIn(opened);
  const page = await (await browser.open(await toRequest(client))).text();
  const request = /name="request" value="([^"]+)"/.exec(page)?.[1] ?? "";
  const consent = new URLSearchParams({ request, action: "allow" });
  const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: token, client_id: client });
  const post = (path: string, body: BodyInit, headers: HeadersInit = { origin }) =>
    browser.open(origin + path, { method: "POST", body, headers });
  const origins = ["null", `${origin}.evil.example`, `${origin}/`, origin.toUpperCase(), "http://notes.example.com"];
  const types = ["text/plain", "application/json", "multipart/form-data; boundary=x", `${FORM["content-type"]}x`, ""];
  const attacks = [
    ...origins.map((each) => post("/consent", consent, { origin: each })),
    post("/consent", consent, {}),
    post(`/consent?${consent}`, ""),
    post("/consent", `${consent}&action=deny`, { ...FORM, origin }),
    post("/consent", `${consent}&request=${request}`, { ...FORM, origin }),
    post("/token", `${form}&client_id=${client}`, FORM),
    post("/token", form, { authorization: "Basic eDp5" }),
    ...types.map((type) => post("/token", `${form}`, { "content-type": type })),
    ...["/consent/", "//consent", "/%63onsent", "/Consent", "/consent;x"].map((path) => post(path, consent)),
    ...["PUT", "PATCH", "DELETE"].flatMap((method) =>
      ["/authorize", "/consent", "/callback", "/token", "/revoke", "/register"].map((path) =>
        browser.open(origin + path, { method, body: form, headers: { origin } })
      )
    ),
    ...["GET", "HEAD"].map((method) => browser.open(`${origin}/consent?${consent}`, { method, headers: { origin } })),
  ];
  for (const [at, { status, headers }] of (await Promise.all(attacks)).entries()) {
    assertEquals([status >= 400 && status < 500, headers.get("location")], [true, null], `attack ${at}: ${status}`);
  }
  // The token was not used.
  assertEquals((await refresh(browser, client, token)).status, 200);
  await server.close();
});

Deno.test("a provider that cannot revoke a token prevents no revocation here", async () => {
  const provider = new TestProvider();
  const failing = {
    ...provider.provider,
    revoke(): never {
      throw new Error("the provider is down");
    },
  };
  const opened = open({ provider: failing }, { store: memoryStore(), observer: { fault() {} } }, provider);
  const { browser, server, login } = opened;
  const [one, two, three] = [await signIn(opened), await signIn(opened), await signIn(opened)];
  assertEquals((await browser.post("/revoke", { token: one.refresh, client_id: one.client })).status, 200);
  await login.end("7");
  for (const { client, refresh: token } of [one, two, three]) {
    assertEquals((await refresh(browser, client, token)).status, 400);
  }
  await server.close();
});

Deno.test("names that cover the text around them, and redirect URIs with parameters of the response, are refused", async () => {
  const { browser, server } = open();
  const register = async (more: object) => {
    const body = JSON.stringify({ client_name: "Test", redirect_uris: [redirectUri], ...more });
    return (await browser.open(`${origin}/register`, { method: "POST", body })).status;
  };
  assertEquals(await register({}), 201);
  for (const client_name of [`A${"\u0336".repeat(90)}`, "A\u{e000}", `A${"\u00a0".repeat(9)}B`]) {
    assertEquals(await register({ client_name }), 400, client_name);
  }
  for (const name of ["code", "state", "iss", "error"]) {
    assertEquals(await register({ redirect_uris: [`${redirectUri}?${name}=x`] }), 400, name);
  }
  assertEquals(await register({ redirect_uris: [`${redirectUri}?own=x`] }), 201);
  await server.close();
});

Deno.test("an IPv6 /56 network gets two loads of documents at a time", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const documents = new MetadataDocuments({ fetch: () => promise, lookUp: () => Promise.resolve(undefined) });
  const load = (at: number, peer: string) =>
    documents.load(`https://client${at}.example/document`, peer, new URL(resource)).catch(({ status }) => status);
  const loads = [0, 1, 2, 3].map((at) => load(at, `2001:db8:1:${at}`));
  assertEquals(await Promise.race([loads[2], loads[3]]), 503);
  const other = load(4, "2001:db8:2:0");
  resolve(new Response("no"));
  assertEquals((await Promise.all([...loads.slice(0, 2), other])).includes(503), false);
});

Deno.test("a provider that cannot revoke a token does not change the answer to a user who may not sign in", async () => {
  for (
    const revoke of [() => {
      throw new Error("down");
    }, () => Promise.reject(new Error("down"))]
  ) {
    const faults: unknown[] = [];
    const provider = new TestProvider();
    const opened = open(
      { who: () => false, provider: { ...provider.provider, revoke } },
      { observer: { fault: ({ error }) => faults.push(error) } },
      provider,
    );
    const query = await authorize(opened, await register(opened.browser));
    assertEquals(query.get("error"), "access_denied");
    assertEquals(faults.length, 1);
    await opened.server.close();
  }
});
