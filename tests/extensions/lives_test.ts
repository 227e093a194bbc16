// Extensions that start and stop with their server, call its handlers, and publish on all of its instances.
import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import {
  type Context,
  createServer,
  extension,
  type Handler,
  McpError,
  type Principal,
  type Server,
  type ServerOptions,
  service,
  tool,
} from "../../mod.ts";
import type { CallEvent } from "../../src/observe/observe.ts";
import type { KeptBytes, ServerHandle, StoreView } from "../../src/extensions/extension.ts";
import { quota } from "../../src/layers/layers.ts";
import { clientExtension } from "../../src/client/client.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import {
  advanceUntil,
  behaviour,
  FENCE,
  fence,
  fenced,
  gate,
  started,
  textOf,
  turn,
  until,
  withoutFences,
} from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { testServer } from "../support/test_server.ts";

const ID = "com.example/audit";
const modern = { eras: ["modern"] } as const;
const declares = { extensions: [clientExtension({ id: ID })] };

behaviour(
  "an extension starts with the first request, and stops when the server closes",
  async (connect, { transport }) => {
    const seen: string[] = [];
    const { pass, open } = gate();
    const audit = extension({
      id: ID,
      methods: { "audit/get": { run: () => (seen.push("run"), {}) } },
      async start({ signal, store }) {
        seen.push(`start ${store}`);
        signal.addEventListener("abort", () => seen.push(`aborted ${signal.reason.why}`));
        await pass;
        seen.push("started");
        return () => seen.push("stopped");
      },
    });
    const options = { name: "t", version: "1", handlers: [audit] };
    const server = createServer(options);
    await turn(3);
    // An in-process client sends nothing before it connects.
    assertEquals(seen, []);
    const client = await connectTo(server, transport);
    const calling = client.request("audit/get");
    await until(() => seen.length === 1, "the start");
    await turn(3);
    assertEquals(seen, ["start undefined"], "calls wait");
    open();
    await calling;
    await client.request("audit/get");
    await client.close();
    await server.close();
    assertEquals(seen, ["start undefined", "started", "run", "run", "aborted closing", "stopped"]);
    void connect;
  },
  modern,
);

async function connectTo(server: Server, transport: "memory" | "http" | "pipe"): Promise<Connection> {
  return await connectTest(server, { ...declares, transport });
}

Deno.test("over stdio, an extension starts immediately, and stops when the input ends", async () => {
  const seen: string[] = [];
  const audit = extension({
    id: ID,
    start() {
      seen.push("start");
      return async () => {
        await turn();
        seen.push("stop");
      };
    },
  });
  const server = testServer({ handlers: [audit] });
  const input = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
  await serveStdio(server, { input, output: () => Promise.resolve() });
  assertEquals(seen, ["start", "stop"]);
});

Deno.test("an extension that fails to start makes its calls fail, and is started again", async () => {
  const faults: unknown[] = [];
  let result: () => unknown = throwing(new Error("no database"));
  const audit = extension({
    id: ID,
    methods: { "audit/get": { run: () => ({}) } },
    // The cast is needed, because some results have the wrong type on purpose.
    start: () => result() as undefined,
  });
  const hello = tool({ name: "hello", run: () => "hello" });
  const observer = { fault: ({ error }: { error: unknown }) => void faults.push(`${error}`) };
  const server = testServer({ handlers: [audit, hello], observer });
  await assertRejects(() => server.ready(), Error, "no database");
  await using client = await connectTest(server, declares);
  assertEquals(textOf(await client.callTool("hello")), "hello");
  for (const wrong of [7, null, {}, () => Promise.reject(new Error("lost"))]) {
    result = typeof wrong === "function" ? wrong as () => unknown : () => wrong;
    await assertRejects(() => client.request("audit/get"), McpError, sentence());
  }
  assertEquals(faults, ["Error: no database", sentence("start"), sentence("start"), sentence("start"), "Error: lost"]);
  result = () => undefined;
  await client.request("audit/get");
});

Deno.test("an extension starts when it is added to a running server, and stops when it is removed", async () => {
  const seen: string[] = [];
  const toExtension = (name: string) =>
    extension({
      id: `com.example/${name}`,
      start: () => (seen.push(`start ${name}`), () => seen.push(`stop ${name}`)),
    });
  const [a, b] = [toExtension("a"), toExtension("b")];
  const server = testServer({ handlers: [a] });
  await server.ready();
  server.handlers.add(b);
  await server.ready();
  server.handlers.remove(a);
  await until(() => seen.includes("stop a"), "the end");
  await server.close();
  assertEquals(seen, ["start a", "start b", "stop a", "stop b"]);
});

Deno.test("each tenant's path starts and stops its own extension", async () => {
  const seen: string[] = [];
  const server = createServer({
    name: "t",
    version: "1",
    path: "/:tenant/mcp",
    handlers: ({ tenant }) => [
      extension({
        id: ID,
        async start({ store }) {
          await store?.own.set("name", tenant, { ttlMs: 1000, version: null });
          seen.push(`start ${(await store?.own.get("name"))?.value}`);
          return () => seen.push(`stop ${tenant}`);
        },
      }),
    ],
    store: memoryStore(),
  });
  for (const tenant of ["a", "b"]) {
    await using client = await connectTest(server, { ...declares, pathParams: { tenant }, transport: "http" });
    await client.request("server/discover");
  }
  await until(() => seen.length === 2, "the starts");
  await server.close();
  assertEquals(seen.toSorted(), ["start a", "start b", "stop a", "stop b"]);
});

Deno.test("an extension can seal values, and has a separate part of the store", async () => {
  const store = memoryStore();
  const shared: ServerOptions["secret"] = "s".repeat(32);
  const starts: Record<string, ServerHandle> = {};
  const toServer = (name: string, ...ids: string[]) =>
    createServer({
      name,
      version: "1",
      store,
      secret: shared,
      handlers: ids.map((id) => extension({ id, start: (given) => void (starts[`${name} ${id}`] = given) })),
    });
  const servers = [toServer("one", "a/x", "a/y"), toServer("two", "a/x"), toServer("one", "a/x")];
  for (const server of servers) await server.ready();
  const { "one a/x": x, "one a/y": y, "two a/x": other } = starts;
  const sealed = await x.seal({ token: 1 });
  assertEquals(await x.open(sealed), { token: 1 });
  assertEquals([await y.open(sealed), await other.open(sealed), await x.open(`${sealed}x`)], [
    undefined,
    undefined,
    undefined,
  ]);
  const ofX = x.store?.own as StoreView; // The cast is safe, because these servers have a store.
  await ofX.set("key", "value", { ttlMs: 10_000 });
  assertEquals((await ofX.get("key"))?.value, "value");
  assertEquals([await y.store?.own.get("key"), await other.store?.own.get("key")], [undefined, undefined]);
  await ofX.set("key2", "2", { ttlMs: 10_000 });
  await y.store?.own.set("key3", "not of x", { ttlMs: 10_000 });
  const listed = await ofX.list("", { limit: 1 });
  assertEquals(listed.map(({ key, value }) => [key, value]), [["key", "value"]]);
  const rest = await ofX.list("ke", { after: "key", limit: 10 });
  assertEquals(rest.map(({ key, value }) => [key, value]), [["key2", "2"]]);
  assertEquals(ofX.lease.heldUntil, 0);
  const told: string[] = [];
  const stop = await ofX.subscribe("topic", (text) => void told.push(text));
  await y.store?.own.publish("topic", "not for x");
  await ofX.publish("topic", "for x");
  await until(() => told.length === 1, "the text");
  assertEquals(told, ["for x"]);
  stop();
  await ofX.append("log", "entry", { ttlMs: 1000, max: 5 });
  assertEquals((await ofX.read("log", { limit: 5 })).entries.map(({ value }) => value), ["entry"]);
  await ofX.trim("log", 2);
  await ofX.delete("key");
  assertEquals(await ofX.get("key"), undefined);
  for (const server of servers) await server.close();
});

/** Creates a server with a tool that extensions call. */
function serveCalls(options: Partial<ServerOptions> = {}) {
  let host: ServerHandle | undefined;
  const audit = extension({
    id: ID,
    methods: { "audit/own": { run: ({ day }, ctx) => ({ day, who: ctx.principal?.id }) } },
    start: (given) => void (host = given),
  });
  const internals: unknown[] = [];
  const layer = audit.layer({
    around(call, next) {
      internals.push(call.internal);
      return next({ ask: () => Promise.resolve({ action: "accept", content: {} }) });
    },
  });
  const work = tool({
    name: "work",
    input: z.object({ n: z.number().default(1) }),
    use: [layer],
    async run({ n }, ctx) {
      await ctx.progress(1);
      await ctx.log.error("dropped");
      return JSON.stringify([n, ctx.principal?.id, ctx.client.version, await ctx.once("k", () => 1)]);
    },
  });
  const asks = tool({
    name: "asks",
    use: [layer],
    run: async (_input, ctx) =>
      (await ctx.elicit("ok", { message: "?", schema: { type: "object", properties: {} } })).action,
  });
  const lonely = tool({ name: "lonely", run: async (_input, ctx) => `${await ctx.roots()}` });
  const secret = tool({ name: "secret", allow: ({ principal }) => principal?.id === "ada", run: () => "secret" });
  const scoped = tool({ name: "scoped", scopes: ["a"], run: () => "scoped" });
  const slow = tool({
    name: "slow",
    run: (_input, { signal }) => new Promise((_, reject) => signal.onabort = () => reject(signal.reason)),
  });
  const handlers = [audit, work, asks, lonely, secret, scoped, slow];
  const server = testServer({ handlers, ...options });
  const call = async (name: string, more: Partial<Parameters<ServerHandle["call"]>[0]> = {}) => {
    await server.ready();
    const result = await host!.call({ method: "tools/call", params: { name, ...more.params }, ...more });
    return textOf(result as Parameters<typeof textOf>[0]); // The cast is safe, because the result is a tool's result.
  };
  return { server, call, host: () => host!, internals };
}

Deno.test("a server closes only after the extensions that were removed have stopped", async () => {
  const seen: string[] = [];
  const { pass, open } = gate();
  const audit = extension({
    id: ID,
    start: () => async () => {
      seen.push("stopping");
      await pass;
      seen.push("stopped");
    },
  });
  const server = testServer({ handlers: [audit] });
  await server.ready();
  server.handlers.remove(audit);
  await until(() => seen.includes("stopping"), "the extension stops");
  const closing = server.close().then(() => seen.push("closed"));
  // A server that does not wait closes within these turns.
  for (let i = 0; i < 50; i++) await turn();
  open();
  await closing;
  assertEquals(seen, ["stopping", "stopped", "closed"]);
});

Deno.test("a call of an extension ends if allow hangs: after calls.timeoutMs, or when its signal aborts", async () => {
  const clock = fakeClock();
  let asked = 0;
  const { server, call } = serveCalls({ clock, limits: { calls: { timeoutMs: 1000 } } });
  server.handlers.add(tool({
    name: "hung",
    allow: () => (asked++, new Promise(() => {})),
    run: () => "ran",
  }));
  const late = started(call("hung"));
  await until(() => asked === 1, "allow is called");
  await assertRejects(() => advanceUntil(clock, 200, late), McpError, sentence("1000 ms", "calls.timeoutMs"));
  const controller = new AbortController();
  const cancelled = started(call("hung", { signal: controller.signal }));
  await until(() => asked === 2, "allow is called again");
  controller.abort(new Error("no longer needed"));
  await assertRejects(() => cancelled, Error, sentence("no longer needed"));
});

Deno.test("a call of an extension ends at the timeout of the handler, unless the extension sets another", async () => {
  const clock = fakeClock();
  let runs = 0;
  const { server, call } = serveCalls({ clock, limits: { calls: { timeoutMs: 10_000 } } });
  const hang = (_input: unknown, { signal }: Context) => {
    runs++;
    return new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("late")));
  };
  for (const timeoutMs of [50, 20_000]) {
    server.handlers.add(tool({ name: `hang${timeoutMs}`, use: [quota({ timeoutMs })], run: hang }));
  }
  for (
    const [name, ms, more] of [
      ["hang50", 50, {}],
      ["hang20000", 20_000, {}],
      ["hang50", 200, { timeoutMs: 200 }],
    ] as const
  ) {
    const before = runs;
    let isOver = false;
    const ending = started(call(name, more));
    ending.catch(() => isOver = true);
    await until(() => runs > before, "the handler runs");
    await clock.advance(ms - 1);
    await turn(5);
    assertEquals(isOver, false);
    await clock.advance(1);
    await assertRejects(() => ending, Error, `longer than ${ms} ms`);
  }
});

Deno.test("an extension can call a handler for a caller without admission and rate limits, and observers get the events of the call", async () => {
  const events: Partial<CallEvent>[] = [];
  const admitted: string[] = [];
  const { call, internals, host } = serveCalls({
    admit: ({ method }) => (admitted.push(method), true),
    observer: {
      call: ({ transport, method, subject, principal, outcome, why }) =>
        events.push({ transport, method, subject, principal, outcome, why }),
    },
    limits: { calls: { running: 1, runningPerClient: 1 } },
  });
  const ada: Principal = { id: "ada", scopes: ["a"] };
  const client = { version: "x", capabilities: { elicitation: {} } };
  assertEquals(await call("work", { principal: ada, client, data: 7 }), '[1,"ada","x",1]');
  assertEquals(await call("work", { params: { name: "work", arguments: { n: 2 } } }), '[2,null,"",1]');
  assertEquals(await call("asks", { client }), "accept");
  assertEquals(internals, [{ data: 7 }, { data: undefined }, { data: undefined }]);
  await assertRejects(() => call("asks"), McpError, sentence("elicitation"));
  await assertRejects(
    () => call("lonely", { client: { version: "", capabilities: { roots: {} } } }),
    Error,
    sentence("roots"),
  );
  assertEquals(await call("secret", { principal: ada }), "secret");
  await assertRejects(() => call("secret"), McpError, sentence("secret"));
  assertEquals(await call("scoped", { principal: ada }), "scoped");
  await assertRejects(() => call("scoped", { principal: { id: "bob", scopes: [] } }), McpError);
  await assertRejects(() => call("nothing"), McpError);
  await assertRejects(() => host().call({ method: "no/such" }), McpError, sentence("no/such"));
  await assertRejects(
    () => host().call({ method: "tools/call", principal: {} as Principal }),
    TypeError,
    sentence("principal"),
  );
  await assertRejects(() => host().call({ metod: "tools/call" } as never), TypeError, sentence("metod", "method"));
  for (const reads of ["", 5, null, [5], ["vault://one", undefined], {}, Promise.resolve([])]) {
    await assertRejects(() => call("work", { reads: reads as never }), TypeError, sentence("reads"));
  }
  assertEquals(admitted, []);
  assertEquals(events[0], {
    transport: "internal",
    method: "tools/call",
    subject: "work",
    principal: "ada",
    outcome: "result",
    why: undefined,
  });
});

Deno.test("an extension's call has a timeout, a signal and its own slot, and ends when the server closes", async () => {
  const { server, call } = serveCalls({ limits: { calls: { detached: 4, closeMs: 10 } } });
  const slow = (more: Parameters<typeof call>[1] = {}) =>
    call("slow", { principal: { id: "ada" }, ...more }).catch((error) => [error.code, error.why]);
  assertEquals(await slow({ timeoutMs: 10 }), [-32603, "timeout"]);
  assertEquals(await slow({ signal: AbortSignal.abort(new Error("enough")) }), [-32603, "extension"]);
  const stop = new AbortController();
  const stopped = slow({ signal: stop.signal });
  await turn(3);
  assertEquals(await slow(), [-31503, undefined], "the call did not occupy one slot");
  stop.abort();
  assertEquals(await stopped, [-32603, "extension"]);
  const last = slow();
  await turn(3);
  await server.close();
  assertEquals(await last, [-32603, "closing"]);
});

Deno.test("a client cannot impersonate an extension", async () => {
  const { server, internals } = serveCalls();
  await using client = await connectTest(server, declares);
  await client.request("tools/call", { name: "work", internal: { data: 1 }, data: 1, _meta: { internal: 1 } });
  assertEquals(internals, [undefined]);
});

const published = () => ({ method: "notifications/audit", params: { at: 1 } });

/** Starts instances of one server with subscribers. Each instance can have its own extension and its own store. */
async function watchDays(parts: readonly (readonly [audit: Handler, store: Store])[], name = "one") {
  const secret = "s".repeat(32);
  const servers = parts.map(([audit, store]) =>
    createServer({ name, version: "1", store, secret, handlers: [audit, fenced] })
  );
  const clients = await Promise.all(servers.map((server) => connectTest(server, declares)));
  const subscriptions = await Promise.all(
    clients.map((client) => client.subscribe({ resourceSubscriptions: [FENCE], extensions: { days: ["7"] } })),
  );
  const close = async () => {
    await clients.shift()?.close();
    await servers.shift()?.close();
    subscriptions.shift();
  };
  return {
    /** Returns how many publications each subscriber has received, after all writes to the store have arrived. */
    async count() {
      for (const server of servers) await fence(server, ...subscriptions);
      return subscriptions.map((each) => withoutFences(each).length);
    },
    /** Closes the first instance that is still open. */
    close,
    async closeAll() {
      while (servers.length) await close();
    },
  };
}

const toDays = () => extension({ id: ID, listen: { days: { filter: z.array(z.string()) } } });

Deno.test("a publication reaches the subscribers on all instances once", async () => {
  const store = memoryStore();
  // The two servers of a process share an extension, and the other process has its own extension.
  const [own, others] = [toDays(), toDays()];
  const parts = [[own, store], [others, store]] as const;
  const both = [await watchDays(parts, "one"), await watchDays(parts, "two")];
  own.publish("days", { topic: "7", ...published() });
  own.publish("days", { topic: "8", ...published() });
  for (const { count } of both) assertEquals(await count(), [1, 1]);
  others.publish("days", { topic: "7", ...published() });
  for (const { count } of both) assertEquals(await count(), [2, 2]);
  for (const { closeAll } of both) await closeAll();
});

Deno.test("if several servers in a process share a name, a store and an extension, each subscriber gets a publication once", async () => {
  const store = memoryStore();
  // The last server stands for another process, so it has its own extension.
  const [own, others] = [toDays(), toDays()];
  const { count, close, closeAll } = await watchDays([[own, store], [own, store], [own, store], [others, store]]);
  own.publish("days", { topic: "7", ...published() });
  assertEquals(await count(), [1, 1, 1, 1]);
  others.publish("days", { topic: "7", ...published() });
  assertEquals(await count(), [2, 2, 2, 2]);
  await close();
  own.publish("days", { topic: "7", ...published() });
  assertEquals(await count(), [3, 3, 3]);
  await closeAll();
});

Deno.test("if servers in a process use the same data through two store objects, each subscriber gets a publication once", async () => {
  const store = memoryStore();
  const own = toDays();
  const { count, closeAll } = await watchDays([[own, store], [own, customStore(store[INTERNALS].connect)]]);
  own.publish("days", { topic: "7", ...published() });
  assertEquals(await count(), [1, 1]);
  await closeAll();
});

Deno.test("a publication reaches the instances of each store", async () => {
  const stores = [memoryStore(), memoryStore()];
  const [own, others] = [toDays(), toDays()];
  const parts = [own, others].flatMap((audit) => stores.map((store) => [audit, store] as const));
  // The servers with the same store are instances of each other, so each store needs its own fence.
  const both = await Promise.all(stores.map((store) => watchDays(parts.filter(([, each]) => each === store))));
  own.publish("days", { topic: "7", ...published() });
  for (const { count } of both) assertEquals(await count(), [1, 1]);
  for (const { closeAll } of both) await closeAll();
});

behaviour(
  "an extension is notified when a topic gets its first subscriber and loses its last subscriber",
  async (connect) => {
    const seen: string[] = [];
    const { pass, open } = gate();
    const audit = extension({
      id: ID,
      listen: {
        days: {
          filter: z.array(z.string()),
          async watch(topic) {
            if (topic === "slow") await pass;
            if (topic === "fails") throw new Error("no such day");
            seen.push(`watch ${topic}`);
            return () => seen.push(`stop ${topic}`);
          },
        },
        all: { filter: z.boolean(), watch: (topic) => void seen.push(`all ${topic}`) },
      },
    });
    const { client, join, takeFaults } = await connect({ handlers: [audit] }, declares);
    const first = await client.subscribe({ extensions: { days: ["1", "2"], all: true } });
    const other = await join(declares);
    const second = await other.subscribe({ extensions: { days: ["2", "fails"] } });
    await until(() => seen.length === 3 && takeFaults().length === 1, "the topics");
    assertEquals(seen.toSorted(), ["all ", "watch 1", "watch 2"]);
    await first.close();
    await until(() => seen.length === 4, "one topic is no longer watched");
    assertEquals(seen.at(-1), "stop 1");
    await second.close();
    await until(() => seen.length === 5, "the other topic is no longer watched");
    assertEquals(seen.at(-1), "stop 2");
    // This client unsubscribes before its topic is watched.
    const third = await client.subscribe({ extensions: { days: ["slow"] } });
    await third.close();
    open();
    await until(() => seen.length === 7, "the last topic is no longer watched");
    assertEquals(seen.slice(5), ["watch slow", "stop slow"]);
  },
  { ...modern, perInstance: "hooks" },
);

behaviour(
  "the first subscriber of a topic gets the notification that load returns",
  async (connect) => {
    const results: unknown[] = [];
    const loaded: string[] = [];
    const audit = extension({
      id: ID,
      listen: {
        days: {
          filter: z.array(z.string()),
          async load(topic, ctx) {
            await turn();
            loaded.push(`${topic} ${ctx.signal.aborted}`);
            // The cast is for the test of invalid results.
            return (topic in results
              ? results[Number(topic)]
              : { method: "notifications/audit", params: { at: topic } }) as
                & object
                & { method: string };
          },
        },
      },
    });
    results.push(undefined, { method: "audit" }, null, "text");
    const { client, join, takeFaults } = await connect({ handlers: [audit] }, declares);
    const first = await client.subscribe({ extensions: { days: ["7"] } });
    await until(() => first.received.length === 1, "the notification");
    assertEquals([first.received[0].method, Object(first.received[0].params).at], ["notifications/audit", "7"]);
    const other = await join(declares);
    const second = await other.subscribe({ extensions: { days: ["0", "1", "2", "3"] } });
    const faults: unknown[] = [];
    await until(() => faults.push(...takeFaults()) && faults.length === 3, "the faults");
    assertEquals(loaded.toSorted(), ["0 false", "1 false", "2 false", "3 false", "7 false"]);
    assertEquals(second.received, []);
  },
  { ...modern, perInstance: "hooks" },
);

Deno.test("with load, other instances get no parameters, and load the notification for their subscribers", async () => {
  const shared = memoryStore();
  const sizes: number[] = [];
  const open = () =>
    customStore(async () =>
      wrapEngine(await shared[INTERNALS].connect(), ({ name, args: [, value], run }) => {
        if (name === "append") sizes.push(String(value).length);
        return run();
      })
    );
  const text = "x".repeat(100_000);
  const loads: string[] = [];
  const make = (name: string) =>
    extension({
      id: ID,
      listen: {
        days: {
          filter: z.array(z.string()),
          load(topic, ctx) {
            loads.push(`${name} ${topic} ${ctx.principal?.id}`);
            return { method: "notifications/audit", params: { text: `loaded ${text}` } };
          },
        },
      },
    });
  const servers = [];
  for (const name of ["a", "b"]) {
    const audit = make(name);
    const server = createServer({
      name: "one",
      version: "1",
      store: open(),
      secret: "s".repeat(32),
      handlers: [audit],
    });
    const client = await connectTest(server, { ...declares, principal: { id: `ada ${name}` } });
    const { received } = await client.subscribe({ extensions: { days: ["7"] } });
    await until(() => received.length === 1, "the current notification");
    servers.push({ audit, server, client, received });
  }
  const [a, b] = servers;
  assertEquals(loads, ["a 7 ada a", "b 7 ada b"]);
  const event = { method: "notifications/audit", params: { text } };
  a.audit.publish("days", { topic: "7", ...event });
  a.audit.publish("days", { topic: "8", ...event });
  await until(() => b.received.length === 2, "the notification on the other instance");
  assertEquals(a.received.map(({ params }) => Object(params).text.length), [text.length + 7, text.length]);
  assertEquals(b.received.map(({ params }) => Object(params).text.length), [text.length + 7, text.length + 7]);
  assertEquals(loads.slice(2), ["b 7 ada b"]);
  assertEquals(sizes.length > 0 && sizes.every((size) => size < 2000), true);
  for (const { client, server } of servers) {
    await client.close();
    await server.close();
  }
});

// The store of an extension, for the process and for the client of a request.

const NOTES = "com.example/notes";

Deno.test("an extension counts stored bytes against the share of a request's client, until they are released", async () => {
  let host: ServerHandle | undefined;
  const all: KeptBytes[] = [];
  const contexts: Context[] = [];
  const blobs = extension({
    id: NOTES,
    start: (server) => void (host = server),
    methods: {
      "blobs/add": {
        params: z.object({ bytes: z.number() }),
        run({ bytes }, ctx, server) {
          contexts.push(ctx);
          const kept = server?.keep(ctx, bytes);
          if (kept) all.push(kept);
          return { isKept: kept !== undefined };
        },
      },
    },
  });
  await using server = createServer({ name: "blobs", version: "1.0.0", handlers: [blobs] });
  const join = (id: string) => connectTest(server, { extensions: [clientExtension({ id: NOTES })], principal: { id } });
  await using ada = await join("ada");
  await using bob = await join("bob");
  const add = async (client: Connection, bytes: number) => (await client.request("blobs/add", { bytes })).isKept;
  const QUARTER = 33_554_432;
  assertEquals(await add(ada, QUARTER - 1000), true);
  assertEquals([await add(ada, 2000), await add(bob, 2000)], [false, true]);
  all[0].resize(1000);
  assertEquals(await add(ada, 2000), true);
  all[0].end();
  assertEquals([all[0].grow(1), all[1].grow(QUARTER), all[1].grow(1)], [false, false, true]);
  assertThrows(() => host?.keep({ ...contexts[0], link: undefined } as Context, 1), TypeError, sentence("ctx"));
});

Deno.test("an extension uses the same data for the process and for the client of each context", async () => {
  let host: ServerHandle | undefined;
  const views: (StoreView | undefined)[] = [];
  const watched: string[] = [];
  const notes = extension({
    id: NOTES,
    start: (server) => void (host = server),
    methods: {
      "notes/set": {
        params: z.object({ text: z.string() }),
        async run({ text }, ctx, server) {
          const [first, second] = [server?.store?.by(ctx), server?.store?.by(ctx)];
          views.push(first, second);
          await first?.set("note", text, { ttlMs: 60_000 });
          return {};
        },
      },
    },
    listen: {
      notes: {
        filter: z.array(z.string()),
        watch: async (topic, ctx, server) => {
          await server?.store?.by(ctx).set(topic, "watched", { ttlMs: 60_000 });
          watched.push(`${topic} ${ctx.principal?.id} ${server === host}`);
        },
      },
    },
  });
  // The context of a handler with services is a separate object.
  const wrapping = notes.layer({
    around: async (call, next) => {
      views.push(call.server?.store?.by(call.ctx));
      return await next();
    },
  });
  const contexts: Context<unknown>[] = [];
  const read = tool({
    name: "read",
    services: { clock: service("clock", () => 1) },
    use: [wrapping],
    run: async (_input, ctx) => {
      contexts.push(ctx);
      return (await host?.store?.by(ctx).get("note"))?.value ?? "";
    },
  });
  await using server = createServer({
    name: "notes",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers: [notes, read],
    store: memoryStore(),
  });
  const declared = { extensions: [clientExtension({ id: NOTES })], principal: { id: "ada" } };
  await using client = await connectTest(server, declared);
  await client.request("notes/set", { text: "Buy milk" });
  assertEquals((await host?.store?.own.get("note"))?.value, "Buy milk");
  const { content: [text] } = await client.callTool("read");
  assertEquals(Object(text).text, "Buy milk");
  // A request has one view, so only its first operation is refused.
  assertStrictEquals(views[0], views[1]);
  assertStrictEquals(views[2], host?.store?.by(contexts[0]));
  await using _subscription = await client.subscribe({ extensions: { notes: ["today"] } });
  await until(() => watched.length === 1, "the topic is watched");
  assertEquals(watched, ["today ada true"]);
  assertEquals((await host?.store?.own.get("today"))?.value, "watched");
  const { lease } = host?.store?.by(contexts[0]) ?? {};
  assertEquals([lease?.id, await lease?.isHeld("unknown")], [host?.store?.own.lease.id, true]);
  // A copy of a context belongs to no call.
  assertThrows(() => host?.store?.by({ ...contexts[0] }), TypeError, sentence("ctx"));
});
