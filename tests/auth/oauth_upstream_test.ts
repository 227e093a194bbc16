// Token exchange and client credentials: the server calls other servers without passing on the caller's token.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Context, type Server, tool } from "../../mod.ts";
import { elicitationLinks } from "../../src/auth/auth.ts";
import { type AccessToken, clientCredentialsToken, exchangeToken } from "../../src/auth/oauth/oauth.ts";
import { connectTest, fakeClock, fakeContext } from "../../src/testing/testing.ts";
import { RESOURCE, TestIssuer } from "../support/issuer.ts";
import { MemoryEngine } from "../../src/stores/memory_engine.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { systemClock } from "../../src/core/timers.ts";
import { textOf, until } from "../support/behaviour.ts";
import { callWith, protect } from "../support/protected.ts";
import { toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { declared } from "../tasks/declared.ts";
import { openShared } from "../tasks/shared_store.ts";

const client = { clientId: "notes", clientSecret: "5f2b8c1d" };

/** Adds a token endpoint to an issuer. Returns a list of the forms that the endpoint has received. */
function give(issuer: TestIssuer, respond: (form: URLSearchParams) => object | Response): URLSearchParams[] {
  const forms: URLSearchParams[] = [];
  issuer.overrides.set("/token", async (request) => {
    const form = new URLSearchParams(await request.text());
    forms.push(form);
    const found = respond(form);
    return found instanceof Response ? found : Response.json(found);
  });
  return forms;
}

/** Creates a tool that exchanges the caller's token, and appends the new token or the error to `got`. */
function exchanging(request: Parameters<typeof exchangeToken>[1], got: (AccessToken | Error)[]) {
  return tool({
    name: "exchange",
    run: async (_, ctx) => {
      got.push(await exchangeToken(ctx, request).catch((error) => error));
      return "done";
    },
  });
}

Deno.test("MUST NOT pass the caller's token on: exchangeToken returns another token", async () => {
  await using issuer = await TestIssuer.start();
  const forms = give(issuer, (form) => ({
    access_token: `upstream-${form.get("audience")}-${forms.length}`,
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: 600,
    scope: "mail:read",
  }));
  const got: (AccessToken | Error)[] = [];
  const handlers = [exchanging({ audience: "mail", scopes: ["mail:read", "mail:list"] }, got)];
  await using server = protect([issuer], { handlers, oauth: { exchange: client } });
  const token = await issuer.sign();
  const before = Date.now();
  for (let round = 0; round < 3; round++) await callWith(server, token, { name: "exchange" });
  await Promise.all([1, 2].map(() => callWith(server, token, { name: "exchange" })));
  assertEquals(forms.length, 1, "exchanged tokens are cached");
  assertEquals(Object.fromEntries(forms[0]), {
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    subject_token: token,
    subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
    requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
    audience: "mail",
    scope: "mail:read mail:list",
  });
  for (const each of got) {
    assert(!(each instanceof Error));
    assertEquals([each.accessToken, each.scopes], ["upstream-mail-1", ["mail:read"]]);
    assert((each.expiresAt ?? 0) >= before + 600_000);
  }
  await callWith(server, await issuer.sign({ claims: { sub: "eve" } }), { name: "exchange" });
  assertEquals(forms.length, 2, "each caller has its own tokens");
});

Deno.test("the error of a failed exchange contains neither the token nor the secret, and the next call sends another request", async () => {
  await using issuer = await TestIssuer.start();
  const token = await issuer.sign();
  const responses: readonly (readonly [() => object | Response, ...names: (string | number)[]])[] = [
    [
      () => Response.json({ error: "invalid_target", error_description: token }, { status: 400 }),
      400,
      "invalid_target",
    ],
    [() => Response.json({ error: token }, { status: 400 }), 400],
    [() => Response.json({ error: "bad_token", error_description: token }), 200, "bad_token"],
    [
      () => Response.json({ error: "invalid_client" }, { status: 401, headers: { "www-authenticate": "Basic" } }),
      401,
      "invalid_client",
    ],
    [() => Response.json({}), 200, "access_token"],
    [() => Response.json({ access_token: "x" }), 200, "token_type"],
    [() => Response.json({ access_token: "x", token_type: token }), 200],
    [() => new Response(`{ "access_token": "${token}`), 200],
    [() => Response.json({ access_token: token, token_type: "Bearer" })],
    [() => Response.json({ access_token: "x", token_type: "DPoP" }), "DPoP"],
    [() => new Response(token, { status: 500 }), 500],
  ];
  const got: (AccessToken | Error)[] = [];
  await using server = protect([issuer], {
    handlers: [exchanging({ audience: "mail" }, got)],
    oauth: { exchange: client },
  });
  for (const [respond, ...names] of responses) {
    give(issuer, respond);
    await callWith(server, token, { name: "exchange" });
    const error = got.pop();
    assert(error instanceof Error);
    assertStringIncludes(error.message, sentence(...names));
    for (let each: unknown = error; each instanceof Error; each = each.cause) {
      for (const text of [each.message, each.stack ?? ""]) assert(!text.includes(token) && !text.includes("5f2b8c1d"));
    }
  }
  give(issuer, () => ({ access_token: "fresh", token_type: "bearer", expires_in: 600 }));
  await callWith(server, token, { name: "exchange" });
  assertEquals((got.pop() as AccessToken).accessToken, "fresh");
});

Deno.test("exchangeToken rejects for callers whose token is from another issuer or who have no token", async () => {
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  const forms = give(other, () => ({ access_token: "x" }));
  const got: (AccessToken | Error)[] = [];
  const handlers = [exchanging({ audience: "mail" }, got)];
  const server = protect([issuer, other], { handlers, oauth: { exchange: { ...client, issuer: issuer.name } } });
  await callWith(server, await other.sign(), { name: "exchange" });
  await server.fetch(toRequest("tools/call", { name: "exchange" }), { principal: { id: "front" } });
  const without = protect([issuer], { handlers });
  await callWith(without, await issuer.sign(), { name: "exchange" });
  for (const error of got) {
    assertStringIncludes(String(error), sentence("ctx.principal", "oauth()", "`exchange`"));
  }
  assertEquals([got.length, forms.length], [3, 0]);
  await assertRejects(() => exchangeToken({ principal: undefined }, {}), Error, sentence("ctx.principal"));
  await server.close();
  await without.close();
});

Deno.test("clientCredentialsToken gets tokens for the server itself, and requests new tokens before the old tokens expire", async () => {
  await using issuer = await TestIssuer.start();
  let seconds = 600;
  const forms = give(
    issuer,
    () => ({ access_token: `own-${forms.length}`, token_type: "Bearer", expires_in: seconds }),
  );
  const options = { issuer: issuer.name, ...client, resource: "https://api.example.com", scopes: ["a", "b"] };
  const getToken = clientCredentialsToken(options);
  assertEquals(issuer.paths, [], "no token is requested before the first use");
  const tokens = await Promise.all([getToken(), getToken(), getToken()]);
  assertEquals(tokens.map(({ accessToken }) => accessToken), ["own-1", "own-1", "own-1"]);
  assertEquals(Object.fromEntries(forms[0]), {
    grant_type: "client_credentials",
    resource: "https://api.example.com",
    scope: "a b",
  });
  assertEquals((await getToken()).accessToken, "own-1");
  seconds = 0;
  const short = clientCredentialsToken(options);
  assertEquals([(await short()).accessToken, (await short()).accessToken], ["own-2", "own-3"]);
  give(issuer, () => Response.json({ error: "invalid_client" }, { status: 401 }));
  await assertRejects(short, Error, sentence(issuer.name, 401, "invalid_client"));
  const unset = clientCredentialsToken({ issuer: issuer.name, clientId: "x" });
  await assertRejects(unset, TypeError, sentence("clientSecret", "environment variable"));
  assertThrows(
    () => clientCredentialsToken({ ...options, issuer: "http://example.com" }),
    TypeError,
    sentence("http://example.com"),
  );
});

/** Searches all values that are reachable from `value` for a text. Returns the path to the text, or `undefined`. */
function findText(value: unknown, text: string, path = "", seen = new Set<unknown>()): string | undefined {
  if (typeof value === "string") return value.includes(text) ? path : undefined;
  if (typeof value !== "object" && typeof value !== "function" || value === null || seen.has(value)) return;
  seen.add(value);
  if (value instanceof Headers) return findText([...value], text, `${path}.headers`, seen);
  if (value instanceof Map || value instanceof Set) {
    const found = findText([...value], text, `${path}[entries]`, seen);
    if (found) return found;
  }
  for (
    let level = value;
    level && level !== Object.prototype && level !== Function.prototype;
    level = Object.getPrototypeOf(level)
  ) {
    for (const key of Reflect.ownKeys(level)) {
      let part: unknown;
      try {
        part = Reflect.get(level, key, value);
      } catch {
        continue; // Skip getters that throw.
      }
      if (part instanceof Promise) part.catch(() => {});
      const found = findText(String(key), text, path, seen) ?? findText(part, text, `${path}.${String(key)}`, seen);
      if (found) return found;
    }
  }
}

Deno.test("MUST NOT show the token to handlers, middleware, observers or stores, or in errors and logs", async () => {
  await using issuer = await TestIssuer.start();
  give(issuer, () => Response.json({ error: "invalid_target" }, { status: 400 }));
  const opaque = "canary-9f86d081884c7d65";
  issuer.overrides.set("/introspect", async (request) => {
    const isKnown = new URLSearchParams(await request.text()).get("token") === opaque;
    return Response.json(isKnown ? { active: true, aud: RESOURCE, sub: "ada", jti: opaque } : { active: false });
  });
  for (const token of [await issuer.sign(), opaque]) {
    const seen: (readonly [place: string, value: unknown])[] = [];
    const note = (place: string, value: unknown) => void seen.push([place, value]);
    const engine = new MemoryEngine({ clock: systemClock, bytes: 1_000_000 });
    const recorded = new Proxy(engine, {
      get: (target, name) => {
        const found = Reflect.get(target, name);
        return typeof found !== "function" ? found : (...parameters: unknown[]) => {
          note(`store.${String(name)}`, parameters);
          return found.apply(target, parameters);
        };
      },
    });
    const events = [
      "auth",
      "start",
      "call",
      "refused",
      "limit",
      "fault",
      "stream",
      "subscription",
      "message",
      "session",
    ];
    const observer = Object.fromEntries(
      events.map((name) => [name, (event: unknown) => note(`observer.${name}`, event)]),
    );
    const check = (place: string, value: unknown) => {
      note(place, value);
      assertEquals(findText(value, token, place), undefined);
    };
    const spied = tool({
      name: "spied",
      allow: (ctx) => {
        check("allow", ctx);
        return true;
      },
      run: async (_, ctx) => {
        check("ctx", ctx);
        check("ctx.http", { ...ctx.http, headers: [...ctx.http?.headers ?? []], url: ctx.http?.url });
        check("principal", ctx.principal);
        const error = await exchangeToken(ctx, { audience: "mail" }).catch((error) => error);
        check("exchange", [error, error.stack, error.cause]);
        throw new Error("the handler fails");
      },
    });
    await using server = protect([issuer], {
      handlers: [spied],
      oauth: { exchange: client, introspection: client },
      server: {
        observer,
        store: customStore(recorded),
        secret: "0123456789abcdef0123456789abcdef",
        sessionData: (ctx) => {
          // Do not pass `ctx` itself, because reading `ctx.session` would call this function again.
          check("session", [ctx.principal, ctx.params, ctx.client, [...ctx.http?.headers ?? []], ctx.http?.url]);
          return {};
        },
        use: [async (ctx, next) => {
          check("middleware", ctx);
          return await next();
        }],
      },
    });
    const printed: string[] = [];
    const { log, error, warn, info, debug } = console;
    const print = (...parts: unknown[]) => void printed.push(parts.map(String).join(" "));
    Object.assign(console, { log: print, error: print, warn: print, info: print, debug: print });
    try {
      const called = await callWith(server, token, { name: "spied" });
      note("response", called);
      await using legacy = await connectTest(server, { era: "legacy", headers: { authorization: `Bearer ${token}` } });
      note("response", await legacy.callTool("spied").catch((error) => error));
      note("refused", await callWith(server, `${token}x`));
      note("refused", await callWith(server, `${token},${token}`));
      const query = toRequest("ping");
      const response = await server.fetch(new Request(`${query.url}?access_token=${token}`, query));
      note("query", await response.text());
      const front = toRequest("tools/call", { name: "spied" }, { authorization: `Bearer ${token}` });
      const passed = await server.fetch(new Request(`${front.url}?access_token=${token}`, front), {
        principal: { id: "front" },
      });
      note("front", await passed.text());
    } finally {
      Object.assign(console, { log, error, warn, info, debug });
    }
    note("printed", printed);
    note("server", server);
    const places = new Set(seen.map(([place]) => place));
    for (const place of ["ctx", "session", "middleware", "observer.fault", "exchange", "store.set"]) {
      assert(places.has(place), `${place} of ${[...places]}`);
    }
    for (const [place, value] of seen) assertEquals(findText(value, token, place), undefined);
  }
});

Deno.test("MUST bind URL elicitations to the user: a link opens only for the caller to whom the server sent the link", async () => {
  await using issuer = await TestIssuer.start();
  const links = elicitationLinks();
  const opened: string[] = [];
  const ask = tool({
    name: "ask",
    run: async (_, ctx) => {
      const url = "https://notes.example.com/connect?lang=en";
      return (await links.elicit(ctx, "connect", { message: "Connect", url, data: { account: 7 } })).action;
    },
  });
  await using server = protect([issuer], { handlers: [ask] });
  const headers = { authorization: `Bearer ${await issuer.sign()}` };
  for (const era of ["modern", "legacy"] as const) {
    await using client = await connectTest(server, {
      era,
      headers,
      onElicitUrl: ({ url }) => {
        opened.push(url);
        return { action: "accept" };
      },
    });
    assertEquals((await client.callTool("ask")).content, [{ type: "text", text: "accept" }]);
  }
  assertEquals(opened.length, 2, "the elicitation is the same when the handler runs again");
  const [url] = opened;
  assertMatch(url, /^https:\/\/notes\.example\.com\/connect\?lang=en&state=[\w-]+$/);
  const ada = `oauth:${JSON.stringify([issuer.name, "ada"])}`;
  assertEquals(await links.open(url, ada), { data: { account: 7 } });
  for (const [link, id] of [[url, "oauth:eve"], [`${url}x`, ada], [url.replace(/&state=.*/, ""), ada], [url, ""]]) {
    assertEquals(await links.open(link, id), undefined);
  }
  assertEquals(await elicitationLinks().open(url, ada), undefined);
});

Deno.test("a link opens in any process with the same secret until the link expires", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const answers = { k: { action: "accept" } };
  const server = "notes";
  const elicit = async (ttlMs?: number) => {
    const ctx = fakeContext({ principal: { id: "ada" }, answers });
    await elicitationLinks({ secret, server, ttlMs }).elicit(ctx, "k", { message: "m", url: "https://a.example.com/" });
    return String(ctx.asked[0].params.url);
  };
  assertEquals(await elicitationLinks({ secret, server }).open(await elicit(), "ada"), { data: null });
  assertEquals(await elicitationLinks({ secret, server }).open(await elicit(0), "ada"), undefined);
  assertThrows(() => elicitationLinks({ ttlMs: Infinity }), TypeError, sentence("ttlMs", "Infinity"));
  await assertRejects(
    () => elicitationLinks().elicit(fakeContext(), "k", { message: "m", url: "https://a.example.com/" }),
    Error,
    sentence(),
  );
  assertThrows(() => elicitationLinks({ secret: "short", server }), TypeError, sentence("secret", 32));
});

Deno.test("a task that another instance resumes can exchange its caller's token", async () => {
  await using issuer = await TestIssuer.start();
  give(issuer, (form) => ({
    access_token: `upstream-${form.get("audience")}`,
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: 600,
  }));
  const store = memoryStore();
  const serve = (run: (ctx: Context) => unknown) =>
    protect([issuer], {
      handlers: [
        tasks(),
        tool({
          name: "work",
          use: [task({ resume: true })],
          run: async (_, ctx) => JSON.stringify(await run(ctx)),
        }),
      ],
      oauth: { exchange: client },
      server: {
        store: openShared(store),
        secret: "0123456789abcdef0123456789abcdef",
        limits: { calls: { closeMs: 20 } },
      },
    });
  const headers = { authorization: `Bearer ${await issuer.sign()}` };
  const connect = (server: Server) => connectTest(server, { ...declared, transport: "http", headers });
  const first = serve(({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  const connected = await connect(first);
  const { taskId } = await connected.request("tools/call", { name: "work", arguments: {} }, { finish: false });
  await connected.close();
  await first.close();
  await using second = serve(async (ctx) => (await exchangeToken(ctx, { audience: "mail" })).accessToken);
  await using other = await connect(second);
  let ended: { readonly [key: string]: unknown } = {};
  const isEnded = async () => (ended = await other.request("tasks/get", { taskId })).status !== "working";
  await until(isEnded, "the end of the task");
  assertEquals(textOf(Object(ended.result)), '"upstream-mail"');
});

Deno.test("an exchanged token is replaced by the server's clock", async () => {
  await using issuer = await TestIssuer.start();
  const forms = give(issuer, () => ({
    access_token: `upstream-${forms.length}`,
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: 600,
  }));
  const got: (AccessToken | Error)[] = [];
  const clock = fakeClock(Date.now());
  const handlers = [exchanging({ audience: "mail" }, got)];
  await using server = protect([issuer], { handlers, oauth: { exchange: client }, server: { clock } });
  const token = await issuer.sign({ claims: { exp: Math.floor(Date.now() / 1000) + 3600 } });
  for (const ms of [0, 500_000, 100_000]) {
    await clock.advance(ms);
    await callWith(server, token, { name: "exchange" });
  }
  assertEquals(forms.length, 2);
  assertEquals(got.map((each) => "accessToken" in each && each.accessToken), [
    "upstream-1",
    "upstream-1",
    "upstream-2",
  ]);
});
