// A rate limit that all instances share.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, extension, resource, type Server, tool } from "../../mod.ts";
import type { ServerHandle } from "../../src/extensions/extension.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { createLosable, wrapEngine } from "../support/engines.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { ask } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const PERIOD = 60_000;

function start(store: Store, clock = fakeClock()): Server {
  const polite = quota({ rate: { calls: 3, perMs: PERIOD }, shared: true });
  return openServer({
    store,
    clock,
    handlers: [
      tool({ name: "t", use: [polite], run: () => "t" }),
      resource({ uri: "x://r", name: "r", use: [polite], read: () => "r" }),
      tool({ name: "own", use: [quota({ rate: { calls: 1, perMs: PERIOD }, shared: true })], run: () => "own" }),
    ],
  });
}

async function isRefused(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return false;
  } catch (error) {
    assert(error instanceof McpError && error.code === -31429, `${error}`);
    const { retryAfterMs } = Object(error.data);
    assert(retryAfterMs > 0 && retryAfterMs <= PERIOD, `${retryAfterMs}`);
    return true;
  }
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`each call of a client counts once, on whichever instance, and a refused client causes no store operations (${era})`, async () => {
    const { connect } = memoryStore()[INTERNALS];
    let appends = 0;
    const open = () =>
      customStore(async () =>
        wrapEngine(await connect(), ({ name, run }) => (appends += Number(name === "append"), run()))
      );
    const clock = fakeClock();
    const [a, b] = [start(open(), clock), start(open(), clock)];
    const ada = { era, principal: { id: "ada" } };
    await using stack = new AsyncDisposableStack();
    const join = async (server: Server, options = ada): Promise<Connection> =>
      stack.use(await connectTest(server, options));
    const [here, there] = [await join(a), await join(b)];
    await Promise.all([here.callTool("own"), there.listTools()]);
    appends = 0;
    assertEquals(textOf(await here.callTool("t")), "t");
    assertEquals(textOf(await there.callTool("t")), "t");
    await there.readResource("x://r");
    assertEquals(appends, 3);
    for (const client of [here, there]) {
      assertEquals(await isRefused(() => client.callTool("t")), true);
      assertEquals(await isRefused(() => client.readResource("x://r")), true);
    }
    assert(await isRefused(() => there.callTool("own")));
    const known = appends;
    for (let i = 0; i < 20; i++) {
      for (const client of [here, there]) assert(await isRefused(() => client.callTool("t")));
    }
    assertEquals(appends, known, "refused calls reached the store");
    // Another client has its own rate, and its tokens are refilled over time.
    const eve = await join(b, { era, principal: { id: "eve" } });
    assertEquals(textOf(await eve.callTool("t")), "t");
    await clock.advance(PERIOD);
    assertEquals(textOf(await there.callTool("t")), "t");
  });
}

Deno.test("over HTTP the response has the status 429, and without the store each instance applies the rate separately", async () => {
  const store = createLosable();
  const [a, b] = [start(store.open()), start(store.open())];
  await using here = await connectTest(a, { transport: "http", principal: { id: "ada" } });
  await using there = await connectTest(b, { transport: "http", principal: { id: "ada" } });
  for (let i = 0; i < 3; i++) await here.callTool("t");
  const error = await assertRejects(() => there.callTool("t"), McpError);
  assertEquals([error.code, error.status], [-31429, 429]);
  assertStringIncludes(error.message, "(handler.rate)");
  store.isLost = true;
  await using bob = await connectTest(a, { principal: { id: "bob" } });
  await using also = await connectTest(b, { principal: { id: "bob" } });
  for (const client of [bob, also]) {
    for (let i = 0; i < 3; i++) assertEquals(textOf(await client.callTool("t")), "t");
    assert(await isRefused(() => client.callTool("t")));
  }
});

Deno.test("the number of new logs per period is limited, and then the rate of each instance applies", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const logs = new Set<unknown>();
  const store = customStore(async () =>
    wrapEngine(await connect(), ({ name, args, run }) => {
      if (name === "append") logs.add(args[0]);
      return run();
    })
  );
  const clock = fakeClock();
  const polite = quota({ rate: { calls: 2, perMs: PERIOD }, shared: true });
  const server = openServer({
    store,
    clock,
    limits: testLimits({ rates: { clients: 4 } }),
    handlers: [tool({ name: "t", use: [polite], run: () => "t" })],
  });
  const statusOf = async (client: { readonly address: string } | { readonly principal: string }) => {
    const facts = "address" in client
      ? { remoteAddr: { hostname: client.address } }
      : { principal: { id: client.principal } };
    return (await ask({ fetch: (request) => server.fetch(request, facts) }, "tools/call", { name: "t" })).status;
  };
  const toAddress = (i: number) => ({ address: `198.51.100.${i}` });
  for (let period = 0; period < 3; period++) {
    logs.clear();
    const statuses = [];
    for (let i = 0; i < 20; i++) statuses.push(await statusOf(toAddress(i)));
    // Four addresses have a count of their own, and all others share the bucket of one client.
    assertEquals(statuses.filter((status) => status === 200).length, 6);
    assertEquals(logs.size, 4);
    assertEquals([await statusOf(toAddress(0)), await statusOf(toAddress(0))], [200, 429]);
    assertEquals([await statusOf({ principal: "ada" }), await statusOf({ principal: "ada" })], [200, 200]);
    assertEquals(await statusOf({ principal: "ada" }), 429);
    assertEquals(logs.size, 5);
    // Let the buckets of this period be forgotten.
    await clock.advance(3 * PERIOD);
  }
});

Deno.test("all paths of a server share the rate, on whichever instances, and other servers do not", async () => {
  const store = memoryStore();
  const begin = (name: string) => {
    const polite = quota({ rate: { calls: 3, perMs: PERIOD }, shared: true });
    const handlers = [
      tool({ name: "t", use: [polite], run: () => "t" }),
      resource({ uri: "x://r", name: "r", use: [polite], read: () => "r" }),
    ];
    const secret = "a secret of at least thirty-two characters";
    return createServer({ name, version: "1.0.0", path: "/:team/:desk/mcp", secret, store, clock, handlers });
  };
  const clock = fakeClock();
  const servers = [begin("polite"), begin("polite"), begin("polite")];
  const call = async (server: Server, desk: string, id = "ada") => {
    const send = (request: Request) =>
      server.fetch(new Request(`http://localhost/a/${desk}/mcp`, request), { principal: { id } });
    return (await ask({ fetch: send }, "tools/call", { name: "t" })).status;
  };
  const statuses = [];
  // Each path and each instance is used once, so no bucket of an instance is empty.
  for (const desk of ["one", "two"]) for (const server of servers) statuses.push(await call(server, desk));
  assertEquals(statuses, [200, 200, 200, 429, 429, 429]);
  assertEquals(await call(servers[0], "one", "bob"), 200);
  const other = begin("other");
  assertEquals(await call(other, "one"), 200);
  await clock.advance(PERIOD);
  assertEquals(await call(servers[1], "three"), 200);
  for (const server of [...servers, other]) await server.close();
});

Deno.test("calls that an extension makes for a client are not counted, but the resources that they read are", async () => {
  let host: ServerHandle | undefined;
  const rate = { calls: 2, perMs: PERIOD };
  const polite = quota({ rate, shared: true });
  const server = openServer({
    store: memoryStore(),
    clock: fakeClock(),
    handlers: [
      extension({ id: "test.example/host", start: (server) => void (host = server) }),
      tool({ name: "t", use: [polite], run: () => "t" }),
      tool({ name: "reads", run: async (_, ctx) => `${(await ctx.readResource("x://r")).length}` }),
      resource({ uri: "x://r", name: "r", use: [quota({ rate, shared: true })], read: () => "r" }),
    ],
  });
  await server.ready();
  const principal = { id: "ada" };
  const callInside = async (name: string) =>
    textOf(await host!.call({ method: "tools/call", params: { name }, principal }) as Parameters<typeof textOf>[0]);
  for (let i = 0; i < 5; i++) assertEquals(await callInside("t"), "t");
  await using client = await connectTest(server, { principal });
  for (let i = 0; i < 2; i++) assertEquals(textOf(await client.callTool("t")), "t");
  assert(await isRefused(() => client.callTool("t")));
  assertEquals(await callInside("t"), "t");
  for (let i = 0; i < 2; i++) assertEquals(await callInside("reads"), "1");
  assert(await isRefused(() => client.readResource("x://r")));
});

Deno.test("`shared` is supported only for a rate without a burst", () => {
  for (const wrong of [{ shared: true }, { shared: true, rate: { calls: 1, perMs: 1, burst: 2 } }]) {
    assertThrows(() => quota(wrong), TypeError, sentence("shared", "burst"));
  }
  // Without a store, the rate applies to this process alone.
  openServer({
    handlers: [tool({ name: "t", use: [quota({ shared: true, rate: { calls: 1, perMs: 1 } })], run: () => "t" })],
  });
});
