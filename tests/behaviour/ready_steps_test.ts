// Features around a tool's function: cache, retries and circuit breaker.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import { type Context, extension, McpError, type Middleware, resource, service, tool, ToolError } from "../../mod.ts";
import type { LimitEvent } from "../../src/observe/observe.ts";
import { cache, circuit, guard, quota, retry } from "../../src/layers/layers.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, raise, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const annotations = { readOnlyHint: true };
const input = z.object({ a: z.unknown(), b: z.string().default("b") });

behaviour("a cache returns the stored result for an equal input until it expires", async (connect) => {
  const clock = fakeClock();
  let runs = 0;
  const count = tool({
    name: "count",
    annotations,
    input,
    use: [cache({ ttlMs: 1000, shared: true })],
    run: ({ a, b }) => ({ a, b, run: ++runs }),
  });
  const { client } = await connect({ clock, handlers: [count] });
  const call = async (args: Record<string, unknown>) =>
    (await client.callTool("count", args)).structuredContent as { readonly run: number };
  assertEquals(await call({ a: { x: 1, y: 2 } }), { a: { x: 1, y: 2 }, b: "b", run: 1 } as object);
  // Inputs are compared after validation, so the order of keys makes no difference.
  assertEquals((await call({ b: "b", a: { y: 2, x: 1 } })).run, 1);
  assertEquals((await call({ a: { x: 1, y: "2" } })).run, 2);
  assertEquals((await call({ a: { x: 1, y: 2 }, b: "c" })).run, 3);
  await clock.advance(999);
  assertEquals((await call({ a: { x: 1, y: 2 } })).run, 1);
  await clock.advance(1);
  assertEquals((await call({ a: { x: 1, y: 2 } })).run, 4);
}, { perInstance: "ready" });

behaviour(
  "a cache stores any value that can be cloned, and guards and encoders process the value on each call",
  async (connect) => {
    const runs: Record<string, number> = {};
    const values: Record<string, () => unknown> = {
      map: () => new Map([["at", new Date(0)]]),
      bytes: () => new Uint8Array([1, 2]),
      nothing: () => undefined,
      list: () => [{ deep: new Set([1n]) }],
      full: () => ({ content: [{ type: "text", text: "full" }] }),
      stream: () => new Response("text").body,
      own: () =>
        new (class Own {
          readonly a = 1;
        })(),
    };
    let guarded = 0;
    const guards = {
      output: [(value: unknown) => {
        guarded++;
        // A guard can change the value that it gets, but not the stored value.
        if (value instanceof Map) value.set("run", guarded);
      }],
    };
    const pick = tool({
      name: "pick",
      annotations,
      input: z.object({ kind: z.string() }),
      use: [cache({ ttlMs: 60_000, shared: true }), guard(guards)],
      run: ({ kind }) => {
        runs[kind] = (runs[kind] ?? 0) + 1;
        return values[kind]() as string;
      },
    });
    const { client } = await connect({ handlers: [pick] });
    for (const kind of Object.keys(values)) {
      const [first, second] = [await client.callTool("pick", { kind }), await client.callTool("pick", { kind })];
      if (kind !== "map") assertEquals(second, first, kind);
      assertEquals(runs[kind], ["stream", "own"].includes(kind) ? 2 : 1, kind);
    }
    assertEquals(guarded, 2 * Object.keys(values).length);
  },
  { perInstance: "ready" },
);

behaviour("a cache stores neither failures nor results of calls that took several rounds", async (connect) => {
  let runs = 0;
  const kinds: Record<string, () => unknown> = {
    words: () => raise(new ToolError("no")),
    bug: () => raise(new Error("bug")),
    error: () => ({ content: [], isError: true }),
    response: () => new Response("no", { status: 500 }),
  };
  const fail = tool({
    name: "fail",
    annotations,
    input: z.object({ kind: z.string() }),
    use: [cache({ ttlMs: 60_000, shared: true })],
    run: ({ kind }) => {
      runs++;
      return kinds[kind]() as string;
    },
  });
  const ask = tool({
    name: "ask",
    annotations,
    use: [cache({ ttlMs: 60_000, shared: true })],
    run: async (_input, { elicit }) => {
      const { action } = await elicit("ok", { message: "OK?", schema: z.object({}) });
      return `${action} ${++runs}`;
    },
  });
  const once = tool({
    name: "once",
    annotations,
    use: [cache({ ttlMs: 60_000, shared: true })],
    run: async (_input, ctx) => `${await ctx.once("a", () => 1)} ${++runs}`,
  });
  const { client, takeFaults } = await connect(
    { handlers: [fail, ask, once] },
    { onElicit: () => ({ action: "accept", content: {} }) },
  );
  for (const kind of Object.keys(kinds)) {
    runs = 0;
    assert((await client.callTool("fail", { kind })).isError);
    assert((await client.callTool("fail", { kind })).isError);
    assertEquals(runs, 2, kind);
  }
  assertEquals(takeFaults().length, 2);
  runs = 0;
  assertEquals([textOf(await client.callTool("ask")), textOf(await client.callTool("ask"))], ["accept 1", "accept 2"]);
  assertEquals([textOf(await client.callTool("once")), textOf(await client.callTool("once"))], ["1 3", "1 4"]);
}, { perInstance: "ready" });

behaviour(
  "a principal never gets a result that was cached for another principal or for other scopes",
  async (connect, way) => {
    if (way.transport === "pipe") return;
    let runs = 0;
    const who = tool({
      name: "who",
      annotations,
      use: [cache({ ttlMs: 60_000 })],
      run: (_input, { principal }) => `${principal?.id} ${++runs}`,
    });
    const { client, join } = await connect({ handlers: [who] });
    const principals = [
      { id: "ada" },
      { id: "bob" },
      { id: "ada", scopes: ["a"] },
      { id: "ada", scopes: ["a"], plan: "paid" },
      { id: "undefined" },
    ];
    const all = [client, client, ...await Promise.all(principals.map((principal) => join({ principal })))];
    const first = [];
    for (const each of all) first.push(textOf(await each.callTool("who")));
    assertEquals(first, ["undefined 1", "undefined 2", "ada 3", "bob 4", "ada 5", "ada 6", "undefined 7"]);
    const again = await join({ principal: { id: "bob", expiresAt: Date.now() + 60_000 } });
    assertEquals(textOf(await again.callTool("who")), "bob 4");
  },
  { perInstance: "ready" },
);

behaviour("a cache is limited in entries and bytes, and can be cleared", async (connect, way) => {
  if (way.transport === "pipe") return;
  let runs = 0;
  const small = cache({ ttlMs: 60_000, entries: 8, bytes: 80_000 });
  const { pass, open } = gate();
  const text = tool({
    name: "text",
    annotations,
    input: z.object({ size: z.number(), n: z.number(), waits: z.boolean().default(false) }),
    use: [small],
    run: async ({ size, waits }) => {
      runs++;
      if (waits) await pass;
      return "x".repeat(size);
    },
  });
  const { client } = await connect({ handlers: [text] }, { principal: { id: "ada" } });
  const call = async (size: number, n: number, waits = false) => {
    const before = runs;
    await client.callTool("text", { size, n, waits });
    return runs > before ? "runs" : "kept";
  };
  assertEquals([await call(1, 1), await call(1, 1)], ["runs", "kept"]);
  // One client can use two of the eight entries. A third entry evicts the client's least recently used entry.
  assertEquals([await call(1, 2), await call(1, 1), await call(1, 3)], ["runs", "kept", "runs"]);
  assertEquals([await call(1, 1), await call(1, 2)], ["kept", "runs"]);
  assertEquals([await call(20_000, 9), await call(20_000, 9)], ["runs", "runs"]);
  assertEquals([await call(1, 2)], ["kept"]);
  const before = runs;
  const waiting = call(1, 7, true);
  await until(() => runs > before, "the call runs");
  small.clear();
  open();
  await waiting;
  assertEquals([await call(1, 2), await call(1, 7, true), await call(1, 7, true)], ["runs", "runs", "kept"]);
}, { perInstance: "ready" });

behaviour(
  "concurrent calls with equal input each run, so that cancelling a call does not affect other calls",
  async (connect) => {
    const { pass, open } = gate();
    let runs = 0;
    const slow = tool({
      name: "slow",
      annotations,
      use: [cache({ ttlMs: 60_000, shared: true })],
      run: async () => {
        const run = ++runs;
        await pass;
        return run;
      },
    });
    const { client } = await connect({ handlers: [slow] });
    const abort = new AbortController();
    const first = client.callTool("slow", {}, { signal: abort.signal }).catch(() => "cancelled");
    await until(() => runs === 1, "the first call runs");
    const second = client.callTool("slow");
    await until(() => runs === 2, "both run");
    abort.abort();
    assertEquals(await first, "cancelled");
    open();
    assertEquals(textOf(await second), "2");
    assertEquals(textOf(await client.callTool("slow")), "2");
  },
  { perInstance: "ready" },
);

behaviour("a tool is retried after failures, but not after a ToolError", async (connect) => {
  const clock = fakeClock();
  const runs: string[] = [];
  const disposed: string[] = [];
  const tx = service("tx", () => "tx", { per: "call", dispose: (_tx, end) => void disposed.push(end) });
  const flaky = tool({
    name: "flaky",
    annotations: { idempotentHint: true },
    input: z.object({ kind: z.string() }),
    services: { tx },
    use: [retry({ attempts: 3, delayMs: 100, errors: (error) => !String(error).includes("fatal") })],
    run: async ({ kind }, { elicit }) => {
      runs.push(kind);
      if (kind === "second" && runs.length < 2) throw new TypeError("connection lost");
      if (kind === "words") throw new ToolError("no such thing");
      if (kind === "fatal") throw new Error("fatal");
      if (kind === "never") throw new Error("down");
      if (kind === "asks") {
        await elicit("ok", { message: "OK?", schema: z.object({}) });
        throw new Error("after a question");
      }
      return runs.length;
    },
  });
  const { client, takeFaults } = await connect(
    { clock, handlers: [flaky] },
    { onElicit: () => ({ action: "accept", content: {} }) },
  );
  const call = async (kind: string) => {
    runs.length = 0;
    const calling = client.callTool("flaky", { kind });
    let done = false;
    calling.finally(() => done = true).catch(() => {});
    await until(async () => {
      await clock.advance(50);
      return done;
    }, "the call ends");
    return { text: textOf(await calling), runs: runs.length, faults: takeFaults().map(({ error }) => String(error)) };
  };
  assertEquals(await call("second"), { text: "2", runs: 2, faults: [] });
  assertEquals(await call("words"), { text: "no such thing", runs: 1, faults: [] });
  assertEquals((await call("fatal")).runs, 1);
  const never = await call("never");
  assertEquals([never.runs, never.faults], [3, ["Error: down"]]);
  const asks = await call("asks");
  // Without a session, the handler runs again with the answer.
  assert(asks.runs <= 2);
  assertEquals(asks.faults, ["Error: after a question"]);
  // The services are shared by all attempts of one call.
  await until(
    () => disposed.filter((end) => end === "result").length === 1,
    "the transaction of the successful attempt has ended",
  );
}, { perInstance: "ready" });

behaviour("retries stop when the call ends, and before the call's timeout expires", async (connect, way) => {
  const clock = fakeClock();
  let runs = 0;
  const signals: AbortSignal[] = [];
  const run = (_input: unknown, { signal }: { readonly signal: AbortSignal }): string => {
    signals.push(signal);
    runs++;
    throw new Error("down");
  };
  const options = { attempts: 50, delayMs: 1000, maxDelayMs: 1000 };
  const long = tool({ name: "long", annotations, use: [retry(options)], run });
  const short = tool({
    name: "short",
    annotations,
    use: [retry({ ...options, attempts: 1000 }), quota({ timeoutMs: 1 })],
    run,
  });
  const { client, takeFaults } = await connect({ clock, handlers: [long, short] });
  // Over HTTP in 2026-07-28, the server detects a disconnected client through the response stream, which opens only
  // after a delay.
  if (way.era === "legacy" || way.transport === "pipe") {
    const abort = new AbortController();
    const cancelled = client.callTool("long", {}, { signal: abort.signal }).catch(() => "cancelled");
    await until(() => runs === 1, "the tool runs");
    abort.abort();
    assertEquals(await cancelled, "cancelled");
    await until(() => signals[0].aborted, "the server cancels the call");
    await clock.advance(60_000);
    assertEquals(runs, 1);
  }
  runs = 0;
  // A further run requires a random delay below one millisecond, which has a probability of 1 in 1000.
  assert((await client.callTool("short")).isError);
  assert(runs < 5, `${runs} runs`);
  takeFaults();
}, { perInstance: "ready" });

behaviour("a cache does not store a result that depends on an answer, whoever asked", async (connect) => {
  const ask = async (ctx: Pick<Context, "elicit">) =>
    String((await ctx.elicit("who", { message: "Who?", schema: z.object({ name: z.string() }) })).content?.name);
  const inner = resource({ uri: "ask://inner", name: "inner", read: (_uri, ctx) => ask(ctx) });
  const outer = resource({ uri: "ask://outer", name: "outer", read: (_uri, ctx) => ctx.readResource("ask://inner") });
  const read = async (ctx: Pick<Context, "readResource">, uri = "ask://inner") =>
    (await ctx.readResource(uri)).map((each) => "text" in each ? each.text : "").join();
  const perCall = { per: "call" } as const;
  const asking = service("asking", ({ ctx }) => ask(ctx!), perCall);
  const reading = service("reading", ({ ctx }) => read(ctx!), perCall);
  let noted = "";
  const note = (find: (ctx: Context) => Promise<string>): Middleware => async (ctx, next) => {
    if (ctx.method === "tools/call") noted = await find(ctx);
    return await next();
  };
  const plain = extension({ id: "com.example/plain" });
  const other = extension({ id: "com.example/other" });
  const wraps = other.layer({ around: (_call, next) => next() });
  const asks = plain.layer({
    around: async ({ ctx }, next) => {
      noted = await ask(ctx);
      return await next();
    },
  });
  const use = [cache({ ttlMs: 60_000, shared: true })];
  const run = () => noted;
  const tools = [
    tool({ name: "asks", annotations, use, run: (_input, ctx) => ask(ctx) }),
    tool({ name: "reads", annotations, use, run: (_input, ctx) => read(ctx) }),
    tool({ name: "reads_nested", annotations, use, run: (_input, ctx) => read(ctx, "ask://outer") }),
    tool({
      name: "asking_service",
      annotations,
      use,
      services: { asking },
      run: (_input, { services }) => services.asking,
    }),
    tool({
      name: "reading_service",
      annotations,
      use,
      services: { reading },
      run: (_input, { services }) => services.reading,
    }),
    tool({ name: "asking_middleware", annotations, use: [note(ask), ...use], run }),
    tool({ name: "reading_middleware", annotations, use: [note(read), ...use], run }),
    tool({ name: "asking_extension", annotations, use: [asks, ...use], run }),
    tool({ name: "asking_outer_extension", annotations, use: [asks, wraps, ...use], run }),
  ];
  const late = [
    tool({ name: "server_middleware", annotations, use, run }),
    tool({ name: "in_extension", annotations, use: [wraps, ...use], run }),
  ];
  const first = await connect({ handlers: [inner, outer, plain, other, ...tools] });
  const second = await connect({ handlers: [inner, other, ...late], use: [note(read)] });
  const results: Record<string, string[]> = {};
  for (const name of ["ada", "bob"]) {
    const options = { onElicit: () => ({ action: "accept" as const, content: { name } }) };
    const [client, other] = [await first.join(options), await second.join(options)];
    for (const { name } of tools) (results[name] ??= []).push(textOf(await client.callTool(name)));
    for (const { name } of late) (results[name] ??= []).push(textOf(await other.callTool(name)));
  }
  for (const [name, texts] of Object.entries(results)) assertEquals(texts, ["ada", "bob"], name);
}, { perInstance: "ready" });

behaviour("a circuit opens after consecutive failures, and allows one call per interval", async (connect) => {
  const clock = fakeClock();
  const limits: LimitEvent[] = [];
  let [runs, isDown] = [0, true];
  const search = tool({
    name: "search",
    input: z.object({ words: z.boolean().default(false) }),
    use: [circuit({ failures: 3, retryMs: 5000 })],
    run: ({ words }) => {
      runs++;
      if (words) throw new ToolError("nothing found");
      if (isDown) throw new Error("down");
      return "found";
    },
  });
  const { client, takeFaults } = await connect({
    clock,
    handlers: [search],
    observer: { limit: (event) => limits.push(event) },
  });
  const call = async (words = false) => textOf(await client.callTool("search", { words }));
  for (let i = 0; i < 2; i++) await call();
  // A ToolError is a deliberate response, so it does not count as a failure.
  assertEquals(await call(true), "nothing found");
  await call();
  assertEquals(takeFaults().length, 3);
  const refused = await call();
  assertEquals(refused, sentence("search", 3, 5));
  assertEquals([runs, limits[0]?.limit], [4, "handler.circuit"]);
  await clock.advance(4000);
  assertEquals(await call(), sentence("search", 3, 1));
  await clock.advance(1000);
  const failed = await call();
  const [{ id }, ...others] = takeFaults();
  assertEquals([runs, others], [5, []]);
  assertStringIncludes(failed, `${sentence()} (${id})`);
  assertEquals(await call(), sentence("search", 3, 5));
  isDown = false;
  await clock.advance(5000);
  assertEquals([await call(), await call()], ["found", "found"]);
  isDown = true;
  await call();
  assertEquals(takeFaults().length, 1);
  const again = await call();
  assertStringIncludes(again, `${sentence()} (${takeFaults()[0].id})`);
}, { perInstance: "ready" });

behaviour("failures caused by one client do not open the circuit for other clients", async (connect, way) => {
  if (way.transport === "pipe") return;
  const parse = tool({
    name: "parse",
    input: z.object({ text: z.string() }),
    use: [circuit({ failures: 4, retryMs: 5000 })],
    run: ({ text }) => {
      JSON.parse(text);
      return "parsed";
    },
  });
  const { join, takeFaults } = await connect({ clock: fakeClock(), handlers: [parse] });
  const [ada, bob, eve] = await Promise.all(["ada", "bob", "eve"].map((id) => join({ principal: { id } })));
  for (let i = 0; i < 4; i++) await eve.callTool("parse", { text: "{" });
  assertEquals(textOf(await eve.callTool("parse", { text: "1" })), sentence("parse", 4, 5));
  assertEquals(textOf(await ada.callTool("parse", { text: "1" })), "parsed");
  assertEquals(textOf(await eve.callTool("parse", { text: "1" })), sentence("parse", 4, 5));
  for (const each of [bob, bob, bob]) await each.callTool("parse", { text: "{" });
  assertEquals(textOf(await ada.callTool("parse", { text: "1" })), "parsed");
  takeFaults();
}, { perInstance: "ready" });

behaviour("a test call of a tool that asks a question closes the circuit with its answer", async (connect) => {
  const clock = fakeClock();
  let isDown = true;
  const book = tool({
    name: "book",
    use: [circuit({ failures: 2, retryMs: 5000 })],
    run: async (_input, ctx) => {
      const { action } = await ctx.elicit("sure", { message: "Sure?", schema: z.object({}) });
      if (isDown) throw new Error("down");
      return action;
    },
  });
  const { client, takeFaults } = await connect({ clock, handlers: [book] }, {
    onElicit: () => ({ action: "accept", content: {} }),
  });
  const call = async () => textOf(await client.callTool("book"));
  for (let i = 0; i < 2; i++) await call();
  assertEquals(await call(), sentence("book", 2, 5));
  await clock.advance(5000);
  await call();
  assertEquals(takeFaults().length, 3);
  assertEquals(await call(), sentence("book", 2, 5));
  isDown = false;
  await clock.advance(5000);
  assertEquals([await call(), await call()], ["accept", "accept"]);
}, { perInstance: "ready" });

behaviour("a question in a test call does not delay the test calls of other clients", async (connect, way) => {
  if (way.transport === "pipe") return;
  const clock = fakeClock();
  const book = tool({
    name: "book",
    input: z.object({ fails: z.boolean().default(false) }),
    use: [circuit({ failures: 3, retryMs: 5000 })],
    run: async ({ fails }, ctx) => {
      if (fails) throw new Error("down");
      const { action } = await ctx.elicit("sure", { message: "Sure?", schema: z.object({}) });
      return action;
    },
  });
  const { join, takeFaults } = await connect({ clock, handlers: [book] });
  const open = async (id: string) =>
    await join({ principal: { id }, onElicit: () => ({ action: "accept", content: {} }) });
  for (const id of ["eve1", "eve2", "eve3"]) await (await open(id)).callTool("book", { fails: true });
  takeFaults();
  let isAsked = false;
  const dave = await join({
    principal: { id: "dave" },
    onElicit: () => {
      isAsked = true;
      return new Promise<never>(() => {});
    },
  });
  const [bob, cleo] = [await open("bob"), await open("cleo")];
  const silent = new AbortController();
  dave.callTool("book", {}, { signal: silent.signal }).catch(() => {});
  await until(() => isAsked, "the silent client is asked");
  // In older revisions, the call of the silent client is still running.
  if (way.era === "legacy") {
    assertEquals(textOf(await bob.callTool("book")), sentence("book", 3, 5));
    await clock.advance(5000);
  }
  assertEquals(textOf(await bob.callTool("book")), "accept");
  assertEquals(textOf(await cleo.callTool("book")), "accept");
  silent.abort();
}, { perInstance: "ready" });

behaviour("a test call that fails with an error that is not a failure closes the circuit", async (connect) => {
  const clock = fakeClock();
  const errors: Record<string, () => Error> = {
    tool: () => new ToolError("no such city"),
    protocol: () => McpError.invalidParams("no such city"),
    other: () => new RangeError("no such city"),
    failure: () => new Error("down"),
  };
  let runs = 0;
  const search = tool({
    name: "search",
    input: z.object({ error: z.string() }),
    use: [circuit({ failures: 1, retryMs: 5000, errors: (error) => !(error instanceof RangeError) })],
    run: ({ error }) => {
      runs++;
      throw errors[error]();
    },
  });
  const { client, takeFaults } = await connect({ clock, handlers: [search] });
  const call = async (error: string) => await client.callTool("search", { error }).catch(() => {});
  for (const error of ["tool", "protocol", "other", "failure"]) {
    await call("failure");
    await call(error);
    await clock.advance(5000);
    runs = 0;
    for (let i = 0; i < 2; i++) await call(error);
    assertEquals(runs, error === "failure" ? 1 : 2, error);
    await clock.advance(5000);
  }
  takeFaults();
}, { perInstance: "ready" });

behaviour("a timeout counts as a failure, even if the handler never ends", async (connect) => {
  const clock = fakeClock();
  let runs = 0;
  const hang = tool({
    name: "hang",
    use: [circuit({ failures: 1 }), quota({ timeoutMs: 1000 })],
    run: () => {
      runs++;
      return new Promise<string>(() => {});
    },
  });
  const { client } = await connect({ clock, handlers: [hang] });
  const first = client.callTool("hang").catch((error) => String(error));
  await until(() => runs === 1, "the tool runs");
  await clock.advance(1000);
  assertEquals(String(await first), sentence("McpError", 1000, "handler.timeoutMs"));
  assertEquals(textOf(await client.callTool("hang")), sentence("hang", 1, 10));
  assertEquals(runs, 1);
}, { perInstance: "ready" });

behaviour("a cache returns stored results while the circuit is open, and a refusal is not retried", async (connect) => {
  let runs = 0;
  const both = tool({
    name: "both",
    annotations,
    input: z.object({ fails: z.boolean() }),
    use: [cache({ ttlMs: 60_000, shared: true }), retry({ attempts: 3, delayMs: 1 }), circuit({ failures: 2 })],
    run: ({ fails }) => {
      runs++;
      if (fails) throw new Error("down");
      return "up";
    },
  });
  const { client, takeFaults } = await connect({ handlers: [both] });
  assertEquals(textOf(await client.callTool("both", { fails: false })), "up");
  // The third attempt is refused by the open circuit.
  assertEquals(textOf(await client.callTool("both", { fails: true })), sentence("both", 2, 10));
  assertEquals(runs, 3);
  assertEquals(textOf(await client.callTool("both", { fails: false })), "up");
  assertEquals(textOf(await client.callTool("both", { fails: true })), sentence("both", 2, 10));
  assertEquals([runs, takeFaults().length], [3, 0]);
}, { perInstance: "ready" });

Deno.test("invalid combinations of cache, retry and circuit breaker throw when the tool is created", () => {
  const run = () => "";
  const cached = { use: [cache({ ttlMs: 1 })], run };
  const words = sentence('tool "a"', "readOnlyHint");
  assertThrows(() => tool({ name: "a", ...cached }), TypeError, words);
  assertThrows(() => tool({ name: "a", ...cached, annotations: { idempotentHint: true } }), TypeError, words);
  const retried = sentence('tool "a"');
  assertThrows(() => tool({ name: "a", use: [retry()], run }), TypeError, retried);
  assertThrows(
    () => tool({ name: "a", use: [retry()], annotations: { readOnlyHint: false }, run }),
    TypeError,
    retried,
  );
  tool({ name: "a", use: [retry({ unsafe: true })], run });
  for (const name of ["cache", "retry", "circuit", "confirm"]) {
    const options = { name: "a", [name]: circuit(), run };
    assertThrows(() => tool(options as never), TypeError, sentence('tool "a"', `use: [${name}(…)]`));
  }
  for (const wrong of [0, -1, NaN, Infinity, "5"]) {
    assertThrows(() => cache({ ttlMs: wrong as number }), TypeError, sentence("ttlMs", wrong));
    assertThrows(() => retry({ delayMs: wrong as number }), TypeError, sentence("delayMs", wrong));
    assertThrows(() => circuit({ failures: wrong as number }), TypeError, sentence("failures", wrong));
  }
  assertThrows(() => retry({ attempts: 2.5 }), TypeError, sentence("attempts", 2.5));
});

behaviour("an error selector that throws selects no error", async (connect) => {
  let runs = 0;
  const odd = tool({
    name: "odd",
    annotations,
    use: [retry({ attempts: 5, delayMs: 1, errors: (() => Promise.resolve(true)) as never })],
    run: () => {
      runs++;
      throw new Error("down");
    },
  });
  const { client, takeFaults } = await connect({ handlers: [odd] });
  assert((await client.callTool("odd")).isError);
  const [{ error }] = takeFaults();
  assertEquals(String(error), sentence("TypeError", 'tool "odd"', "errors()"));
  assertEquals([runs, String(Object(error).cause)], [1, "Error: down"]);
}, { perInstance: "ready" });
