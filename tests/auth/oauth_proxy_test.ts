// `oauthProxy`: the flow in the browser, the tokens, and the tokens of the provider.
import { assert, assertEquals, assertMatch, assertNotEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer } from "../../mod.ts";
import { anyone, oauthProxy } from "../../src/auth/oauth/proxy/proxy.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import {
  authorize,
  Browser,
  call,
  open,
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

Deno.test("a client registers, the user consents and signs in, and the client calls a tool", async () => {
  const opened = open({ who: ({ subject }) => ({ subject: `user-${subject}`, scopes: ["notes:read", "other"] }) });
  const client = await register(opened.browser);
  const query = await authorize(opened, client);
  assertEquals([query.get("state"), query.get("iss")], ["client state", origin]);
  const response = await redeem(opened.browser, client, query.get("code") ?? "");
  const tokens = await response.json();
  assertEquals([tokens.token_type, tokens.expires_in, tokens.scope], ["Bearer", 3600, "notes:read"]);
  const [status, text] = await call(opened, tokens.access_token);
  assertEquals(status, 200, text);
  assertStringIncludes(text, "provider:user-7");
  // No text of the provider leaves the server.
  for (const each of [JSON.stringify(tokens), text, query.toString()]) {
    assertEquals(/provider-(access|code)/.test(each), false);
  }
  await opened.server.close();
});

Deno.test("the metadata names the endpoints, and the server points to it", async () => {
  const { browser, server } = open();
  const [status] = await call({ browser }, "guess");
  assertEquals(status, 401);
  const unauthenticated = await browser.open(resource, { method: "POST" });
  const challenge = unauthenticated.headers.get("www-authenticate") ?? "";
  const url = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? "";
  const metadata = await (await browser.open(url)).json();
  assertEquals(metadata, {
    resource,
    authorization_servers: [origin],
    scopes_supported: ["notes:read", "notes:write"],
    bearer_methods_supported: ["header"],
  });
  const about = await (await browser.open(`${origin}/.well-known/oauth-authorization-server`)).json();
  assertEquals(about.issuer, origin);
  for (const name of ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]) {
    assert(about[name].startsWith(origin), name);
  }
  assertEquals(about.code_challenge_methods_supported, ["S256"]);
  await server.close();
});

Deno.test("requests of unknown clients and for other addresses get a page, and others a redirect with the error", async () => {
  const { browser, server } = open({}, { store: memoryStore() });
  const client = await register(browser);
  const pages: readonly Readonly<Record<string, string>>[] = [
    { client_id: "unknown" },
    { redirect_uri: "https://evil.example/callback" },
    { redirect_uri: "http://127.0.0.1:7777/callback/more" },
    { redirect_uri: "javascript:alert(1)" },
    { redirect_uri: "" },
  ];
  for (const more of pages) {
    const response = await browser.open(await toRequest(client, more));
    assertEquals([response.status, response.headers.get("location")], [400, null], JSON.stringify(more));
  }
  const repeated = await toRequest(client);
  repeated.searchParams.append("state", "two");
  assertEquals((await browser.open(repeated)).status, 400);
  const redirects: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ code_challenge_method: "plain" }, "invalid_request"],
    [{ code_challenge: "short" }, "invalid_request"],
    [{ resource: "https://other.example/mcp" }, "invalid_target"],
    [{ scope: "unknown" }, "invalid_scope"],
    [{ request: "x" }, "request_not_supported"],
  ];
  for (const [more, error] of redirects) {
    const response = await browser.open(await toRequest(client, more));
    const location = new URL(response.headers.get("location") ?? "");
    const { searchParams } = location;
    assertEquals([searchParams.get("error"), searchParams.get("state"), searchParams.get("iss")], [
      error,
      "client state",
      origin,
    ]);
  }
  // The port of a loopback address is free.
  assertEquals(
    (await browser.open(await toRequest(client, { redirect_uri: "http://127.0.0.1:9/callback" }))).status,
    200,
  );
  await server.close();
});

Deno.test("the consent page states who asks, and refuses other origins", async () => {
  const opened = open({ provider: { ...new TestProvider().provider, name: "<Provider>" } });
  const { browser, server } = opened;
  const client = await register(browser, { client_name: `<script>alert("1")</script>` });
  const page = await browser.open(await toRequest(client));
  const html = await page.clone().text();
  for (const each of ["<script>", "<Provider>"]) assertEquals(html.includes(each), false, each);
  for (
    const each of ["&lt;script&gt;", "<strong>127.0.0.1:7777</strong>", "Any program on this computer", "notes:write"]
  ) {
    assertStringIncludes(html, each);
  }
  assertStringIncludes(page.headers.get("content-security-policy") ?? "", "frame-ancestors 'none'");
  assertEquals(page.headers.get("content-security-policy")?.includes("form-action"), false);
  assertEquals(page.headers.get("referrer-policy"), "same-origin");
  for (const headers of [new Headers(), { origin: "null" }, { origin: "https://evil.example" }]) {
    const response = await browser.answer(page.clone(), "allow", headers);
    assert([400, 403].includes(response.status), `${response.status}`);
    assertEquals(response.headers.get("location"), null);
  }
  const denied = await browser.answer(page, "deny");
  const { searchParams } = new URL(denied.headers.get("location") ?? "");
  assertEquals([searchParams.get("error"), searchParams.get("iss")], ["access_denied", origin]);
  assertEquals(browser.cookies.size, 0);
  await server.close();
});

Deno.test("the callback works once, and only in the browser of the consent", async () => {
  const opened = open({}, { store: memoryStore() });
  const { browser, provider, server } = opened;
  const client = await register(browser);
  const page = await browser.open(await toRequest(client));
  const location = new URL((await browser.answer(page)).headers.get("location") ?? "");
  const back = provider.signIn(location);
  const [[name, value]] = browser.cookies;
  assertMatch(name, /^__Host-login-/);
  assertEquals((await new Browser(server).open(back)).status, 400);
  const other = new Browser(server);
  other.cookies.set(name, `${value.split(".")[0]}.other`);
  assertEquals((await other.open(back)).status, 400);
  const answers = await Promise.all([1, 2, 3].map(() => browser.open(back)));
  assertEquals(answers.map(({ status }) => status).sort(), [303, 400, 400]);
  assertEquals(browser.cookies.size, 0);
  await server.close();
});

Deno.test("two tabs have two cookies, and the oldest of nine is dropped", async () => {
  const clock = fakeClock();
  const opened = open({}, { store: memoryStore({ clock }), clock });
  const { browser, provider, server } = opened;
  const client = await register(browser);
  const targets: URL[] = [];
  for (let at = 0; at < 9; at++) {
    const page = await browser.open(await toRequest(client));
    targets.push(new URL((await browser.answer(page)).headers.get("location") ?? ""));
    await clock.advance(1000);
  }
  assertEquals(browser.cookies.size, 8);
  assertEquals((await browser.open(provider.signIn(targets[0]))).status, 400);
  for (const target of targets.slice(1)) assertEquals((await browser.open(provider.signIn(target))).status, 303);
  await server.close();
});

Deno.test("a user whom who refuses, and an error of the provider, reach the client as an error", async () => {
  const outcomes = [
    [() => false, {}, "access_denied"],
    [
      () => {
        throw new Error("down");
      },
      {},
      "temporarily_unavailable",
    ],
    [() => undefined, {}, "temporarily_unavailable"],
    [() => true, { error: "access_denied", error_description: "<b>no</b>" }, "access_denied"],
    [() => true, { error: "weird" }, "server_error"],
  ] as const;
  for (const [who, more, expected] of outcomes) {
    const opened = open({ who: who as () => boolean }, { observer: { fault() {} } });
    const { browser, provider, server } = opened;
    const client = await register(browser);
    const page = await browser.open(await toRequest(client));
    const target = new URL((await browser.answer(page)).headers.get("location") ?? "");
    const back = await browser.open(provider.signIn(target, more));
    const { searchParams } = new URL(back.headers.get("location") ?? "");
    assertEquals([searchParams.get("error"), searchParams.get("state")], [expected, "client state"]);
    assertEquals(`${searchParams}`.includes("<b>"), false);
    await server.close();
  }
});

Deno.test("a code is for its client and verifier, works once, and its reuse ends the sign-in", async () => {
  const opened = open({}, { store: memoryStore() });
  const { browser, server } = opened;
  const client = await register(browser);
  const other = await register(browser, { client_name: "Other" });
  const code = (await authorize(opened, client)).get("code") ?? "";
  const wrong: readonly Readonly<Record<string, string>>[] = [
    { client_id: other },
    { code_verifier: "w".repeat(43) },
    { code_verifier: "" },
    { redirect_uri: "http://127.0.0.1:1/callback" },
    { resource: "https://other.example/mcp" },
    { code: `${code}x` },
    { client_secret: "x" },
  ];
  for (const more of wrong) {
    assertNotEquals((await redeem(browser, client, code, more)).status, 200, JSON.stringify(more));
  }
  const answers = await Promise.all([1, 2, 3, 4].map(() => redeem(browser, client, code)));
  const good = answers.filter(({ status }) => status === 200);
  assertEquals(good.length <= 1, true);
  for (const each of good) assertEquals((await call(opened, (await each.json()).access_token))[0], 401);
  const { access, client: again } = await signIn(opened);
  assertEquals((await call(opened, access))[0], 200);
  assertNotEquals(again, client);
  await server.close();
});

Deno.test("a refresh token rotates, can be repeated for a minute, and its reuse ends the sign-in", async () => {
  const clock = fakeClock();
  const opened = open({}, { store: memoryStore({ clock }), clock });
  const { browser, server } = opened;
  const { client, refresh: first, access } = await signIn(opened);
  const other = await register(browser, { client_name: "Other" });
  assertEquals((await refresh(browser, other, first)).status, 400);
  const both = await Promise.all([1, 2].map(async () => await (await refresh(browser, client, first)).json()));
  for (const each of both) assertEquals(each.token_type, "Bearer", JSON.stringify(each));
  const repeated = await (await refresh(browser, client, first)).json();
  for (const each of [...both, repeated]) assertEquals((await call(opened, each.access_token))[0], 200);
  assertEquals((await call(opened, access))[0], 200);
  // Other parameters are no repetition, and end the sign-in.
  const second = repeated.refresh_token;
  const less = await (await refresh(browser, client, second, { scope: "notes:read" })).json();
  assertEquals(less.scope, "notes:read");
  // Fewer scopes are for the access token; the refresh token has all scopes.
  const third = await (await refresh(browser, client, less.refresh_token)).json();
  assertEquals(third.scope, "notes:read notes:write");
  assertEquals((await refresh(browser, client, third.refresh_token, { scope: "more" })).status, 400);
  await clock.advance(61_000);
  assertEquals((await refresh(browser, client, less.refresh_token)).status, 400);
  assertEquals((await refresh(browser, client, third.refresh_token)).status, 400);
  await clock.advance(11_000);
  assertEquals((await call(opened, third.access_token))[0], 401);
  await server.close();
});

Deno.test("after a change of the secret, a registered client is told to register again", async () => {
  const old = open();
  const { client, refresh: token } = await signIn(old);
  await old.server.close();
  const loads: string[] = [];
  const documents = { fetch: ({ url }: Request) => (loads.push(url), Promise.resolve(new Response())) };
  const listed = { id: "listed", name: "Listed", redirects: [redirectUri] };
  const { browser, server } = open({ documents, clients: [listed] }, { secret: `another ${secret}` });
  const errors: Readonly<Record<string, readonly [status: number, error: string]>> = {
    [client]: [401, "invalid_client"],
    "": [401, "invalid_client"],
    [await register(browser)]: [400, "invalid_grant"],
    [listed.id]: [400, "invalid_grant"],
    "https://client.example/metadata.json": [400, "invalid_grant"],
  };
  for (const [id, expected] of Object.entries(errors)) {
    for (const response of [await refresh(browser, id, token), await redeem(browser, id, "code")]) {
      assertEquals([response.status, (await response.json()).error], expected, id);
    }
  }
  assertEquals(loads, [], "a document is loaded only for a token of this server");
  await server.close();
});

Deno.test("who decides again at each refresh", async () => {
  let decide: () => boolean = () => true;
  const opened = open({ who: () => decide() }, { store: memoryStore(), observer: { fault() {} } });
  const { browser, server, provider } = opened;
  const { client, refresh: token } = await signIn(opened);
  decide = () => {
    throw new Error("down");
  };
  assertEquals((await refresh(browser, client, token)).status, 503);
  decide = () => true;
  provider.isDown = true;
  assertEquals((await refresh(browser, client, token)).status, 503);
  provider.isDown = false;
  const next = await (await refresh(browser, client, token)).json();
  decide = () => false;
  assertEquals((await refresh(browser, client, next.refresh_token)).status, 400);
  decide = () => true;
  assertEquals((await refresh(browser, client, next.refresh_token)).status, 400);
  await server.close();
});

Deno.test("revocation, login.revoke() and login.end() end sign-ins", async () => {
  const opened = open({}, { store: memoryStore() });
  const { browser, server, login } = opened;
  const one = await signIn(opened);
  const other = await register(browser, { client_name: "Other" });
  assertEquals((await browser.post("/revoke", { token: one.refresh, client_id: other })).status, 200);
  assertEquals((await refresh(browser, one.client, one.refresh)).status, 200);
  assertEquals((await browser.post("/revoke", { token: one.access, client_id: one.client })).status, 200);
  assertEquals((await refresh(browser, one.client, one.refresh)).status, 400);
  assertEquals((await browser.post("/revoke", { token: "guess", client_id: one.client })).status, 200);
  const [two, three] = [await signIn(opened), await signIn(opened)];
  assertEquals((await call(opened, two.access))[0], 200);
  await login.end("7");
  for (const each of [two, three]) assertEquals((await call(opened, each.access))[0], 401);
  await server.close();
});

Deno.test("login.fetch() renews the provider's token once, and sends it only to the provider's APIs", async () => {
  const clock = fakeClock();
  const provider = new TestProvider();
  provider.expiresIn = 3600;
  const opened = open({}, { store: memoryStore({ clock }), clock }, provider);
  const { server } = opened;
  const { access } = await signIn(opened);
  await clock.advance(3_580_000);
  const before = provider.requests.length;
  const answers = await Promise.all([1, 2, 3, 4].map(() => call(opened, access)));
  for (const [status, text] of answers) assertStringIncludes(text, "provider:7", `${status} ${text}`);
  const renewals = provider.requests.slice(before).filter(({ url }) => url.endsWith("/token"));
  assertEquals(renewals.length, 1);
  provider.tokens.clear();
  assertStringIncludes((await call(opened, access))[1], "provider:7");
  await server.close();
});

Deno.test("login.fetch() refuses other origins, and a redirect elsewhere loses the token", async () => {
  const results: unknown[] = [];
  const opened = open();
  const { login, server, provider } = opened;
  const { access } = await signIn(opened);
  const { tool } = await import("../../mod.ts");
  const probe = tool({
    name: "probe",
    run: async (_input, ctx) => {
      for (
        const url of [
          "https://evil.example/",
          "https://api.provider.example.evil.example/",
          "http://api.provider.example/",
        ]
      ) {
        results.push(await login.fetch(ctx, new Request(url)).catch((error) => error.name));
      }
      results.push(await (await login.fetch(ctx, new Request("https://api.provider.example/away"))).text());
      return "done";
    },
  });
  server.handlers.add(probe);
  const response = await opened.browser.open(resource, {
    method: "POST",
    headers: {
      authorization: `Bearer ${access}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
    }),
  });
  const session = response.headers.get("mcp-session-id") ?? "";
  await response.body?.cancel();
  const called = await opened.browser.open(resource, {
    method: "POST",
    headers: {
      authorization: `Bearer ${access}`,
      "mcp-session-id": session,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "probe", arguments: {} } }),
  });
  assertStringIncludes(await called.text(), "done");
  assertEquals(results, ["TypeError", "TypeError", "TypeError", "elsewhere"]);
  const last = provider.requests.at(-1);
  assertEquals([last?.url, last?.headers.get("authorization")], ["https://evil.example/take", null]);
  await server.close();
});

Deno.test("if the provider ends the sign-in, the tool says so, and the next request gets 401", async () => {
  const provider = new TestProvider();
  provider.expiresIn = 3600;
  const opened = open({}, { store: memoryStore(), observer: { fault() {} } }, provider);
  const { access } = await signIn(opened);
  provider.ended = true;
  const [, text] = await call(opened, access);
  assertStringIncludes(text, "sign in again");
  assertEquals((await call(opened, access))[0], 401);
  await opened.server.close();
});

Deno.test("floods store nothing", async () => {
  const store = memoryStore();
  const opened = open({}, { store });
  const { browser, server } = opened;
  const client = await register(browser);
  const url = await toRequest(client);
  const statuses = new Map<number, number>();
  for (let at = 0; at < 300; at++) {
    const { status } = await browser.open(url);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assertEquals(statuses.get(200), 59 + 1);
  assertEquals(statuses.get(429), 240);
  // Another peer is not refused.
  assertEquals((await new Browser(server, "192.0.2.2").open(url)).status, 200);
  const body = JSON.stringify({ redirect_uris: [redirectUri] });
  const many = await Promise.all(
    Array.from({ length: 300 }, () => browser.open(`${origin}/register`, { method: "POST", body })),
  );
  const counts = many.map(({ status }) => status);
  assert(counts.includes(503) && counts.includes(201));
  assertEquals(counts.every((status) => status === 503 || status === 201), true);
  const guesses = await Promise.all(Array.from({ length: 100 }, () => redeem(browser, client, "guess")));
  assertEquals(guesses.filter(({ status }) => status === 400).length, 60);
  // A real code of the same peer still works.
  const other = new Browser(server, "192.0.2.3");
  const code = (await authorize({ ...opened, browser: other }, client)).get("code") ?? "";
  assertEquals((await redeem(browser, client, code)).status, 200);
  await server.close();
});

Deno.test("two instances with one store share sign-ins, also after a new name of the server", async () => {
  const store = memoryStore();
  const provider = new TestProvider();
  const make = (name: string) => open({}, { store, name }, provider);
  const one = make("notes");
  const client = await register(one.browser);
  const two = make("renamed");
  const { access } = await signIn(two, client);
  assertEquals((await call(two, access))[0], 200);
  await one.server.close();
  await two.server.close().catch(() => {});
});

Deno.test("after a change of the secret, clients learn that they must register again", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const old = open({}, { store: customStore(connect), secret: "old secret of 32 characters or more" });
  const { client, refresh: token } = await signIn(old);
  const { browser, server } = open({}, { store: customStore(connect) });
  const read = async (id: string) => {
    const response = await refresh(browser, id, token);
    return [response.status, (await response.json()).error];
  };
  assertEquals(await read(client), [401, "invalid_client"]);
  assertEquals(await read(await register(browser)), [400, "invalid_grant"]);
  await Promise.all([old.server.close(), server.close()]);
});

Deno.test("wrong options are refused", async () => {
  const { provider } = new TestProvider();
  const good = { resource, provider, who: anyone };
  const wrong: readonly (readonly [object, string])[] = [
    [{ who: undefined }, "who is missing"],
    [{ provider: undefined }, "provider is missing"],
    [{ resource: "http://notes.example.com/mcp" }, "https"],
    [{ resource: "https://notes.example.com/mcp?x=1" }, "https"],
    [{ scopes: ["a b"] }, "scope"],
    [{ redirectUris: [] }, "redirects"],
    [{ prefix: "a:b" }, "prefix"],
  ];
  for (const [options, text] of wrong) {
    const error = assertThrows(() => oauthProxy({ ...good, ...options } as typeof good), TypeError);
    assertStringIncludes(error.message, text);
  }
  const about = { name: "notes", version: "1.0.0", secret };
  for (const path of ["/other", "/at/:tenant/mcp"] as const) {
    assertThrows(() => createServer({ ...about, path, auth: oauthProxy(good) }), TypeError);
  }
  const unset = createServer({ ...about, auth: oauthProxy({ ...good, provider: { ...provider, clientSecret: "" } }) });
  assertEquals((await new Browser(unset).open(resource, { method: "POST" })).status, 503);
  const open = createServer({ name: "notes", version: "1.0.0", auth: oauthProxy(good), observer: { fault() {} } });
  await open.ready().then(() => assert(false), (error) => assertStringIncludes(`${error}`, "secret"));
});
