// Idempotency keys: a repeated call gets the result of the first call, and the handler runs once.
import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { z } from "zod";
import { createServer, group, McpError, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import type { Context, Middleware, ServerOptions } from "../../mod.ts";
import { guard, idempotent, type Layer, layer } from "../../src/layers/layers.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, gate, started, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";

const ada = { id: "ada" };
const input = z.object({ key: z.string().optional(), amount: z.number().default(1) });

/** Creates a tool that counts its calls and its runs. `run` can wait or throw. */
function counter(run: (count: number, signal: AbortSignal) => unknown = () => {}, ttlMs?: number) {
  const calls: unknown[] = [];
  const runs: number[] = [];
  const counting: Middleware = (call, next) => {
    calls.push(call);
    return next();
  };
  const pay = tool({
    name: "pay",
    input,
    use: [counting, idempotent({ key: ({ key }) => key, ttlMs })],
    async run({ amount }, ctx) {
      runs.push(amount);
      const count = runs.length;
      const returned = await run(count, ctx.signal);
      return returned ?? { count, amount };
    },
  });
  return { pay, calls, runs };
}

/** The tests run without a store and with a store. */
const stores = { memory: () => ({}), "a store": () => ({ store: memoryStore() }) } as const;

async function fails(call: Promise<unknown>): Promise<McpError> {
  return await assertRejects(() => call, McpError);
}

/**
 * Makes two calls with the same key, and cancels the first call while its handler runs and the second call waits.
 * Returns the promise of the second call.
 */
async function cancelFirst(client: Connection, { calls, runs }: ReturnType<typeof counter>) {
  const controller = new AbortController();
  const first = started(client.callTool("pay", { key: "a" }, { signal: controller.signal }));
  await until(() => runs.length === 1, "the first call runs");
  const second = started(client.callTool("pay", { key: "a" }));
  await until(() => calls.length === 2, "the second call waits");
  controller.abort();
  await assertRejects(() => first);
  return () => second;
}

for (const [title, options] of Object.entries(stores)) {
  behaviour(`a repeated call with a key gets the first result: ${title}`, async (join) => {
    const { pay, runs } = counter();
    const { client } = await join({ handlers: [pay], ...options() }, { principal: ada });
    const first = await client.callTool("pay", { key: "a" });
    for (let i = 0; i < 3; i++) assertEquals(await client.callTool("pay", { key: "a" }), first);
    // The input is the same, but its keys are in another order.
    assertEquals(await client.callTool("pay", { amount: 1, key: "a" }), first);
    assertEquals(runs.length, 1);
    assertEquals((await client.callTool("pay", { key: "b" })).structuredContent, { count: 2, amount: 1 });
    for (let i = 0; i < 2; i++) await client.callTool("pay", {});
    assertEquals(runs.length, 4, "a call without a key always runs");
  });

  behaviour(`the same key with another input is refused: ${title}`, async (join) => {
    const { pass, open } = gate();
    const { pay, runs } = counter(() => pass);
    const { client } = await join({ handlers: [pay], ...options() }, { principal: ada });
    const first = started(client.callTool("pay", { key: "a", amount: 5 }));
    await until(() => runs.length === 1, "the first call runs");
    for (const when of ["while it runs", "afterwards"]) {
      const error = await fails(client.callTool("pay", { key: "a", amount: 6 }));
      assertEquals(error.code, -32602, when);
      assertStringIncludes(error.message, sentence('tool "pay"', '"a"'));
      open();
      await first;
    }
    assertEquals(runs, [5]);
  });

  behaviour(`concurrent calls with the same key run the handler once: ${title}`, async (join) => {
    const { pass, open } = gate();
    const { pay, calls, runs } = counter(() => pass);
    const { client } = await join({ handlers: [pay], ...options() }, { principal: ada });
    const results = Array.from({ length: 8 }, () => started(client.callTool("pay", { key: "a" })));
    await until(() => calls.length === 8, "one call runs, and the others wait");
    open();
    const [first, ...others] = await Promise.all(results);
    for (const other of others) assertEquals(other, first);
    assertEquals(runs.length, 1);
  });

  behaviour(`errors are not stored: ${title}`, async (join) => {
    const { pay, runs } = counter((count) => {
      if (count === 1) throw new ToolError("no money");
      if (count === 2) throw McpError.rateLimited("slowly");
      if (count === 3) return { content: [{ type: "text", text: "no bank" }], isError: true };
    });
    const { client } = await join({ handlers: [pay], ...options() }, { principal: ada });
    assertEquals(textOf(await client.callTool("pay", { key: "a" })), "no money");
    assertEquals((await fails(client.callTool("pay", { key: "a" }))).code, -31429);
    assertEquals(textOf(await client.callTool("pay", { key: "a" })), "no bank");
    for (let i = 0; i < 2; i++) {
      assertEquals((await client.callTool("pay", { key: "a" })).structuredContent, { count: 4, amount: 1 });
    }
    assertEquals(runs.length, 4);
  });

  behaviour(`each caller has its own keys: ${title}`, async (join) => {
    const { pay, runs } = counter();
    const { client, join: more } = await join({ handlers: [pay], ...options() }, { principal: ada });
    const bob = await more({ principal: { id: "bob" } });
    const again = await more({ principal: ada });
    const first = await client.callTool("pay", { key: "a" });
    assertEquals((await bob.callTool("pay", { key: "a" })).structuredContent, { count: 2, amount: 1 });
    assertEquals(await again.callTool("pay", { key: "a" }), first);
    assertEquals(runs.length, 2);
  });

  behaviour(
    `a call that elicits releases its key, and continues in the next round: ${title}`,
    async (join) => {
      let runs = 0;
      const made: string[] = [];
      const sell = tool({
        name: "sell",
        input,
        use: [idempotent(({ key }) => key)],
        async run(_input, ctx) {
          runs++;
          const id = await ctx.once("id", () => `order ${runs}`);
          const { action } = await ctx.elicit("sure", { message: "Sell?", schema: z.object({ ok: z.boolean() }) });
          made.push(id);
          return action === "accept" ? `sold ${id}` : "kept";
        },
      });
      const asked: string[] = [];
      const { client } = await join({ handlers: [sell], ...options() }, {
        principal: ada,
        onElicit: ({ message }) => {
          asked.push(message);
          return { action: "accept", content: { ok: true } };
        },
      });
      for (let i = 0; i < 2; i++) assertEquals(textOf(await client.callTool("sell", { key: "a" })), "sold order 1");
      assertEquals([made.length, asked.length], [1, 1]);
    },
  );

  behaviour(`a waiting call runs the handler itself after the first call is cancelled: ${title}`, async (join) => {
    const counted = counter((count, signal) =>
      count === 1
        ? new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
        : undefined
    );
    const { client } = await join({ handlers: [counted.pay], ...options() }, { principal: ada });
    const second = await cancelFirst(client, counted);
    assertEquals((await second()).structuredContent, { count: 2, amount: 1 });
  });

  behaviour(`if the handler of a cancelled call continues, its result is stored: ${title}`, async (join) => {
    const { pass, open } = gate();
    const counted = counter((count) => count === 1 ? pass : undefined);
    const { client } = await join({ handlers: [counted.pay], ...options() }, { principal: ada });
    const second = await cancelFirst(client, counted);
    open();
    assertEquals((await second()).structuredContent, { count: 1, amount: 1 });
    assertEquals(counted.runs.length, 1);
  });

  behaviour(`a handler that continues after its call keeps its key for longer than ttlMs: ${title}`, async (join) => {
    const clock = fakeClock();
    const { pass, open } = gate();
    const counted = counter((count) => count === 1 ? pass : undefined, 900);
    const { client } = await join({ handlers: [counted.pay], clock, ...options() }, { principal: ada });
    const second = await cancelFirst(client, counted);
    for (let passed = 0; passed < 3000; passed += 300) await clock.advance(300);
    open();
    assertEquals((await advanceUntil(clock, 100, second())).structuredContent, { count: 1, amount: 1 });
  });

  behaviour(`a waiting call can be cancelled without ending the first call: ${title}`, async (join) => {
    const { pass, open } = gate();
    const { pay, calls, runs } = counter(() => pass);
    const { client } = await join({ handlers: [pay], ...options() }, { principal: ada });
    const first = started(client.callTool("pay", { key: "a" }));
    await until(() => runs.length === 1, "the first call runs");
    const controller = new AbortController();
    const second = started(client.callTool("pay", { key: "a" }, { signal: controller.signal }));
    await until(() => calls.length === 2, "the second call waits");
    await fails(client.callTool("pay", { key: "a", amount: 2 }));
    controller.abort();
    await assertRejects(() => second);
    open();
    assertEquals((await first).structuredContent, { count: 1, amount: 1 });
  });

  behaviour(`a waiting call has its own timeout: ${title}`, async (join) => {
    const clock = fakeClock();
    const { pass, open } = gate();
    const { pay, runs } = counter(() => pass);
    const limits = { calls: { timeoutMs: 200 } };
    const { client, join: more } = await join({ handlers: [pay], limits, clock, ...options() }, { principal: ada });
    const first = started(client.callTool("pay", { key: "a" }));
    await until(() => runs.length === 1, "the first call runs");
    const other = await more({ principal: ada });
    const pair = Promise.all([fails(first), fails(other.callTool("pay", { key: "a" }))]);
    for (const { message } of await advanceUntil(clock, 200, pair)) {
      assertStringIncludes(message, sentence(200, "calls.timeoutMs"));
    }
    open();
    // The handler continued, so its effect has occurred. Repeat the call, because it times out if another instance has
    // not stored the result yet.
    let last: unknown;
    await until(async () => {
      const call = other.callTool("pay", { key: "a" }).then((result) => result.structuredContent, () => undefined);
      last = await advanceUntil(clock, 100, call);
      return last !== undefined;
    }, "the result");
    assertEquals(last, { count: 1, amount: 1 });
    assertEquals(runs.length, 1);
  });

  behaviour(
    `middleware and guards run for a repeated call too: ${title}`,
    async (join) => {
      const seen: string[] = [];
      const note = (name: string) => async <T>(_call: unknown, next: () => Promise<T>) => {
        seen.push(name);
        return await next();
      };
      let runs = 0;
      const secret = tool({
        name: "secret",
        input,
        use: [
          note("own"),
          idempotent(({ key }) => key),
          guard({ input: [() => void seen.push("input")], output: [() => `${++runs} redacted`] }),
        ],
        run: () => "secret",
      });
      const { client } = await join({ handlers: [secret], use: [note("server")], ...options() }, { principal: ada });
      for (const count of [1, 2, 3]) {
        seen.length = 0;
        assertEquals(textOf(await client.callTool("secret", { key: "a" })), `${count} redacted`);
        assertEquals(seen.filter((name) => name !== "server"), ["input", "own"]);
        assert(seen.includes("server"));
      }
    },
  );

  behaviour(`the output guards process the first value for the caller of each call: ${title}`, async (join) => {
    const counts: Record<string, number> = {};
    const ended: string[] = [];
    const tokens = new Set<unknown>();
    const make = ({ ctx }: { readonly ctx: Context }) => {
      tokens.add(ctx.idempotencyToken);
      return "salary";
    };
    const hidden = service("hidden", make, { per: "call", dispose: () => void ended.push("hidden") });
    const pay = { name: "Ada", salary: 9 };
    const values: Record<string, () => unknown> = {
      plain: () => pay,
      map: () => new Map(Object.entries(pay)),
      media: () => ({ ...pay, photo: new Blob([new Uint8Array([1, 2])], { type: "image/png" }) }),
      full: () => ({ content: [{ type: "text", text: "Ada" }], structuredContent: pay }),
      date: () => new Date(0),
      text: () => "Ada",
      nothing: () => undefined,
    };
    // The guard changes its copy of the value.
    const hide = (value: unknown, name: string) => {
      const { structuredContent } = Object(value);
      delete Object(structuredContent ?? value)[name];
    };
    const use = [idempotent<{ key: string }>(({ key }) => key)];
    const run = (name: string, value: () => unknown) => () => {
      counts[name] = (counts[name] ?? 0) + 1;
      return value() as object;
    };
    const ofLow = (ctx: Context<unknown>, value: () => unknown) => ctx.principal?.plan === "low" ? value() : undefined;
    const key = z.object({ key: z.string() });
    const handlers = Object.entries(values).flatMap(([name, value]) => [
      tool({
        name,
        input: key,
        services: { hidden },
        use: [...use, guard({ output: [(value, ctx) => ofLow(ctx, () => hide(value, ctx.services.hidden))] })],
        run: run(name, value),
      }),
      // Shows what a client gets without a key.
      tool({
        name: `${name}2`,
        input: key,
        use: [guard({ output: [(value, ctx) => ofLow(ctx, () => hide(value, "salary"))] })],
        run: value as () => object,
      }),
    ]);
    const checked = tool({
      name: "checked",
      input: key,
      output: z.object({ name: z.string(), salary: z.number().default(0) }),
      use,
      run: run("checked", () => pay) as () => typeof pay,
    });
    const seen: unknown[] = [];
    const { client: high, join: more } = await join({
      handlers: [...handlers, group("staff", [checked])],
      use: [guard({
        output: [(_value, ctx) => {
          seen.push(ctx.principal?.plan);
          return ofLow(ctx, () => ctx.params.name === "staff_checked" ? { name: "Ada" } : undefined);
        }],
      })],
      ...options(),
    }, { principal: { id: "ada", plan: "high" } });
    const low = await more({ principal: { id: "ada", plan: "low" } });
    for (const name of Object.keys(values)) {
      const clients = [low, high, low, high];
      const calls = clients.map((client) => started(client.callTool(name, { key: "a" })));
      await Promise.all(calls);
      calls.push(...clients.map((client) => started(client.callTool(name, { key: "a" }))));
      for (const [at, client] of [...clients, ...clients].entries()) {
        const result = await calls[at];
        assertEquals(result, await client.callTool(`${name}2`, { key: "a" }), name);
        assertEquals(JSON.stringify(result).includes("salary"), client === high && /plain|map|media|full/.test(name));
      }
      assertEquals(counts[name], 1, name);
    }
    assertEquals(ended.length, 8 * Object.keys(values).length);
    assertEquals([tokens.size, tokens.has(undefined)], [Object.keys(values).length, false]);
    seen.length = 0;
    for (const [client, salary] of [[high, 9], [low, 0], [high, 9]] as const) {
      const { structuredContent } = await client.callTool("staff_checked", { key: "a" });
      assertEquals(structuredContent, { name: "Ada", salary });
    }
    assertEquals([counts.checked, seen], [1, ["high", "low", "high"]]);
  });

  behaviour(`an output guard can refuse the first value to the caller of a repeated call: ${title}`, async (join) => {
    const work = gate();
    const pay = tool({
      name: "pay",
      input,
      use: [
        idempotent(({ key }) => key),
        guard({
          output: [(_value, { principal }) => {
            if (principal?.plan === "low") throw new ToolError("not for you");
          }],
        }),
      ],
      run: () => work.enter().then(() => "paid"),
    });
    const { client: high, join: more } = await join({ handlers: [pay], ...options() }, {
      principal: { id: "ada", plan: "high" },
    });
    const low = await more({ principal: { id: "ada", plan: "low" } });
    const first = started(high.callTool("pay", { key: "a" }));
    await until(() => work.entered === 1, "the first call runs");
    const waiting = started(low.callTool("pay", { key: "a" }));
    work.open();
    assertEquals([textOf(await first), textOf(await waiting)], ["paid", "not for you"]);
    assertEquals(textOf(await low.callTool("pay", { key: "a" })), "not for you");
    assertEquals(textOf(await high.callTool("pay", { key: "a" })), "paid");
    assertEquals(work.entered, 1);
  });
}

behaviour("without a principal, a key is valid within its session or connection", async (join) => {
  const { pay, runs } = counter();
  const { client, join: more } = await join({ handlers: [pay] });
  const first = await client.callTool("pay", { key: "a" });
  assertEquals(await client.callTool("pay", { key: "a" }), first);
  const other = await more();
  await other.callTool("pay", { key: "a" });
  assertEquals(runs.length, 2);
}, { transports: ["pipe"] });

behaviour("over HTTP without a principal, a key is valid within its session", async (join) => {
  const { pay, runs } = counter();
  const { client, join: more } = await join({ handlers: [pay] });
  const first = await client.callTool("pay", { key: "a" });
  assertEquals(await client.callTool("pay", { key: "a" }), first);
  await (await more()).callTool("pay", { key: "a" });
  assertEquals(runs.length, 2);
}, { transports: ["memory", "http"], eras: ["legacy"] });

behaviour("a caller without an identity cannot use a key", async (join) => {
  const { pay, runs } = counter();
  const { client } = await join({ handlers: [pay] });
  const error = await fails(client.callTool("pay", { key: "a" }));
  assertEquals(error.code, -32600);
  assertStringIncludes(error.message, sentence('tool "pay"'));
  assertEquals(runs.length, 0);
  await client.callTool("pay", {});
  assertEquals(runs.length, 1);
}, { transports: ["memory", "http"], eras: ["modern"] });

behaviour("a key that is not a string, is empty or is too long is refused before the handler runs", async (join) => {
  const most: readonly unknown[] = [null, 0, 7, NaN, true, false, {}, [], ["a"], Symbol("a"), 7n];
  const values = [...most, () => "a", new String("a")];
  let runs = 0;
  const pay = tool({
    name: "pay",
    input: z.object({ at: z.number(), late: z.boolean() }),
    // TypeScript rejects such a value; plain JavaScript does not.
    use: [idempotent(({ at, late }) => (late ? Promise.resolve(values[at]) : values[at]) as string)],
    run: () => void runs++,
  });
  const texts: Record<string, string> = { empty: "", long: "x".repeat(257), most: "x".repeat(256), odd: "\ud800" };
  const text = tool({
    name: "text",
    input: z.object({ name: z.string() }),
    use: [idempotent(({ name }) => texts[name])],
    run: () => void runs++,
  });
  const { client, takeFaults } = await join({ handlers: [pay, text] }, { principal: ada });
  for (const at of values.keys()) {
    for (const late of [false, true]) {
      const { isError } = await client.callTool("pay", { at, late });
      assertEquals(isError, true, String(values[at]));
      const [{ error }] = takeFaults();
      assertStringIncludes(String(error), sentence("TypeError", 'tool "pay"'));
    }
  }
  for (const name of ["empty", "long"]) {
    const error = await fails(client.callTool("text", { name }));
    assertEquals(error.code, -32602);
    assertStringIncludes(error.message, sentence(texts[name].length, 256));
  }
  assertEquals(runs, 0);
  for (const name of ["most", "odd", "most", "odd"]) await client.callTool("text", { name });
  assertEquals(runs, 2);
});

behaviour("if the function for the key throws or elicits, the call fails", async (join) => {
  let runs = 0;
  const make = (name: string, key: () => Promise<string>) =>
    tool({
      name,
      use: [idempotent((_input, ctx) =>
        name === "asks" ? ctx.elicit("k", { message: "?", schema: z.object({ k: z.string() }) }).then(String) : key()
      )],
      run: () =>
        void runs++,
    });
  const handlers = [
    make("throws", () => Promise.reject(new ToolError("no key"))),
    make("breaks", () => Promise.reject(new Error("broken"))),
    make("asks", () => Promise.resolve("")),
  ];
  const { client, takeFaults } = await join({ handlers }, { principal: ada });
  assertEquals(textOf(await client.callTool("throws")), "no key");
  assertEquals(takeFaults().length, 0);
  for (const name of ["breaks", "asks"]) {
    assertEquals((await client.callTool(name)).isError, true);
    assertEquals(takeFaults().length, 1);
  }
  assertEquals(runs, 0);
});

Deno.test("inputs that a schema transforms are equal if their raw values or their parsed values are equal", async () => {
  let runs = 0;
  let calls = 0;
  const pay = tool({
    name: "pay",
    input: z.object({
      key: z.string(),
      at: z.string().transform((text) => new Date(text)).optional(),
      tags: z.array(z.string()).transform((tags) => new Set(tags)).optional(),
      unit: z.string().default("EUR"),
      made: z.number().default(() => ++calls),
    }),
    use: [idempotent(({ key }) => key)],
    run: () => ++runs,
  });
  const plain = tool({
    name: "plain",
    input: z.object({ key: z.string(), unit: z.string().default("EUR"), tags: z.array(z.string()).optional() }),
    use: [idempotent(({ key }) => key)],
    run: () => ++runs,
  });
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [pay, plain] });
  await using client = await connectTest(server, { principal: ada });
  const at = "2026-01-01T00:00:00Z";
  for (let i = 0; i < 2; i++) assertEquals(textOf(await client.callTool("pay", { key: "a", at, tags: ["x"] })), "1");
  assertEquals(
    (await fails(client.callTool("pay", { key: "a", at: "2026-01-02T00:00:00Z", tags: ["x"] }))).code,
    -32602,
  );
  assertEquals((await fails(client.callTool("pay", { key: "a", at, tags: ["y"] }))).code, -32602);
  assertEquals(textOf(await client.callTool("plain", { key: "a" })), "2");
  // Properties that the schema drops or adds make no difference.
  assertEquals(textOf(await client.callTool("plain", { unit: "EUR", key: "a", unknown: 1 })), "2");
  assertEquals((await fails(client.callTool("plain", { key: "a", unit: "USD" }))).code, -32602);
});

Deno.test("a server with other output guards refuses to repeat a call", async () => {
  let runs = 0;
  const store = memoryStore();
  const start = async (use: readonly Layer[]) => {
    const keyed = [...use, idempotent<{ key?: string }>(({ key }) => key)];
    const pay = tool({ name: "pay", input, use: keyed, run: () => `paid ${++runs}` });
    const secret = "a secret of at least thirty-two characters";
    const server = closeAtEnd(createServer({ name: "s", version: "1.0.0", handlers: [pay], store, secret }));
    return await connectTest(server, { principal: ada });
  };
  await using open = await start([]);
  await using guarded = await start([
    guard({ output: [(_value, _ctx, part) => part === "result" ? "hidden" : undefined] }),
  ]);
  const call = async (client: Connection, key: string) => textOf(await client.callTool("pay", { key }));
  assertEquals([await call(open, "a"), await call(guarded, "b")], ["paid 1", "hidden"]);
  for (const [client, key] of [[guarded, "a"], [open, "b"]] as const) {
    const { code, message, data } = await fails(client.callTool("pay", { key }));
    assertEquals([code, message, data], [-31409, sentence(), { idempotencyKey: key, outcome: "unknown" }]);
  }
  assertEquals([await call(open, "a"), await call(guarded, "b"), runs], ["paid 1", "hidden", 2]);
});

Deno.test("a key expires after its time to live", async () => {
  const clock = fakeClock();
  const { pay, runs } = counter(undefined, 60_000);
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [pay], clock });
  await using client = await connectTest(server, { principal: ada });
  await client.callTool("pay", { key: "a" });
  await clock.advance(59_000);
  await client.callTool("pay", { key: "a" });
  assertEquals(runs.length, 1);
  await clock.advance(2000);
  await client.callTool("pay", { key: "a" });
  assertEquals(runs.length, 2);
});

Deno.test("a key in a store expires after its time to live", async () => {
  const { pay, runs } = counter(undefined, 200);
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [pay], store: memoryStore() });
  await using client = await connectTest(server, { principal: ada });
  await client.callTool("pay", { key: "a" });
  await until(async () => {
    await client.callTool("pay", { key: "a" });
    return runs.length === 2;
  }, "the key has expired");
});

Deno.test("a key does not expire while its handler runs", async () => {
  const clock = fakeClock();
  const { pass, open } = gate();
  const { pay, runs } = counter(() => pass, 1000);
  const limits = { calls: { timeoutMs: Infinity } };
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [pay], clock, limits });
  await using client = await connectTest(server, { principal: ada, timeoutMs: 60_000 });
  const first = started(client.callTool("pay", { key: "a" }));
  await until(() => runs.length === 1, "the first call runs");
  for (let i = 0; i < 20; i++) await clock.advance(200);
  const second = started(client.callTool("pay", { key: "a" }));
  open();
  assertEquals(await second, await first);
  assertEquals(runs.length, 1);
});

Deno.test("middleware that changes the result of a repeated call does not change the stored result", async () => {
  const { pay } = counter();
  const results: unknown[] = [];
  await using server = createServer({
    name: "s",
    version: "1.0.0",
    handlers: [pay],
    use: [async (_call, next) => {
      const result = await next();
      results.push(result);
      return Object.assign(result, { _meta: { n: results.length } });
    }],
  });
  await using client = await connectTest(server, { principal: ada, era: "modern" });
  const call = async () => (await client.callTool("pay", { key: "a" }))._meta;
  const metas = [await call(), await call(), await call()];
  assertEquals(new Set(metas.map((meta) => JSON.stringify(meta))).size, 3);
  assertNotStrictEquals(results.at(-1), results.at(-2));
});

Deno.test("tools of one server have separate keys, also within groups", async () => {
  const { pay, runs } = counter();
  const both = [group("one", [pay]), group("two", [pay])];
  await using server = createServer({ name: "s", version: "1.0.0", handlers: both });
  await using client = await connectTest(server, { principal: ada });
  const tools = await client.listTools();
  for (const { name } of [...tools, ...tools]) await client.callTool(name, { key: "a" });
  assertEquals([tools.length, runs.length], [2, 2]);
});

for (const [title, options] of Object.entries(stores)) {
  behaviour(`a repeated call needs the rights to what the handler has called (${title})`, async (connect) => {
    const scoped = tool({ name: "scoped", scopes: ["vault"], run: () => "the secret" });
    const hidden = tool({
      name: "hidden",
      allow: ({ principal }) => principal?.staff === true,
      run: () => "the secret",
    });
    const vault = resource({ uri: "vault://one", name: "vault", scopes: ["vault"], read: () => "the secret" });
    const nested = tool({ name: "nested", run: async (_input, ctx) => textOf(await ctx.callTool("scoped")) });
    let runs = 0;
    const calls: Record<string, (ctx: Context) => Promise<unknown>> = {
      scoped: (ctx) => ctx.callTool("scoped"),
      hidden: (ctx) => ctx.callTool("hidden"),
      nested: (ctx) => ctx.callTool("nested"),
      vault: (ctx) => ctx.readResource("vault://one"),
      list: (ctx) => ctx.list("tools"),
    };
    const make = (name: string, guards: readonly Layer[]) =>
      tool({
        name,
        input: z.object({ key: z.string() }),
        use: [idempotent({ key: ({ key }) => key }), ...guards],
        run: async ({ key }, ctx) => {
          runs++;
          return JSON.stringify(await calls[key](ctx));
        },
      });
    const names = ["plain", "guarded"];
    const outer = [make("plain", []), make("guarded", [guard({ output: [(output) => output] })])];
    const strong = { principal: { id: "ada", scopes: ["vault"], staff: true } };
    const { client, join } = await connect(
      { handlers: [scoped, hidden, nested, vault, ...outer], ...options() },
      strong,
    );
    const weak = await join({ principal: { id: "ada", scopes: [] } });
    for (const name of names) {
      for (const key of Object.keys(calls)) {
        const first = textOf(await client.callTool(name, { key }));
        assertEquals(textOf(await client.callTool(name, { key })), first);
        const before = runs;
        await assertRejects(() => weak.callTool(name, { key }), McpError, undefined, `${name} ${key}`);
        assertEquals(runs, before);
      }
    }
    assertEquals(runs, 2 * Object.keys(calls).length);
  });
}

Deno.test("the idempotency token is the same in each run, and differs between keys and between callers", async () => {
  const tokens: (string | undefined)[] = [];
  const pay = tool({
    name: "pay",
    input,
    use: [idempotent(({ key }) => key)],
    run(_input, { idempotencyToken }) {
      tokens.push(idempotencyToken);
      throw new ToolError("again");
    },
  });
  const options: ServerOptions = { name: "s", version: "1.0.0", handlers: [pay] };
  await using server = createServer(options);
  await using client = await connectTest(server, { principal: ada });
  await using bob = await connectTest(server, { principal: { id: "bob" } });
  for (const key of ["a", "a", "b", undefined]) await client.callTool("pay", { key });
  await bob.callTool("pay", { key: "a" });
  const [first, again, other, none, ofBob] = tokens;
  assert(first && /^[\w-]{43}$/.test(first));
  assertEquals(again, first);
  assertEquals(none, undefined);
  assertEquals(new Set([first, other, ofBob]).size, 3);
});

Deno.test("invalid options of idempotency keys are refused", () => {
  const run = () => "";
  const key = () => "a";
  const refuse = (make: () => unknown, ...parts: string[]) => assertThrows(make, TypeError, sentence(...parts));
  const wrong = (options: unknown) => () => idempotent(options as never); // Wrong on purpose.
  refuse(wrong("a"), "idempotency keys", '"a"');
  refuse(wrong(undefined), "idempotency keys", "undefined");
  refuse(wrong({}), "idempotency keys", "key");
  refuse(wrong({ key: "a" }), "key", '"a"');
  refuse(wrong({ key, rerun: 1 }), "rerun");
  refuse(wrong({ key, rerruns: true }), "rerruns", "rerun");
  for (const ttlMs of [0, -1, NaN, null, "soon", {}]) {
    refuse(() => tool({ name: "pay", use: [wrong({ key, ttlMs })() as Layer], run }), '"pay"', "ttlMs");
  }
  for (const name of ["idempotencyKey", "idempotency"]) {
    refuse(() => tool({ name: "pay", run, ...{ [name]: key } }), '"pay"', name, "idempotent(");
  }
});

Deno.test("a handler has at most one layer with a key, and only a tool can have it", () => {
  const keyed = idempotent(() => "a");
  const own = layer(() => ({ name: "own", key: () => "b" }));
  const pay = tool({ name: "pay", use: [own], run: () => "" });
  const refuse = (make: () => unknown, ...parts: string[]) => assertThrows(make, TypeError, sentence(...parts));
  refuse(() => tool({ name: "pay", use: [keyed, own], run: () => "" }), '"pay"', "idempotent", "own", "key");
  refuse(() => tool({ name: "pay", use: [keyed, keyed], run: () => "" }), '"pay"', "idempotent and idempotent");
  refuse(() => group("g", [pay], { use: [keyed] }), '"g_pay"', "idempotent", "own");
  refuse(() => createServer({ name: "s", version: "1.0.0", handlers: [pay], use: [keyed] }), '"pay"', "own");
  const ask = prompt({ name: "ask", run: () => "" });
  refuse(() => prompt({ name: "ask", use: [keyed], run: () => "" }), '"ask"', "idempotent", "key");
  refuse(() => createServer({ name: "s", version: "1.0.0", handlers: [ask], use: [keyed] }), '"ask"', "key");
  for (const steps of [{ rerun: true }, { ttlMs: 5 }, { rank: "ask" as const }]) {
    const [name] = Object.keys(steps);
    refuse(() => tool({ name: "pay", use: [layer(() => ({ name: "own", ...steps }))], run: () => "" }), "own", name);
  }
});

behaviour("the step key of a layer of a group or a server works for each of its tools", async (connect) => {
  const key = layer<{ readonly key?: string }, unknown, { readonly prefix: string }>(() => ({
    name: "own",
    start: () => ({ prefix: "k" }),
    key: ({ key }, _ctx, { prefix }) => key && prefix + key,
  }));
  const runs = new Map<string, number>();
  const make = (name: string) =>
    tool({
      name,
      input: z.object({ key: z.string().optional() }),
      run: () => runs.set(name, (runs.get(name) ?? 0) + 1).get(name),
    });
  const { client } = await connect(
    { handlers: [make("one"), make("two")], use: [key as Layer] }, // Both tools have the input of the layer.
    { principal: ada },
  );
  for (const name of ["one", "two"]) {
    for (const key of ["a", "a", "b", undefined, undefined]) await client.callTool(name, { key });
  }
  assertEquals([...runs], [["one", 4], ["two", 4]]);
});
