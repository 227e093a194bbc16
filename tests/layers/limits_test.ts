// The steps of layers around a whole call, `limit`, `enter` and `result`, and quotas of servers and groups.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  group,
  McpError,
  type Middleware,
  onlyMethods,
  prompt,
  resource,
  tool,
} from "../../mod.ts";
import {
  type HandlerInfo,
  type Layer,
  layer,
  type LayerCall,
  type LayerEntry,
  quota,
  type Steps,
} from "../../src/layers/layers.ts";
import type { CallEvent, LimitEvent, RefusedEvent } from "../../src/observe/observe.ts";
import { type Connection, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, started, textOf, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { ask } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const ID = "com.example/audit";

/** Creates a handler of each kind with a layer, and returns a function that calls all of them. */
function everyKind(use: readonly Layer[]) {
  const audit = extension({
    id: ID,
    sessions: true,
    methods: { "audit/get": { use, run: () => ({ day: "monday" }) } },
  });
  const handlers = [
    audit,
    tool({ name: "t", use, run: () => "t" }),
    resource({ uri: "x://r", name: "r", use, read: () => "r" }),
    prompt({ name: "p", use, run: () => "p" }),
    resource({ uri: "x://{a}/b", name: "a", complete: { a: () => ["a"] }, use, read: () => "a" }),
  ];
  const calls = (client: Connection): readonly (() => Promise<unknown>)[] => [
    () => client.callTool("t"),
    () => client.readResource("x://r"),
    () => client.getPrompt("p"),
    () => client.readResource("x://a/b"),
    () =>
      client.request("completion/complete", {
        ref: { type: "ref/resource", uri: "x://{a}/b" },
        argument: { name: "a", value: "" },
      }),
    () => client.request("audit/get"),
  ];
  return { handlers, calls, declared: { capabilities: { extensions: { [ID]: {} } } } };
}

const KEYS = [
  'tool "t"',
  'resource "x://r"',
  'prompt "p"',
  'resource "x://{a}/b"',
  'completion of resource "x://{a}/b"',
  `audit/get of extension "${ID}"`,
];

for (const isSlow of [false, true]) {
  behaviour(
    `limit refuses calls of every kind of handler before their response starts (${isSlow ? "async" : "sync"})`,
    async (connect, way) => {
      const refused: RefusedEvent[] = [];
      const reached: LimitEvent[] = [];
      const asked: string[] = [];
      let ran = 0;
      let isBusy = false;
      const limited = layer(({ key }) => ({
        name: "limited",
        limit: ({ reachLimit, client, outer, isInternal, hasEnded }) => {
          const decide = () => {
            asked.push(key);
            assert(client && !outer && !isInternal && !hasEnded);
            reachLimit("handler.mine");
            if (isBusy) throw McpError.busy("Not now");
            throw McpError.rateLimited("Too often", { retryAfterMs: 1500 });
          };
          return isSlow ? turn().then(decide) : decide();
        },
        enter: async (_call, next) => {
          ran++;
          return await next();
        },
      }));
      const { handlers, calls, declared } = everyKind([limited]);
      const { client } = await connect({
        handlers,
        use: [async ({ method }, next) => {
          if (asked.length) ran += method.startsWith("notifications/") ? 0 : 1;
          return await next();
        }],
        observer: { refused: (event) => refused.push(event), limit: (event) => reached.push(event) },
      }, declared);
      for (const call of calls(client)) {
        const error = await assertRejects(call, McpError);
        assertEquals([error.code, Object(error.data).retryAfterMs], [-31429, 1500]);
      }
      assertEquals([...asked].sort(), [...KEYS].sort());
      assertEquals(ran, 0);
      const status = way.transport === "pipe" ? undefined : 429;
      assertEquals(refused.map((event) => event.status), KEYS.map(() => status));
      // For the observer, a completion is a call of its resource.
      assertEquals(
        reached.map((event) => [event.limit, event.handler]),
        asked.map((key) => ["handler.mine", key.replace("completion of ", "")]),
      );
      isBusy = true;
      assertEquals((await assertRejects(() => client.callTool("t"), McpError)).code, -31503);
      if (way.transport === "http") assert(client.transcript.some((line) => /^← 429/.test(line)));
    },
    { perInstance: "limits" },
  );
}

behaviour(
  "a call fails if limit returns a value, because its author may expect that the value refuses the call",
  async (
    connect,
  ) => {
    for (const wrong of [false, Promise.resolve(false), null, "no"]) {
      let runs = 0;
      const refusing = layer(() => ({ name: "refusing", limit: () => wrong as never }));
      const one = tool({ name: "one", use: [refusing], run: () => `${runs++}` });
      const { client, takeFaults } = await connect({ handlers: [one] });
      await assertRejects(() => client.callTool("one"), McpError);
      assertEquals(String(takeFaults()[0].error), sentence("refusing"));
      assertEquals(runs, 0);
    }
  },
);

behaviour("a limit that waits does not skip the next limit", async (connect) => {
  const asked: string[] = [];
  const slow = layer(() => ({ name: "slow", limit: async () => void asked.push(await Promise.resolve("slow")) }));
  const strict = layer(() => ({
    name: "strict",
    limit: () => {
      asked.push("strict");
      throw McpError.busy("Not now");
    },
  }));
  const last = layer(() => ({ name: "last", limit: () => void asked.push("last") }));
  const { client } = await connect({ handlers: [tool({ name: "one", use: [slow, strict, last], run: () => "1" })] });
  await assertRejects(() => client.callTool("one"));
  assertEquals(asked, ["slow", "strict"]);
});

behaviour("if a call times out while a limit waits, the next limit does not count it", async (connect) => {
  const { pass, open } = gate();
  const counted: string[] = [];
  const slow = layer(() => ({
    name: "slow",
    async limit() {
      await pass;
      counted.push("slow");
    },
  }));
  const next = layer(() => ({ name: "next", limit: () => void counted.push("next") }));
  const { client } = await connect({
    handlers: [tool({ name: "work", use: [slow, next], run: () => "done" })],
    limits: testLimits({ calls: { timeoutMs: 20 } }),
  });
  await assertRejects(() => client.callTool("work"));
  open();
  await until(() => counted.length > 0, "the first limit has ended");
  await turn();
  assertEquals(counted, ["slow"]);
}, { perInstance: "limits" });

Deno.test("calls that wait for limit hold a slot, and a call that gets no slot is refused", async () => {
  const { pass, open } = gate();
  let asked = 0;
  const slow = layer(() => ({
    name: "slow",
    limit: async () => {
      asked++;
      await pass;
      throw McpError.busy("Not now");
    },
  }));
  const one = tool({ name: "one", use: [slow], run: () => "1" });
  const limits = testLimits({ calls: { running: 2, waiting: 0 } });
  const server = openServer({ handlers: [one], limits });
  const call = () => ask(server, "tools/call", { name: "one" });
  const waiting = [call(), call()];
  await until(() => asked === 2, "two calls wait");
  assertEquals((await call()).error?.message, sentence("calls.running"));
  open();
  for (const { error } of await Promise.all(waiting)) assertEquals(error?.message, "Not now");
  assertEquals(server.stats().running, 0);
});

/** A limit of one call at a time, which anybody can write. `ends` counts the calls that have freed the place. */
function oneAtATime(waits: LayerEntry[] = []) {
  const ends = { count: 0 };
  let last = Promise.resolve();
  const made = layer(() => ({
    name: "one-at-a-time",
    enter: async (call, next) => {
      const before = last;
      last = call.ended;
      waits.push(call);
      call.ended.then(() => ends.count++);
      await before;
      return await next();
    },
  }));
  return { made, ends };
}

behaviour("enter waits for a place, which the call frees when its handler has ended", async (connect) => {
  const { made, ends } = oneAtATime();
  let running = 0;
  let most = 0;
  let pass = gate();
  const work = tool({
    name: "work",
    use: [made],
    run: async () => {
      most = Math.max(most, ++running);
      await pass.pass;
      running--;
      return "done";
    },
  });
  const quick = tool({ name: "quick", use: [made], run: () => "quick" });
  const failing = tool({
    name: "failing",
    use: [made],
    run: () => {
      throw new Error("no");
    },
  });
  const { client, takeFaults } = await connect({ handlers: [work, quick, failing] });
  const stop = new AbortController();
  const first = started(client.callTool("work", {}, { signal: stop.signal }));
  await until(() => running === 1, "the first call runs");
  stop.abort();
  await assertRejects(() => first);
  // The handler ignores its cancellation.
  const second = started(client.callTool("work"));
  await turn();
  assertEquals([ends.count, running], [0, 1]);
  pass.open();
  pass = gate();
  await until(() => running === 1 && ends.count === 1, "the second call runs");
  pass.open();
  assertEquals(textOf(await second), "done");
  assertEquals(textOf(await client.callTool("quick")), "quick");
  await client.callTool("failing");
  assertEquals(textOf(await client.callTool("quick")), "quick");
  assertEquals([most, ends.count], [1, 5]);
  takeFaults();
}, { perInstance: "limits" });

behaviour("a handler within middleware keeps its place until it has ended, although its call was cancelled", async (
  connect,
) => {
  const { pass, open } = gate();
  let running = 0;
  let most = 0;
  const pause: Middleware = async (_ctx, next) => {
    await turn();
    return await next();
  };
  const work = tool({
    name: "work",
    use: [quota({ concurrency: 1 }), pause, layer(() => ({ name: "pause", around: pause, inside: pause }))],
    run: async () => {
      most = Math.max(most, ++running);
      await pass;
      running--;
      return "done";
    },
  });
  const reached: LimitEvent[] = [];
  const calls: CallEvent[] = [];
  const { client } = await connect({
    handlers: [work],
    use: [onlyMethods(["tools/call"], pause)],
    observer: { limit: (event) => reached.push(event), call: (event) => calls.push(event) },
  });
  const stop = new AbortController();
  const first = started(client.callTool("work", {}, { signal: stop.signal }));
  await until(() => running === 1, "the first call runs");
  stop.abort();
  await assertRejects(() => first);
  await until(() => calls.some(({ outcome }) => outcome === "cancelled"), "the server cancels the call");
  const second = started(client.callTool("work"));
  await until(() => reached.length === 1 || most > 1, "the second call waits");
  open();
  assertEquals(textOf(await second), "done");
  assertEquals(most, 1);
}, { perInstance: "limits" });

behaviour("a handler that ignores its cancellation counts as ended after the timeout of its call", async (connect) => {
  const { made, ends } = oneAtATime();
  let runs = 0;
  const hang = tool({
    name: "hang",
    use: [made, quota({ timeoutMs: 500 })],
    run: () => {
      runs++;
      return new Promise<string>(() => {});
    },
  });
  const calls: CallEvent[] = [];
  const { client } = await connect({ handlers: [hang], observer: { call: (event) => calls.push(event) } });
  const stop = new AbortController();
  const first = started(client.callTool("hang", {}, { signal: stop.signal }));
  await until(() => runs === 1, "the call runs");
  stop.abort();
  await assertRejects(() => first);
  await until(() => calls.some(({ method }) => method === "tools/call"), "the server cancels the call");
  await until(() => ends.count === 1, "the place is free");
}, { perInstance: "limits" });

behaviour("the place of a detached handler is free when the handler has ended", async (connect) => {
  const { made, ends } = oneAtATime();
  const { pass, open } = gate();
  const audit = extension({ id: ID });
  const work = tool({
    name: "work",
    use: [
      made,
      audit.layer({
        around: (call, next) => {
          call.detach();
          void next();
          return { content: [{ type: "text", text: "later" }] };
        },
      }),
    ],
    run: async () => {
      await pass;
      return "done";
    },
  });
  const { client } = await connect({ handlers: [audit, work] });
  assertEquals(textOf(await client.callTool("work")), "later");
  await turn();
  assertEquals(ends.count, 0);
  open();
  await until(() => ends.count === 1, "the place is free");
}, { perInstance: "limits" });

behaviour("a layer frees its place if it fails before the handler runs, and for a failed call too", async (connect) => {
  const ended: string[] = [];
  const failing = layer(({ name }) => ({
    name: "failing",
    enter: ({ ended: end }) => {
      end.then(() => ended.push(name));
      throw McpError.busy("Not now");
    },
  }));
  const one = tool({ name: "one", use: [failing], run: () => "1" });
  const { client } = await connect({ handlers: [one] });
  assertEquals((await assertRejects(() => client.callTool("one"), McpError)).code, -31503);
  await until(() => ended.length === 1, "the call has ended");
}, { perInstance: "limits" });

behaviour("limit and enter see whether a handler makes the call", async (connect) => {
  const seen: unknown[] = [];
  const noting = layer(({ name }) => ({
    name: "noting",
    limit: ({ outer, isInternal }) => void seen.push(["limit", name, outer, isInternal]),
    enter: async ({ outer, isInternal }, next) => {
      seen.push(["enter", name, outer, isInternal]);
      return await next();
    },
  }));
  const inner = resource({ uri: "x://inner", name: "inner", use: [noting], read: () => "inner" });
  const refusing = layer(() => ({
    name: "refusing",
    limit: async () => {
      await turn();
      throw McpError.busy("Not now");
    },
  }));
  const refused = resource({ uri: "x://refused", name: "refused", use: [refusing], read: () => "never" });
  const outer = tool({
    name: "outer",
    use: [noting],
    run: async (_input, ctx) => {
      const error = await assertRejects(() => ctx.readResource("x://refused"), McpError);
      assertEquals(error.code, -31503);
      return Object((await ctx.readResource("x://inner"))[0]).text;
    },
  });
  const { client } = await connect({ handlers: [inner, refused, outer] });
  assertEquals(textOf(await client.callTool("outer")), "inner");
  assertEquals(seen, [
    ["limit", "outer", undefined, false],
    ["enter", "outer", undefined, false],
    ["limit", "x://inner", { method: "tools/call", params: { name: "outer" } }, false],
    ["enter", "x://inner", { method: "tools/call", params: { name: "outer" } }, false],
  ]);
});

behaviour("result changes the finished result of every kind of handler, the innermost layer first", async (connect) => {
  const order: string[] = [];
  const noting = (name: string) =>
    layer(() => ({
      name,
      result: async (result: object, { ctx }: LayerCall) => {
        order.push(name);
        await turn();
        return name === "outer" ? { ...result, _meta: { "com.example/by": ctx.method } } : undefined;
      },
    }));
  const { handlers, calls, declared } = everyKind([noting("outer"), noting("inner")]);
  const { client } = await connect({ handlers }, declared);
  for (const call of calls(client)) {
    const { _meta } = Object(await call());
    assert("com.example/by" in Object(_meta), JSON.stringify(_meta));
  }
  assertEquals(order, calls(client).flatMap(() => ["inner", "outer"]));
});

behaviour("a wrong result of a layer fails the call", async (connect) => {
  const wrong = [
    layer(() => ({ name: "wrong", result: () => ({ content: [{ type: "text", text: 1 }] }) })),
    layer(() => ({ name: "wrong", result: () => null as never })),
    layer(() => ({ name: "wrong", enter: async (_call, next) => ({ ...await next(), content: "text" }) })),
    layer(() => ({ name: "wrong", enter: () => undefined as never })),
  ];
  const handlers = wrong.map((use, at) => tool({ name: `t${at}`, use: [use], run: () => "fine" }));
  const { client, takeFaults } = await connect({ handlers });
  for (const { name } of handlers) {
    await assertRejects(() => client.callTool(name), McpError);
    assertEquals(String(takeFaults()[0].error), sentence(name, "wrong"));
  }
});

behaviour("a layer starts for the methods of an extension, whose steps get its state", async (connect) => {
  const counting = layer<unknown, unknown, { calls: number }>(() => ({
    name: "counting",
    start: () => ({ calls: 0 }),
    limit: ({ state }) => void state.calls++,
    result: (result, { state }) => ({ ...result, calls: state.calls }),
  }));
  const run = () => ({});
  const audit = extension({
    id: ID,
    sessions: true,
    methods: { "audit/get": { use: [counting], run }, "audit/put": { use: [counting], run } },
  });
  const { client } = await connect({ handlers: [audit] }, { capabilities: { extensions: { [ID]: {} } } });
  assertEquals((await client.request("audit/get")).calls, 1);
  assertEquals((await client.request("audit/put")).calls, 2);
}, { perInstance: "limits" });

Deno.test("a method of an extension can have only layers with its steps", () => {
  const make = (use: unknown) => () =>
    extension({ id: ID, methods: { "audit/get": { use: use as never, run: () => ({}) } } });
  const run: Steps["run"] = (_run, next) => next();
  for (
    const [step, value] of Object.entries({ run, around: run, inside: run, onInput: run, onOutput: run, list: {} })
  ) {
    assertThrows(
      make([layer(() => ({ name: "wrong", [step]: value }))]),
      TypeError,
      sentence("audit/get", "wrong", step),
    );
  }
  assertThrows(make([(_call: unknown, next: () => unknown) => next()]), TypeError, sentence("audit/get"));
  make([layer(() => ({ name: "fine", run: undefined, limit() {} }))])();
});

Deno.test("a timeout of a layer that is not a number above 0 is refused", () => {
  for (const timeoutMs of [0, -1, NaN, "5", null]) {
    const wrong = layer(() => ({ name: "wrong", timeoutMs: timeoutMs as never }));
    assertThrows(() => tool({ name: "t", use: [wrong], run: () => "" }), TypeError, sentence("t", "timeoutMs"));
  }
});

Deno.test("a layer of a prompt or template is asked for its steps around completion only if it has such steps", () => {
  const seen: string[] = [];
  const make = (name: string, steps: Partial<Steps>) =>
    layer(({ kind, key }: HandlerInfo) => {
      seen.push(`${name} ${kind} ${key}`);
      return { name, ...steps };
    });
  const use = [make("limiting", { limit() {} }), make("inside", { inside: (_ctx, next) => next() })];
  prompt({ name: "p", use, run: () => "" });
  resource({ uri: "x://r", name: "r", use, read: () => "" });
  assertEquals(seen, [
    'limiting prompt prompt "p"',
    'inside prompt prompt "p"',
    'limiting completion completion of prompt "p"',
    'limiting resource resource "x://r"',
    'inside resource resource "x://r"',
  ]);
});

behaviour("a quota of a server or a group limits all of its handlers together", async (connect) => {
  const use = () => [quota({ rate: { calls: 3, perMs: 60_000 } })];
  for (const place of ["server", "group"]) {
    const handlers = [
      tool({ name: "a", run: () => "a" }),
      tool({ name: "b", run: () => "b" }),
      resource({ uri: "x://{a}/b", name: "a", complete: { a: () => ["a"] }, read: () => "r" }),
    ];
    const { client, server } = await connect(
      place === "server" ? { handlers, use: use() } : { handlers: [group("g", handlers, { use: use() })] },
    );
    const start = place === "server" ? "" : "g_";
    await client.callTool(`${start}a`);
    await client.callTool(`${start}b`);
    await client.readResource("x://a/b");
    const complete = () => client.complete({ type: "ref/resource", uri: "x://{a}/b" }, { name: "a", value: "" });
    for (let i = 0; i < 3; i++) await complete();
    for (const call of [() => client.callTool(`${start}a`), () => client.readResource("x://a/b"), complete]) {
      assertEquals((await assertRejects(call, McpError)).code, -31429);
    }
    // A handler that is added later is within the quota of the server. Lists are not limited.
    await client.listTools();
    server.handlers.add(tool({ name: "later", run: () => "later" }));
    const later = await client.callTool("later").then(textOf, ({ code }) => code);
    assertEquals(later, place === "server" ? -31429 : "later");
  }
}, { perInstance: "limits" });

behaviour("a call that can neither run nor wait takes nothing of its client's rate", async (connect) => {
  const { pass, open } = gate();
  let runs = 0;
  const one = tool({
    name: "one",
    use: [quota({ concurrency: { calls: 1, waiting: 0 }, rate: { calls: 2, perMs: 3_600_000 } })],
    run: async () => {
      runs++;
      await pass;
      return "done";
    },
  });
  const { client } = await connect({ handlers: [one] });
  const first = started(client.callTool("one"));
  await until(() => runs === 1, "the first call runs");
  for (let i = 0; i < 3; i++) await assertRejects(() => client.callTool("one"), McpError, "handler.concurrency");
  open();
  assertEquals(textOf(await first), "done");
  assertEquals(textOf(await client.callTool("one")), "done");
  await assertRejects(() => client.callTool("one"), McpError, "handler.rate");
}, { perInstance: "limits" });

behaviour("of several quotas of a handler, each applies, and the shortest timeout", async (connect) => {
  const clock = fakeClock();
  let runs = 0;
  const one = tool({
    name: "one",
    use: [
      quota({ rate: { calls: 2, perMs: 1000 }, timeoutMs: 50 }),
      quota({ rate: { calls: 3, perMs: 3_600_000 }, concurrency: 1, timeoutMs: Infinity }),
    ],
    run: () => `${++runs}`,
  });
  const hang = tool({
    name: "hang",
    use: [quota({ timeoutMs: 5000 }), quota({ timeoutMs: 50 })],
    run: () => new Promise<string>(() => void runs++),
  });
  const { client } = await connect({ clock, handlers: [one, hang] });
  assertEquals(textOf(await client.callTool("one")), "1");
  assertEquals(textOf(await client.callTool("one")), "2");
  await assertRejects(() => client.callTool("one"), McpError, "handler.rate");
  await clock.advance(1000);
  assertEquals(textOf(await client.callTool("one")), "3");
  // The call of the first quota's second was refused before it reached the second quota.
  await assertRejects(() => client.callTool("one"), McpError, "handler.rate");
  const hanging = started(client.callTool("hang"));
  await until(() => runs === 4, "the handler hangs");
  await clock.advance(60);
  await assertRejects(() => hanging, McpError, "handler.timeoutMs");
}, { perInstance: "limits" });

Deno.test("a quota with links is only for servers with tools, and the error names a handler of another kind", () => {
  const options = { name: "s", version: "1.0.0", use: [quota({ resultBytes: 2000, onLarge: "link" })] };
  createServer({ ...options, handlers: [tool({ name: "t", run: () => "" }), tool({ name: "u", run: () => "" })] });
  assertThrows(
    () => createServer({ ...options, handlers: [prompt({ name: "p", run: () => "" })] }),
    TypeError,
    sentence('prompt "p"', "link"),
  );
});

for (const step of ["limit", "enter"] as const) {
  behaviour(`a call of every kind whose ${step} hangs ends after its timeout`, async (connect) => {
    for (const timeoutMs of [undefined, 500]) {
      // The timeout of the handler starts when the call enters its first layer.
      const ms = step === "enter" && timeoutMs || 1000;
      const clock = fakeClock();
      const { pass, open } = gate();
      let hanging = 0;
      let nexts = 0;
      const hang = layer(() => ({
        name: "hang",
        timeoutMs,
        limit: step === "limit" ? () => (hanging++, pass) : undefined,
        enter: async (_call, next) => {
          if (step === "enter") {
            hanging++;
            await pass;
          }
          nexts++;
          return await next();
        },
      }));
      const { handlers, calls, declared } = everyKind([hang]);
      const { client } = await connect({ clock, handlers, limits: { calls: { timeoutMs: 1000 } } }, declared);
      for (const [at, call] of calls(client).entries()) {
        let error: unknown;
        started(call()).catch((reason) => error = reason);
        await until(() => hanging === at + 1, "the step hangs");
        await clock.advance(ms - 100);
        await turn(3);
        assertEquals(error, undefined);
        await clock.advance(100);
        await until(() => error, "the call ends");
        assertEquals(Object(error).message, sentence(`${ms}`, "timeoutMs"));
      }
      open();
      await turn(5);
      assertEquals(nexts, step === "enter" ? 6 : 0);
    }
  }, { perInstance: "limits" });
}
