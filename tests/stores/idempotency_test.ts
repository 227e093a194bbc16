// Idempotency keys across instances. A call with a key runs once, even if the store, the instance or the client fails.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { McpError, type ServerOptions, tool, ToolError } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { createTaskClient, createTasks, ID } from "../extensions/task_extension.ts";
import { advanceUntil, gate, started, textOf, turn, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { readAnswer, toRequest } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const SECRET = "a secret of at least thirty-two characters";
/** The lease in tests in which an instance fails, so that the other instances notice the failure soon. */
const SHORT_LEASE_MS = 1000;
/** The lease in all other tests. An instance on a loaded machine must not lose its lease. */
const LEASE_MS = 60_000;
const ada = { id: "ada" };
const input = z.object({ key: z.string(), amount: z.number().default(1) });

type Run = (input: { readonly amount: number }, ctx: { readonly idempotencyToken?: string }) => unknown;

/**
 * Starts an instance. After it is killed or disconnected from the store, the other instances receive nothing from it.
 */
function startInstance(
  shared: Store,
  run: Run,
  more: Partial<ServerOptions> & { rerun?: boolean; ttlMs?: number; leaseMs?: number } = {},
) {
  const { rerun, ttlMs, leaseMs = LEASE_MS, handlers = [], ...options } = more;
  const state = {
    isLost: false,
    fails: undefined as string | undefined,
    commands: [] as string[],
    events: [] as string[],
  };
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async (command) => {
      state.commands.push(command.name);
      if (state.isLost) throw new Error("the store is lost");
      if (state.fails === command.name) {
        await command.run();
        throw new Error("the answer is lost");
      }
      return await command.run();
    }), { leaseMs });
  const pay = tool({
    name: "pay",
    input,
    use: [idempotent({ key: ({ key }) => key, rerun, ttlMs })],
    run: async (input, ctx) => await run(input, ctx) as object,
  });
  const server = openServer({
    handlers: [pay, ...handlers as []],
    store,
    observer: { store: ({ state: event }) => void state.events.push(event), fault() {} },
    ...options,
  });
  return {
    state,
    server,
    store,
    connect: (principal = ada, era: "modern" | "legacy" = "modern") => connectTest(server, { principal, era }),
  };
}

async function fails(call: Promise<unknown>): Promise<McpError> {
  return await assertRejects(() => call, McpError);
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a call with a key runs once across instances, even if the first call is still running (${era})`, async () => {
    const shared = memoryStore();
    let runs = 0;
    const { pass, open } = gate();
    const run = async () => {
      const own = ++runs;
      await pass;
      return { run: own };
    };
    const [a, b] = [startInstance(shared, run), startInstance(shared, run)];
    const [here, there] = [await a.connect(ada, era), await b.connect(ada, era)];
    const first = started(here.callTool("pay", { key: "a" }));
    await until(() => runs === 1, "the first call runs");
    const others = [here, there, there].map((client) => started(client.callTool("pay", { key: "a" })));
    const conflict = fails(there.callTool("pay", { key: "a", amount: 2 }));
    assertEquals((await conflict).code, -32602);
    open();
    for (const other of others) assertEquals((await other).structuredContent, { run: 1 });
    assertEquals((await first).structuredContent, { run: 1 });
    assertEquals((await there.callTool("pay", { key: "b" })).structuredContent, { run: 2 });
    assertEquals((await here.callTool("pay", { key: "b" })).structuredContent, { run: 2 });
  });
}

Deno.test("without a principal, a key is valid within its session, on all instances", async () => {
  const shared = memoryStore();
  let runs = 0;
  const run = () => ({ run: ++runs });
  const [a, b] = [startInstance(shared, run), startInstance(shared, run)];
  const post = async ({ server }: typeof a, message: object, session?: string) => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...session && { "mcp-session-id": session },
    };
    const response = await server.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers,
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
      }),
    );
    const text = await response.text();
    return {
      session: response.headers.get("mcp-session-id") ?? "",
      run: JSON.parse(/"structuredContent":(\{[^}]*\})/.exec(text)?.[1] ?? "{}").run,
    };
  };
  const begin = async () =>
    (await post(a, {
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } },
    })).session;
  const call = { method: "tools/call", params: { name: "pay", arguments: { key: "a" } } };
  const [one, two] = [await begin(), await begin()];
  const found = [];
  for (const [instance, session] of [[a, one], [b, one], [b, two], [a, two]] as const) {
    found.push((await post(instance, call, session)).run);
  }
  assertEquals(found, [1, 1, 2, 2]);
});

Deno.test("after a crash, the outcome of a call is unknown and stays unknown", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const a = startInstance(shared, () => (runs.push("a"), new Promise(() => {})), {
    limits: { calls: { closeMs: 1 } },
    leaseMs: SHORT_LEASE_MS,
  });
  const b = startInstance(shared, () => (runs.push("b"), { run: "b" }));
  const [here, there] = [await a.connect(), await b.connect()];
  const first = started(here.callTool("pay", { key: "order 7" }));
  await until(() => runs.length === 1, "the first call runs");
  a.state.isLost = true;
  const since = performance.now();
  for (let i = 0; i < 3; i++) {
    const error = await fails(there.callTool("pay", { key: "order 7" }));
    assertEquals([error.code, error.data], [-31409, { idempotencyKey: "order 7", outcome: "unknown" }]);
    assertEquals(error.message, sentence("order 7"));
  }
  assert(performance.now() - since < 10_000);
  assertEquals((await there.callTool("pay", { key: "order 8" })).structuredContent, { run: "b" });
  assertEquals(runs, ["a", "b"]);
  await Promise.all([a.server.close(), b.server.close()]);
  await assertRejects(() => first);
});

Deno.test("after a crash, a tool with rerun runs again, and its token makes the effect idempotent", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let runs = 0;
  const count = async (_input: unknown, { idempotencyToken: token }: { readonly idempotencyToken?: string }) => {
    const id = await shared.append("count", "", { ttlMs: 60_000, max: 100, token });
    if (++runs === 1) await pass;
    return { count: id };
  };
  const [a, b, c] = [1, 2, 3].map(() =>
    startInstance(shared, count, { rerun: true, leaseMs: SHORT_LEASE_MS, limits: { calls: { closeMs: 1 } } })
  );
  const [here, there, other] = [await a.connect(), await b.connect(), await c.connect()];
  const first = started(here.callTool("pay", { key: "a" }));
  await until(() => runs === 1, "the first call runs");
  const waiting = started(there.callTool("pay", { key: "a" }));
  a.state.isLost = true;
  for (
    const result of [
      await waiting,
      await there.callTool("pay", { key: "a" }),
      await other.callTool("pay", { key: "a" }),
    ]
  ) {
    assertEquals(result.structuredContent, { count: 1 });
  }
  assertEquals(runs, 2);
  // The instance was only disconnected, so its result is returned to both calls.
  a.state.isLost = false;
  open();
  assertEquals((await first).structuredContent, { count: 1 });
  assertEquals((await there.callTool("pay", { key: "b" })).structuredContent, { count: 2 });
  await Promise.all([a, b, c].map(({ server }) => server.close()));
});

Deno.test("two runs for the same key return one result to all callers", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let runs = 0;
  const run = async () => {
    const own = ++runs;
    if (own === 1) await pass;
    return { run: own };
  };
  const [a, b] = [1, 2].map(() => startInstance(shared, run, { rerun: true, leaseMs: SHORT_LEASE_MS }));
  const [here, there] = [await a.connect(), await b.connect()];
  const first = started(here.callTool("pay", { key: "a" }));
  await until(() => runs === 1, "the first call runs");
  a.state.isLost = true;
  assertEquals((await there.callTool("pay", { key: "a" })).structuredContent, { run: 2 });
  a.state.isLost = false;
  open();
  // The instance connects to its engine again after at most a second.
  for (const client of [here, there]) {
    await until(async () => {
      const known = await client.callTool("pay", { key: "a" }).catch(() => undefined);
      assert(!known || Object(known.structuredContent).run === 2);
      return known !== undefined;
    }, "the stored result");
  }
  assert([1, 2].includes(Object((await first).structuredContent).run));
});

Deno.test("while the store is unavailable, calls with a key fail, and other calls run", async () => {
  const shared = memoryStore();
  let runs = 0;
  const free = tool({ name: "free", run: () => "free" });
  const a = startInstance(shared, () => ({ run: ++runs }), { handlers: [free] });
  const client = await a.connect();
  assertEquals((await client.callTool("pay", { key: "a" })).structuredContent, { run: 1 });
  a.state.isLost = true;
  for (const key of ["a", "b"]) {
    const error = await fails(client.callTool("pay", { key }));
    assertEquals(error.code, -31503);
    assertEquals(error.message, sentence());
  }
  assertEquals(textOf(await client.callTool("free")), "free");
  assertEquals([runs, a.state.events], [1, ["degraded"]]);
  a.state.isLost = false;
  await until(
    async () => !!await client.callTool("pay", { key: "a" }).catch(() => undefined),
    "the store is available again",
  );
  assertEquals((await client.callTool("pay", { key: "b" })).structuredContent, { run: 2 });
  assertEquals(a.state.events, ["degraded", "recovered"]);
});

Deno.test("a result that cannot be stored is returned, and is stored once the store is available again", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let runs = 0;
  const run = async () => {
    const own = ++runs;
    await pass;
    return { run: own };
  };
  const [a, b] = [startInstance(shared, run), startInstance(shared, run)];
  const [here, there] = [await a.connect(), await b.connect()];
  const first = started(here.callTool("pay", { key: "a" }));
  await until(() => runs === 1, "the key is claimed");
  a.state.isLost = true;
  open();
  assertEquals((await first).structuredContent, { run: 1 });
  a.state.isLost = false;
  await until(async () => {
    const known = await there.callTool("pay", { key: "a" }).catch((error) => error);
    return known.structuredContent?.run === 1;
  }, "the result is stored");
  assertEquals(runs, 1);
});

Deno.test("if a call fails while the store is unavailable, its key is free once the store is available again", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let runs = 0;
  const run = async () => {
    const own = ++runs;
    await pass;
    if (own === 1) throw new ToolError("no money");
    return { run: own };
  };
  const a = startInstance(shared, run);
  const client = await a.connect();
  const first = started(client.callTool("pay", { key: "a" }));
  await until(() => runs === 1, "the key is claimed");
  a.state.isLost = true;
  open();
  assertEquals(textOf(await first), "no money");
  a.state.isLost = false;
  await until(async () => !!await client.callTool("pay", { key: "a" }).catch(() => undefined), "the key is free");
  assertEquals(runs, 2);
});

Deno.test("a claim does not block its key if the engine's response to the claim was lost", async () => {
  const shared = memoryStore();
  let runs = 0;
  const a = startInstance(shared, () => ({ run: ++runs }));
  const client = await a.connect();
  await a.store.lease.hold();
  a.state.fails = "set";
  assertEquals((await fails(client.callTool("pay", { key: "a" }))).code, -31503);
  a.state.fails = undefined;
  await until(async () => !!await client.callTool("pay", { key: "a" }).catch(() => undefined), "the key is free");
  assertEquals(runs, 1);
});

Deno.test("a result that is too large for the store is returned once, and the call never runs again", async () => {
  const shared = memoryStore();
  const events: unknown[] = [];
  let runs = 0;
  const store = customStore(shared[INTERNALS].connect, { valueBytes: 2000 });
  const make = () => {
    const pay = tool({
      name: "pay",
      input,
      use: [idempotent(({ key }) => key)],
      run: () => `${++runs} ${"x".repeat(5000)}`,
    });
    return openServer({ handlers: [pay], store, observer: { store: (event) => void events.push(event.state) } });
  };
  await using server = make();
  await using client = await connectTest(server, { principal: ada });
  assert(textOf(await client.callTool("pay", { key: "a" })).startsWith("1 xx"));
  for (let i = 0; i < 2; i++) {
    const error = await fails(client.callTool("pay", { key: "a" }));
    assertEquals([error.code, error.data], [-31409, { idempotencyKey: "a", outcome: "done" }]);
    assertEquals(error.message, sentence("a"));
  }
  assertEquals([runs, events], [1, ["refused"]]);
});

Deno.test("a record that the server cannot read is refused", async () => {
  const shared = memoryStore();
  let runs = 0;
  const a = startInstance(shared, () => ({ run: ++runs }));
  const client = await a.connect();
  await client.callTool("pay", { key: "a" });
  const others = { secret: "another secret of at least thirty-two characters" };
  const b = startInstance(shared, () => ({ run: ++runs }), others);
  const other = await b.connect();
  const error = await fails(other.callTool("pay", { key: "a" }));
  assertEquals([error.code, error.data], [-31409, { idempotencyKey: "a", outcome: "unknown" }]);
  assertEquals(error.message, sentence());
  assertEquals(runs, 1);
  // A server that has both secrets can read the record.
  const c = startInstance(shared, () => ({ run: ++runs }), { secret: [others.secret, SECRET] });
  assertEquals((await (await c.connect()).callTool("pay", { key: "a" })).structuredContent, { run: 1 });
});

Deno.test("an instance that is closing leaves no call of another instance waiting", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let begun = 0;
  const run: Run = async () => (begun++, await pass, { run: 1 });
  const limits = { calls: { closeMs: 50 } };
  const [a, b] = [startInstance(shared, run, { limits }), startInstance(shared, run, { limits })];
  const [here, there] = [await a.connect(), await b.connect()];
  const first = started(here.callTool("pay", { key: "a" }));
  await until(() => begun === 1, "the key is claimed");
  const second = started(there.callTool("pay", { key: "a" }));
  await a.server.close();
  assertEquals((await fails(first)).message, sentence());
  assertEquals((await fails(second)).code, -31409);
  const third = started(there.callTool("pay", { key: "b" }));
  const fourth = started(there.callTool("pay", { key: "b" }));
  await b.server.close();
  for (const call of [third, fourth]) assertEquals((await fails(call)).message, sentence());
  open();
});

Deno.test("an instance that is closing releases the claims of unfinished calls", async () => {
  const shared = memoryStore();
  let runs = 0;
  const make = (turns: number) => {
    const store = customStore(async () =>
      wrapEngine(await shared[INTERNALS].connect(), async ({ args, run }) => {
        await turn(turns);
        // A closed connection has the same effect.
        if (Object(args.at(-1)).signal?.aborted) throw new Error("closed");
        return await run();
      }), { timeoutMs: 60_000 });
    const pay = tool({
      name: "pay",
      input,
      use: [idempotent(({ key }) => key)],
      run: (_input, { signal }) =>
        ++runs > 1 ? { run: runs } : new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    const limits = { calls: { closeMs: 1 } };
    return openServer({ handlers: [pay], store, limits });
  };
  const [a, b] = [make(20), make(0)];
  await using here = await connectTest(a, { principal: ada });
  await using there = await connectTest(b, { principal: ada });
  const first = started(here.callTool("pay", { key: "a" }));
  await until(() => runs === 1, "the first call runs");
  await a.close();
  assertEquals((await fails(first)).message, sentence());
  assertEquals((await there.callTool("pay", { key: "a" })).structuredContent, { run: 2 });
});

Deno.test("a call without a key causes no store operations, and a call with a key causes few", async () => {
  const shared = memoryStore();
  const free = tool({ name: "free", input, use: [idempotent(() => undefined)], run: () => "free" });
  const a = startInstance(shared, () => ({ run: 1 }), { handlers: [free] });
  const client = await a.connect();
  await client.callTool("free", { key: "a" });
  assertEquals(a.state.commands, []);
  await client.callTool("pay", { key: "a" });
  assertEquals(
    a.state.commands.splice(0),
    ["set", "set", "set"],
    "the operations are not the lease, the claim and the result",
  );
  await client.callTool("pay", { key: "b" });
  assertEquals(a.state.commands.splice(0), ["set", "set"], "the operations are not the claim and the result");
  await client.callTool("pay", { key: "b" });
  assertEquals(a.state.commands.splice(0), ["set", "get"], "the result");
});

Deno.test("while the handler of the first call continues, a repeated call gets the first call's handle on any instance", async () => {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const { pass, open } = gate();
  let runs = 0;
  const make = () => {
    const tasks = createTasks();
    const work = tool({
      name: "work",
      input,
      use: [idempotent({ key: ({ key }) => key, ttlMs: 900 }), tasks.layer()],
      run: async () => (runs++, await pass, "done"),
    });
    return {
      tasks,
      instance: startInstance(shared, () => ({}), { handlers: [tasks.extension, work] as unknown as [], clock }),
    };
  };
  const [{ tasks, instance: a }, { tasks: others, instance: b }] = [make(), make()];
  const call = async ({ server }: typeof a, isTasking = true) => {
    const capabilities = isTasking ? { extensions: { [ID]: {} } } : {};
    const _meta = { "io.modelcontextprotocol/clientCapabilities": capabilities };
    const request = toRequest("tools/call", { name: "work", arguments: { key: "a" }, _meta });
    return await readAnswer(await server.fetch(request, { principal: ada }));
  };
  const { result } = await call(a);
  assertEquals([result.resultType, result.status], ["task", "working"]);
  // Advance the clock for longer than the time for which the key is remembered.
  for (let passed = 0; passed < 1500; passed += 300) {
    const before = a.state.commands.length;
    await clock.advance(300);
    await until(() => a.state.commands.slice(before).includes("set"), "the key is renewed");
    for (const instance of [a, b]) {
      const { result: again } = await call(instance);
      assertEquals([again.resultType, again.taskId], ["task", result.taskId]);
    }
  }
  const { error } = await call(b, false);
  assertEquals(error?.code, -32602);
  assertEquals(error?.message, sentence());
  open();
  await until(async () => {
    const { result: again } = await call(b);
    return again.taskId === result.taskId;
  }, "the handle is stored");
  assertEquals([runs, tasks.count(), others.count()], [1, 1, 0]);
});

Deno.test("while the handler of a cancelled call continues, no other instance runs the handler", async () => {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const { pass, open } = gate();
  let runs = 0;
  const run = async () => (runs++, await pass, { run: runs });
  const make = () => startInstance(shared, run, { clock, ttlMs: 900 });
  const [a, b] = [make(), make()];
  const [first, second] = [await a.connect(), await b.connect()];
  const controller = new AbortController();
  const cancelled = started(first.callTool("pay", { key: "a" }, { signal: controller.signal }));
  await until(() => runs === 1, "the first call runs");
  controller.abort();
  await assertRejects(() => cancelled);
  for (let passed = 0; passed < 3000; passed += 300) {
    const before = a.state.commands.length;
    await clock.advance(300);
    await until(() => a.state.commands.slice(before).includes("set"), "the key is renewed");
  }
  const again = started(second.callTool("pay", { key: "a" }));
  await until(() => b.state.commands.includes("get"), "the other instance has found the key");
  open();
  assertEquals((await advanceUntil(clock, 250, again)).structuredContent, { run: 1 });
  await Promise.all([first.close(), second.close()]);
});

Deno.test("after its task has failed, a repeated call gets a new handle", async () => {
  const tasks = createTasks();
  let runs = 0;
  const { pass, open } = gate();
  const work = tool({
    name: "work",
    input,
    use: [tasks.layer(), idempotent(({ key }) => key)],
    async run() {
      if (++runs > 1) return await new Promise<never>(() => {});
      await pass;
      throw new ToolError("no money");
    },
  });
  const limits = { calls: { closeMs: 1 } };
  const server = openServer({ handlers: [tasks.extension, work], limits });
  await using client = await connectTest(server, { principal: ada, extensions: [createTaskClient()] });
  const call = () => started(client.callTool("work", { key: "a" }, { timeoutMs: 60_000 }));
  const first = call();
  await until(() => tasks.count() === 1, "the task runs");
  open();
  assertEquals(textOf(await first), "no money");
  void call();
  await until(() => tasks.count() === 2, "another task runs");
  assertEquals(runs, 2);
});

Deno.test("tenants of one server have separate idempotency keys", async () => {
  const shared = memoryStore();
  for (const store of [undefined, shared]) {
    let runs = 0;
    const pay = tool({ name: "pay", input, use: [idempotent(({ key }) => key)], run: () => ({ run: ++runs }) });
    const server = openServer({ path: "/:tenant/mcp", handlers: [pay], store });
    const call = async (tenant: string) => {
      await using client = await connectTest(server, { principal: ada, pathParams: { tenant } });
      return Object((await client.callTool("pay", { key: "a" })).structuredContent).run;
    };
    assertEquals([await call("one"), await call("two"), await call("one"), await call("two")], [1, 2, 1, 2]);
  }
});
