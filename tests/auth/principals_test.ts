// All transports validate a principal by the same rules, and an invalid principal grants nothing.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Principal, type ServerOptions, tool } from "../../mod.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { allScopes, apiKey, basicAuth, customAuth, hasScopes } from "../../src/auth/auth.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { attachSocket, webSocket } from "../../src/server/transports/websocket.ts";
import { connectTest, fakeContext, McpError } from "../../src/testing/testing.ts";
import { behaviour, textOf, type Told, until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { canUpgrade } from "../peers/runtime.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const untyped = (value: unknown) => value as never;
const KEY = "0123456789abcdef";

function start(options: Partial<ServerOptions> = {}) {
  const faults: FaultEvent[] = [];
  const ran: string[] = [];
  const run = (name: string) => () => {
    ran.push(name);
    return name;
  };
  const handlers = [
    tool({ name: "open", run: run("open") }),
    tool({ name: "write", scopes: ["notes:write"], run: run("write") }),
  ];
  const observer = { fault: (event: FaultEvent) => void faults.push(event) };
  return { server: openServer({ handlers, observer, ...options }), faults, ran };
}

/** A principal whose scopes are explicitly empty. */
const NONE = { id: "ada", scopes: [] };

/**
 * Functions that return promises. `authenticate` can return a promise, but a principal that is passed to `fetch` must
 * not be a promise.
 */
const promises: readonly (() => unknown)[] = [
  () => Promise.resolve({ id: "ada", scopes: ["notes:write"] }),
  () => Promise.reject(new Error("rejected")),
  () => ({ then: () => {}, id: "ada", scopes: ["notes:write"] }),
];

/**
 * Creates functions whose results must not grant `notes:write`: invalid principals, and principals without this scope.
 */
function makeOdd(): readonly (() => unknown)[] {
  const throwing = {
    get id(): string {
      throw new Error("no id");
    },
  };
  const trap = () => {
    throw new Error("trapped");
  };
  const holes = ["notes:write"];
  holes.length = 3;
  const revoked = Proxy.revocable([], {});
  revoked.revoke();
  const scopeLists = [
    null,
    "",
    "notes:write",
    "notes:write other",
    "my-notes:write-only",
    allScopes[0],
    0,
    true,
    {},
    { length: 1, 0: "notes:write", includes: () => true },
    new Set(["notes:write"]),
    [undefined],
    [null],
    holes,
    new Array(2 ** 32 - 1),
    ["notes:write", 5],
    ["notes:write", "a b"],
    ["notes:write", ""],
    ["notes:write", ...allScopes],
    [...allScopes, ...allScopes],
    [["notes:write"]],
    ["notes:write", 'a"'],
    Promise.resolve(["notes:write"]),
    () => ["notes:write"],
    new Proxy(["notes:write"], { get: trap }),
    revoked.proxy,
  ];
  const times = [null, "tomorrow", NaN, Infinity, -Infinity, {}, 8n, new Date(8e15), 0, 1, -1];
  const scopes = ["notes:write"];
  return [
    5,
    true,
    "ada",
    ["ada"],
    () => ({ id: "ada", scopes }),
    throwing,
    new Proxy({ id: "ada", scopes }, { get: trap }),
    new Proxy({ id: "ada", scopes }, { ownKeys: trap }),
    { scopes },
    { id: "", scopes },
    { id: 5, scopes },
    { id: ["ada"], scopes },
    { id: "ada" },
    { id: "ada", scope: "notes:write" },
    { id: "ada", Scopes: scopes },
    { id: "ada", scopes: undefined },
    NONE,
    ...scopeLists.map((scopes) => ({ id: "ada", scopes })),
    ...times.map((expiresAt) => ({ id: "ada", scopes, expiresAt })),
  ].map((value) => () => value);
}

const write = () => toRequest("tools/call", { name: "write" });

Deno.test("an invalid principal grants nothing over HTTP, and fetch never throws", async () => {
  for (const place of ["authenticate", "async authenticate", "fetch", "fetch with auth"] as const) {
    for (const [at, make] of [...makeOdd(), ...place.startsWith("fetch") ? promises : []].entries()) {
      const odd = make();
      const auth = {
        authenticate: () => place === "async authenticate" ? Promise.resolve(untyped(odd)) : untyped(odd),
      };
      const { server, faults, ran } = start({ auth: place === "fetch" ? undefined : auth });
      const response = await server.fetch(write(), place.startsWith("fetch") ? { principal: odd } : undefined);
      const told = `${place} ${at}: ${await response.text()}`;
      assert([401, 403, 500].includes(response.status), `${response.status} ${told}`);
      assertEquals(ran, [], told);
      if (response.status !== 401 && odd !== NONE) await until(() => faults.length > 0, `the fault of ${told}`);
    }
  }
});

Deno.test("an invalid principal that is passed to fetch grants nothing at a path with parameters", async () => {
  for (const [at, make] of [...makeOdd(), ...promises].entries()) {
    const odd = make();
    const { server, ran } = start({ path: "/:tenant/mcp" });
    const request = write();
    const response = await server.fetch(new Request("http://localhost/acme/mcp", request), { principal: odd });
    assert([401, 403, 500].includes(response.status), `${response.status} ${at}: ${await response.text()}`);
    assertEquals(ran, []);
  }
});

Deno.test("an invalid principal gets 500, an expired principal 401, and a principal without the scope 403", async () => {
  const past = Date.now() - 3_600_000;
  const cases: readonly (readonly [principal: unknown, status: number])[] = [
    [{ id: "a", scopes: ["notes:write"] }, 200],
    [{ id: "a", scopes: allScopes }, 200],
    [{ id: "a", scopes: JSON.parse(JSON.stringify(allScopes)) }, 200],
    [structuredClone({ id: "a", scopes: allScopes }), 200],
    [{ id: "a", scopes: ["notes:write"], expiresAt: Date.now() + 60_000 }, 200],
    [{ id: "a", scopes: ["notes:write"], expiresAt: undefined }, 200],
    [{ id: "a" }, 403],
    [{ id: "a", scope: "notes:write" }, 403],
    [{ id: "a", scopes: [] }, 403],
    [{ id: "a", scopes: "notes:write" }, 500],
    [{ id: "a", scopes: null }, 500],
    [{ id: "a", scopes: ["a b"] }, 500],
    [{ id: "a", scopes: allScopes, expiresAt: "soon" }, 500],
    [{ id: "a", scopes: allScopes, expiresAt: null }, 500],
    [{ id: "a", scopes: allScopes, expiresAt: past }, 401],
  ];
  for (const [principal, status] of cases) {
    for (const auth of [undefined, customAuth(() => untyped(principal))]) {
      const { server } = start({ auth });
      const response = await server.fetch(write(), auth ? undefined : { principal });
      assertEquals([response.status, !!await response.text()], [status, true], JSON.stringify(principal));
      if (status === 401) assertStringIncludes(response.headers.get("www-authenticate") ?? "", "invalid_token");
    }
  }
});

Deno.test("a channel with an invalid principal rejects every call", async () => {
  for (const [at, make] of [...makeOdd(), ...promises].entries()) {
    const odd = make();
    const { server, ran } = start();
    const principal = untyped(odd);
    const call = async () => {
      await using client = await connectTest(server, { transport: "pipe", principal });
      return await client.callTool("write");
    };
    await assertRejects(call, Error, undefined, `pipe ${at}`);
    const socket = Object.assign(new EventTarget(), { send: () => {}, close: () => {} });
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: (await write().json()).params };
    try {
      attachSocket(server, untyped(socket), principal);
      socket.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
    } catch (error) {
      assertStringIncludes(String(error), sentence());
    }
    const input = new Blob([`${JSON.stringify(message)}\n`]).stream();
    await serveStdio(server, { input, output: () => Promise.resolve(), principal }).catch((error) =>
      assertStringIncludes(String(error), sentence())
    );
    assertEquals(ran, [], `${at}`);
  }
});

Deno.test("an invalid principal opens no WebSocket and no HTTP+SSE stream, and fetch never throws", async () => {
  for (const [at, make] of makeOdd().entries()) {
    const odd = make();
    for (const auth of [undefined, { authenticate: () => untyped(odd) }]) {
      const { server, ran } = start({ auth });
      const info = auth ? undefined : { principal: odd };
      const headers = { upgrade: "websocket", connection: "upgrade", "sec-websocket-version": "13" };
      if (canUpgrade) {
        const socket = await webSocket(server).fetch(new Request("http://localhost/ws", { headers }), info);
        // A caller without scopes can open a WebSocket, but this request cannot be upgraded, so the response is an error
        // in any case.
        assert([400, 401, 500, 501].includes(socket.status), `socket ${at}: ${socket.status}`);
      }
      const events = await httpSse(server).fetch(new Request("http://localhost/sse"), info);
      assert([200, 401, 500].includes(events?.status ?? 0), `events ${at}: ${events?.status}`);
      await events?.body?.cancel();
      assertEquals(ran, []);
    }
  }
});

Deno.test("a caller given only as a key or password has no scopes, and a handler whose scopes no caller has throws at startup", async () => {
  const auth = apiKey({ keys: { ada: KEY, bob: { key: `${KEY}b`, scopes: ["notes:write"] } } });
  const { server } = start({ auth });
  const call = async (key: string) => {
    const request = write();
    request.headers.set("authorization", `Bearer ${key}`);
    const response = await server.fetch(request);
    await response.text();
    return response.status;
  };
  assertEquals([await call(KEY), await call(`${KEY}b`)], [403, 200]);
  const remove = tool({ name: "remove", scopes: ["notes:remove"], run: () => "" });
  const message = sentence('"remove"', "notes:remove");
  assertThrows(() => server.handlers.add(remove), TypeError, message);
  await server.close();
  const all = { key: KEY, scopes: allScopes };
  await start({ auth: apiKey({ keys: { ada: all } }), handlers: [remove] }).server.close();
  for (
    const auth of [
      apiKey({ keys: { ada: KEY } }),
      basicAuth({ users: { ada: "secret", bob: { password: "secret", scopes: ["notes:write"] } } }),
    ]
  ) assertThrows(() => start({ auth, handlers: [remove] }), TypeError, message);
  // A `keys` function can return callers with any scopes, so the handler is accepted.
  await start({ auth: apiKey({ keys: () => undefined }), handlers: [remove] }).server.close();
  const satisfies = () => true;
  await start({ auth: { ...apiKey({ keys: { ada: KEY } }), satisfies }, handlers: [remove] }).server.close();
});

behaviour(
  "a call that is refused because the principal has no scopes is reported as a fault, once per server",
  async (connect) => {
    const handlers = [tool({ name: "write", scopes: ["notes:write"], run: () => "" })];
    const { client, join, takeFaults } = await connect({ handlers }, { principal: { id: "a", scopes: [] } });
    await assertRejects(() => client.callTool("write"), McpError);
    assertEquals(takeFaults(), [], "an empty list is not a mistake");
    const other = await join({ principal: { id: "b" } });
    for (let i = 0; i < 3; i++) {
      await assertRejects(() => other.callTool("write"), McpError, sentence("notes:write"));
    }
    const faults: Told[] = [];
    await until(() => !!faults.push(...takeFaults()), "the fault");
    const [fault, ...rest] = faults;
    assertStringIncludes(String(fault.error), sentence('"b"', "notes:write", "allScopes"));
    assertEquals(rest, []);
  },
  { perInstance: "observer" },
);

behaviour("satisfies grants access only if it returns true", async (connect) => {
  const rejecting = async () => {
    await undefined;
    throw new Error("no");
  };
  for (const satisfies of [async () => await false, rejecting, () => 1, () => "yes", () => undefined, () => null]) {
    const auth = { authenticate: () => undefined, satisfies: untyped(satisfies) };
    const handlers = [tool({ name: "write", scopes: ["notes:write"], run: () => "" })];
    const principal = { id: "a", scopes: ["notes:write"] };
    const { client, takeFaults } = await connect({ handlers, auth }, { principal });
    await assertRejects(() => client.callTool("write"), McpError);
    const [fault] = takeFaults();
    assertStringIncludes(String(fault.error), sentence("satisfies"));
  }
});

behaviour("a handler cannot change the principal, its scopes or its claims", async (connect) => {
  const changes: readonly ((principal: Principal) => void)[] = [
    (principal) => Object.assign(principal, { id: "b" }),
    ({ scopes }) => (scopes as string[]).push("notes:write"),
    ({ claims }) => Object.assign(Object(claims).realm_access.roles, ["admin"]),
    ({ claims }) => Object.assign(Object(claims), { sub: "eve" }),
  ];
  const run = (_: unknown, { principal }: { readonly principal?: Principal }) => {
    assert(principal);
    for (const change of changes) assertThrows(() => change(principal), TypeError);
    Object(principal).seen.setTime(5);
    return "frozen";
  };
  const claims = { sub: "a", realm_access: { roles: ["user"] }, ["__proto__"]: 1, self: undefined as unknown };
  claims.self = claims;
  const seen = new Date(0);
  const principal = { id: "a", scopes: ["notes:read"], claims, seen, use: () => 1 };
  const { client } = await connect({ handlers: [tool({ name: "change", run })] }, { principal });
  assertEquals(textOf(await client.callTool("change")), "frozen");
  assertEquals(seen.getTime(), 0, "the author's own date is left alone");
  claims.sub = "changed";
  assert(!Object.isFrozen(principal) && !Object.isFrozen(claims), "the author's own object is left alone");
});

behaviour(
  "hasScopes compares scopes by the same rules as the scopes option of handlers",
  async (connect, { transport }) => {
    const auth = {
      authenticate: () => undefined,
      satisfies: (granted: readonly string[], needed: readonly string[]) =>
        needed.every((scope) => granted.includes(scope.split(":")[0])),
    };
    const test = tool({ name: "test", run: (_, ctx) => String(hasScopes(ctx, "notes:read", "notes:write")) });
    const { client, join } = await connect({ handlers: [test], auth }, { principal: { id: "a", scopes: ["notes"] } });
    assertEquals(textOf(await client.callTool("test")), "true");
    for (const [scopes, expected] of [[["notes:read", "notes:write"], "false"], [allScopes, "true"]] as const) {
      assertEquals(textOf(await (await join({ principal: { id: "b", scopes } })).callTool("test")), expected);
    }
    assertEquals(textOf(await (await join({ principal: { id: "b" } })).callTool("test")), "false");
    if (transport === "pipe") assertEquals(textOf(await (await join()).callTool("test")), "true");
  },
);

Deno.test("hasScopes throws for a value that is not a scope, and for a value that is not a context", () => {
  const ctx = fakeContext({ principal: { id: "a", scopes: ["notes:read"] } });
  assertEquals([hasScopes(ctx, "notes:read"), hasScopes(ctx, "notes:read", "other")], [true, false]);
  assertEquals(hasScopes(fakeContext({ principal: { id: "a", scopes: allScopes } }), "other"), true);
  assertEquals(hasScopes(fakeContext({ principal: { id: "a" } }), "other"), false);
  for (const names of [[], [""], ["a b"], [...allScopes], [undefined], ["notes:read", null]]) {
    assertThrows(() => hasScopes(ctx, ...untyped(names) as string[]), TypeError, sentence());
  }
  assertThrows(() => hasScopes({ ...ctx, principal: ctx.principal }, "notes:read"), TypeError, sentence("ctx"));
});

Deno.test("nested claims are copied only once, and a validated principal is not validated again", async () => {
  let deep: unknown = [];
  for (let depth = 0; depth < 20_000; depth++) deep = [deep];
  const seen: unknown[] = [];
  const look = tool({ name: "look", run: (_, { principal }) => String(seen.push(principal)) });
  const first = start({ handlers: [look] });
  const call = () => toRequest("tools/call", { name: "look" });
  await (await first.server.fetch(call(), { principal: { id: "a", deep } })).text();
  for (let i = 0; i < 2; i++) await (await first.server.fetch(call(), { principal: seen[0] })).text();
  assertEquals(seen.length, 3);
  assert(seen[0] === seen[1] && seen[1] === seen[2]);
});

Deno.test("an auth route that does not return a Response is reported as a fault", async () => {
  for (const returned of [undefined, null, "text", { status: 200 }]) {
    const routes = [{ path: "/meta", fetch: () => untyped(returned) }];
    const { server, faults } = start({ auth: { authenticate: () => undefined, routes } });
    const response = await server.fetch(new Request("http://localhost/meta"));
    assertEquals([response.status, faults.length], [500, 1]);
    await response.text();
  }
});

Deno.test("a Map or a Set in a principal is refused, because handlers could change it for other calls", async () => {
  for (const facts of [{ roles: new Set(["user"]) }, { claims: { realm: [new Map()] } }]) {
    const faults: string[] = [];
    const server = openServer({ observer: { fault: ({ error }) => void faults.push(String(error)) } });
    const response = await server.fetch(toRequest("tools/list"), { principal: { id: "a", ...facts } });
    assertEquals(response.status, 500);
    await response.text();
    assertStringIncludes(faults.join(), sentence("fetch(request, { principal })", "Map", "Set"));
  }
});
