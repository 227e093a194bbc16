// The contract of extensions: invalid definitions, what servers and clients see of extensions, and the order of
// their layers.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  group,
  McpError,
  type Middleware,
  prompt,
  resource,
  type Result,
  tool,
} from "../../mod.ts";
import type { Next, Redirect, WrappedCall } from "../../src/extensions/extension.ts";
import { clientExtension, connect, connect as connectTo } from "../../src/client/client.ts";
import { type Layer, layer, quota } from "../../src/layers/layers.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, raise, textOf, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { serve, testServer } from "../support/test_server.ts";

const ID = "com.example/audit";
const modern = { eras: ["modern"] } as const;
const declares = { extensions: [clientExtension({ id: ID, subjects: { "audit/get": "day" } })] };
const run = () => ({});
const audit = extension({ id: ID });
/** Returns a layer of `audit` that wraps calls. */
const around = (around: NonNullable<NonNullable<Parameters<typeof audit.layer>[0]>["around"]>) =>
  audit.layer({ around });
/** Returns a tool whose calls a layer of `audit` wraps. */
const wrapped = (wrap: Parameters<typeof around>[0], run: () => unknown = () => {}) =>
  tool({ name: "work", use: [around(wrap)], run: () => run() as string });

const mistakes: readonly [name: string, options: unknown, message: string][] = [
  ["no prefix", { id: "audit" }, sentence("audit", "com.example/audit")],
  ["two slashes", { id: "a/b/c" }, sentence("a/b/c")],
  ["a prefix with a space", { id: "a b/c" }, sentence("a b/c")],
  ["no id", {}, sentence("com.example/audit")],
  ["settings with a function", { id: ID, settings: { a: { b: run } } }, sentence("settings", "b")],
  ["settings with a bigint", { id: ID, settings: { a: 1n } }, sentence("settings")],
  ["settings that contain themselves", { id: ID, settings: toLoop() }, sentence("settings")],
  ["settings that are a list", { id: ID, settings: [] }, sentence("settings")],
  ["a method of the protocol", { id: ID, methods: { "tools/call": { run } } }, sentence("tools/call")],
  ["a method of sessions", { id: ID, methods: { "resources/subscribe": { run } } }, sentence("resources/subscribe")],
  ["a method without a prefix", { id: ID, methods: { audit: { run } } }, sentence("audit", "audit/get")],
  ["a method that is a notification", { id: ID, methods: { "notifications/a": { run } } }, sentence("notifications/a")],
  ["a method without run", { id: ID, methods: { "audit/get": {} } }, sentence("audit/get")],
  [
    "a method with a wrong schema",
    { id: ID, methods: { "audit/get": { params: z.string(), run } } },
    sentence("audit/get"),
  ],
  [
    "a notification of the protocol",
    { id: ID, notifications: { "notifications/cancelled": { run } } },
    sentence("notifications/cancelled"),
  ],
  ["a notification without its prefix", { id: ID, notifications: { "audit/seen": { run } } }, sentence("audit/seen")],
  [
    "a key of the protocol",
    { id: ID, listen: { toolsListChanged: { filter: z.any() } } },
    sentence("toolsListChanged"),
  ],
  [
    "a key that every object inherits",
    { id: ID, listen: { constructor: { filter: z.any() } } },
    sentence("constructor"),
  ],
  ["a key that is not a name", { id: ID, listen: { "a b": { filter: z.any() } } }, sentence("a b", "auditIds")],
];

function toLoop(): Record<string, unknown> {
  const loop: Record<string, unknown> = {};
  loop.loop = loop;
  return loop;
}

for (const [name, options, message] of mistakes) {
  Deno.test(`an extension with ${name} is refused`, () => {
    // The types reject most of these mistakes too.
    assertThrows(() => extension(options as Parameters<typeof extension>[0]), TypeError, message);
  });
}

Deno.test("an extension id can have a reserved prefix, several labels and capital letters", () => {
  for (const id of ["io.modelcontextprotocol/tasks", "a/b", "Com.Exa-mple.x1/My_thing.v2"]) extension({ id });
});

Deno.test("registering an extension twice throws, and so does registering a method twice", () => {
  const one = extension({ id: ID, methods: { "audit/get": { run } } });
  const two = extension({ id: "com.example/other", methods: { "audit/get": { run } } });
  assertThrows(() => serve(one, extension({ id: ID })), TypeError, sentence(ID));
  assertThrows(() => serve(one, two), TypeError, sentence("com.example/other", "audit/get", ID));
});

Deno.test("a handler with a layer of an unregistered extension is refused, and the error names the extension", () => {
  const layer = audit.layer({});
  const work = tool({ name: "work", use: [layer], run: () => {} });
  const message = sentence("work", ID);
  assertThrows(() => serve(work), TypeError, message);
  const page = resource({ uri: "ui://page", name: "page", use: [layer], read: () => "" });
  assertThrows(() => serve(page), TypeError, sentence("ui://page", ID));
  const ask = prompt({ name: "ask", use: [layer], run: () => "" });
  assertThrows(() => serve(ask), TypeError, sentence("ask", ID));
  const server = serve(audit, work);
  assertThrows(() => server.handlers.remove(audit), TypeError, message);
  assertEquals(server.handlers.list().length, 2);
  server.handlers.remove(audit, work);
  assertEquals(server.handlers.list(), []);
});

Deno.test("a layer can register its extension if the extension has only settings", () => {
  const ui = extension({ id: ID, settings: { a: 1 } });
  const register = ui.layer({ registers: true });
  const one = tool({ name: "same", use: [register, ui.layer({ registers: true })], run: () => {} });
  const two = resource({ uri: "same://a", name: "same", use: [register], read: () => "" });
  const three = prompt({ name: "same", use: [register], run: () => "" });
  const other = tool({ name: "other", use: [ui.layer()], run: () => {} });
  const server = serve(one, other, two, three, ui);
  assertEquals(server.handlers.list(), [one, other, two, three, ui]);
  server.handlers.remove(ui, one, three);
  assertEquals(server.handlers.list(), [other, two]);
  assertThrows(() => server.handlers.remove(two), TypeError, sentence("other", ID));
  server.handlers.remove(two, other);
  assertEquals(server.handlers.list(), []);
  const rest: readonly Omit<Parameters<typeof extension>[0], "id">[] = [
    { methods: { "audit/get": { run } } },
    { notifications: { "notifications/audit": { run: () => {} } } },
    { listen: { ids: { filter: z.any() } } },
    { start: () => {} },
  ];
  for (const more of rest) {
    assertThrows(() => extension({ ...more, id: ID }).layer({ registers: true }), TypeError, sentence("registers"));
  }
});

Deno.test("a layer of an extension can check the other handlers", () => {
  const ui = extension({ id: "com.example/ui" });
  const shows = (uri: string) =>
    ui.layer({ verify: ({ has }) => has("resource", uri) ? undefined : `no resource ${uri}` });
  const chart = tool({ name: "chart", use: [shows("ui://chart")], run: () => {} });
  assertThrows(() => serve(ui, chart), TypeError, `${sentence("chart")}: com.example/ui: no resource ui://chart`);
  serve(ui, chart, resource({ uri: "ui://chart", name: "chart", read: () => "" }));
  const needs = (id: string) => ui.layer({ verify: ({ has }) => has("extension", id) ? undefined : `no ${id}` });
  const own = tool({ name: "own", use: [needs("com.example/ui")], run: () => {} });
  // The layer explains how its extension is added, before the server refuses the handler.
  assertThrows(() => serve(own), TypeError, `${sentence("own")}: com.example/ui: no com.example/ui`);
  serve(ui, own);
  const other = tool({ name: "other", use: [needs("com.example/other")], run: () => {} });
  assertThrows(() => serve(ui, other), TypeError, `${sentence("other")}: com.example/ui: no com.example/other`);
});

Deno.test("an extension in `use`, the former option for extensions, and wrong steps of an extension are refused", () => {
  // The cast passes a value of the wrong type on purpose.
  const make = (wrong: unknown) => () => tool({ name: "work", use: wrong as [], run: () => {} });
  for (const wrong of [[audit], [{}], [undefined], [audit.layer({}), {}]]) {
    assertThrows(make(wrong), TypeError, sentence("work", "use"));
  }
  const former = { extensions: [audit.layer()] };
  assertThrows(() => tool({ name: "work", run: () => {}, ...former }), TypeError, sentence("work", "use: [task("));
  assertThrows(() => prompt({ name: "ask", run: () => "", ...former }), TypeError, sentence("ask", "use: [task("));
  assertThrows(
    () => resource({ uri: "a://b", name: "b", read: () => "", ...former }),
    TypeError,
    sentence("a://b", "use: [task("),
  );
  assertThrows(() => group("g", [], former as object), TypeError, sentence('"g"', "use: [task("));
  const wrongs = [{ wrap: run }, { check: run }, { around: 1 }, { verify: 1 }, { warn: 1 }, { list: { a: run } }, {
    required: 1,
  }, { registers: 1 }];
  for (const wrong of wrongs) {
    // The cast passes a value of the wrong type on purpose.
    assertThrows(() => audit.layer(wrong as never), TypeError, sentence(...Object.keys(wrong)));
  }
  const set = audit.layer({ list: { "com.example/a": 1 } });
  assertThrows(make([set, set]), TypeError, sentence("com.example/a", "_meta"));
});

behaviour(
  "settings are deeply merged and sent to clients; in sessions, only the settings of extensions without methods are sent",
  async (connect, { era }) => {
    const { client, server } = await connect({
      handlers: [
        extension({ id: ID, settings: { a: 1 }, methods: { "audit/get": { run } } }),
        extension({ id: "com.example/ui", settings: { b: { c: [2] } } }),
        tool({ name: "work", run: () => {} }),
      ],
    });
    const described = era === "modern" ? await client.request("server/discover") : client.handshake;
    const { extensions, tools } = Object(described?.capabilities);
    const ui = { "com.example/ui": { b: { c: [2] } } };
    assertEquals(extensions, era === "modern" ? { [ID]: { a: 1 }, ...ui } : ui);
    assertEquals(tools, { listChanged: true });
    server.handlers.remove(...server.handlers.list().slice(0, 2));
    if (era === "modern") {
      assertEquals("extensions" in Object((await client.request("server/discover")).capabilities), false);
      await assertRejects(() => client.request("audit/get"), McpError, sentence("audit/get"));
    }
  },
);

behaviour(
  "methods validate their parameters, and their errors are treated like a handler's errors",
  async (connect) => {
    const audit = extension({
      id: ID,
      methods: {
        "audit/get": {
          params: z.strictObject({ day: z.string() }),
          subject: "day",
          run: ({ day }, ctx) => ({ day, caller: ctx.principal?.id, ttlMs: 5, cacheScope: "public" }),
        },
        "audit/fail": {
          run: ({ kind }) => raise(kind ? new McpError(-31001, "own") : new RangeError("secret")),
        },
        "audit/nothing": { run: () => null as unknown as Result }, // Wrong on purpose.
        "audit/ask": { run: async (_params, ctx) => ({ roots: await ctx.roots() }) },
      },
    });
    const { client, takeFaults } = await connect({ handlers: [audit] }, { ...declares, roots: [] });
    const { _meta, ...result } = await client.request("audit/get", { day: "monday" });
    assertEquals(result, { resultType: "complete", day: "monday", ttlMs: 5, cacheScope: "public" });
    const code = async (method: string, params = {}) => {
      const { code, message } = await assertRejects(() => client.request(method, params), McpError);
      return [code, message];
    };
    assertEquals((await code("audit/get", { day: "monday", more: 1 }))[0], -32602);
    assertEquals((await code("audit/get"))[0], -32602);
    assertEquals(await code("audit/fail", { kind: "own" }), [-31001, "own"]);
    assertEquals(await code("audit/fail"), [-32603, sentence()]);
    assertEquals(await code("audit/nothing"), [-32603, sentence()]);
    assertEquals((await code("audit/ask"))[0], -32603);
    assertEquals(takeFaults().map(({ subject }) => subject), ["audit/fail", "audit/nothing", "audit/ask"]);
  },
  modern,
);

behaviour("only an extension can set the resultType of a result", async (connect) => {
  const forged = { resultType: "task", taskId: "1" };
  const { client } = await connect({
    handlers: [
      tool({ name: "plain", run: () => forged }),
      tool({ name: "full", run: () => ({ content: [], ...forged }) }),
      prompt({ name: "ask", run: () => ({ messages: [], ...forged }) }),
      resource({ uri: "a://b", name: "b", read: () => ({ contents: [], ...forged }) as never }), // Forged on purpose.
    ],
    use: [async (_call, next) => ({ ...await next(), _meta: { a: 1 } })],
  }, { extensions: [clientExtension({ id: "com.example/tasks" })] });
  assertEquals((await client.callTool("plain")).resultType, "complete");
  assertEquals((await client.callTool("full")).resultType, "complete");
  assertEquals((await client.getPrompt("ask")).resultType, "complete");
  assertEquals((await client.readResource("a://b")).resultType, "complete");
}, modern);

behaviour("middleware that copies a result preserves its resultType", async (connect) => {
  const work = wrapped((call) => call.result("receipt", { number: 7 }));
  const receipt = {
    schema: z.object({ resultType: z.string(), number: z.number() }),
    finish: ({ number }: { number: number }) => ({ content: [{ type: "text", text: `receipt ${number}` }] }),
  };
  const known = clientExtension({ id: ID, results: { receipt } });
  const { client, join, takeFaults } = await connect({ handlers: [audit, work] }, { extensions: [known] });
  assertEquals(textOf(await client.callTool("work")), "receipt 7");
  const raw = await join({ capabilities: { extensions: { [ID]: {} } } });
  assertEquals((await raw.request("tools/call", { name: "work" })).resultType, "receipt");
  const without = await join({ extensions: [clientExtension({ id: ID })] });
  await assertRejects(() => without.callTool("work"), Error, sentence("receipt"));
  const undeclared = await join();
  await assertRejects(() => undeclared.callTool("work"), McpError, sentence());
  assertEquals(String(takeFaults()[0].error), sentence(ID, "next()"));
}, modern);

behaviour(
  "the first layer of an extension is the outermost, outside of middleware and validation",
  async (connect, { era }) => {
    const order: string[] = [];
    const ui = extension({ id: "com.example/ui" });
    const note = (name: string, of = audit) =>
      of.layer({
        list: { [`com.example/${name}`]: true },
        async around(call, next) {
          order.push(`${name} in`);
          call.untilRun().then(() => order.push(`${name} runs`));
          const result = await next();
          order.push(`${name} out`);
          return { ...result, _meta: { ...Object(result._meta), [name]: call.declared } };
        },
      });
    const handlers = [
      audit,
      ui,
      tool({
        name: "work",
        _meta: { own: 1 },
        input: z.object({ a: z.number() }),
        use: [note("one"), note("two", ui)],
        run: () => void order.push("handler"),
      }),
      resource({ uri: "a://b", name: "b", use: [note("one")], read: () => "text" }),
      prompt({ name: "ask", use: [note("one")], run: () => "text" }),
    ];
    const { client } = await connect({
      handlers,
      use: [(call, next) => {
        if (/call|read|get/.test(call.method)) order.push("middleware");
        return next();
      }],
    }, { capabilities: { extensions: { [ID]: { a: 1 } } } });
    const { _meta } = await client.callTool("work", { a: 1 });
    assertEquals([Object(_meta).one, Object(_meta).two], [{ a: 1 }, undefined]);
    assertEquals(order.filter((entry) => !entry.endsWith("runs")), [
      "one in",
      "two in",
      "middleware",
      "handler",
      "two out",
      "one out",
    ]);
    assertEquals(order.filter((entry) => entry.endsWith("runs")).sort(), ["one runs", "two runs"]);
    order.length = 0;
    assertEquals((await client.callTool("work", { a: "x" })).isError, true);
    assertEquals(order, ["one in", "two in", "middleware", "two out", "one out"]);
    const [listed] = await client.listTools();
    assertEquals(listed._meta, { "com.example/one": true, "com.example/two": true, own: 1 });
    assertEquals((await client.listResources())[0]._meta, { "com.example/one": true });
    assertEquals((await client.listPrompts())[0]._meta, { "com.example/one": true });
    assertEquals(Object((await client.readResource("a://b"))._meta).one, { a: 1 });
    assertEquals(Object((await client.getPrompt("ask"))._meta).one, { a: 1 });
    assert(era);
  },
);

behaviour(
  "a layer of an extension is outermost at every level, also for handlers that are added later",
  async (connect) => {
    const order: string[] = [];
    const note = (name: string) =>
      audit.layer({
        around: async (_call, next) => {
          order.push(name);
          return await next();
        },
      });
    const plain = (name: string): Middleware => async (call, next) => {
      if (/call|read|get/.test(call.method)) order.push(name);
      return await next();
    };
    const around = layer(() => ({ name: "around", around: plain("around") }));
    const make = (name: string) => tool({ name, use: [plain("own"), note("tool")], run: () => "" });
    const { client, server } = await connect({
      handlers: [audit, group("g", [make("work")], { use: [around, note("group")] })],
      use: [plain("middleware"), around, note("server")],
    });
    await client.callTool("g_work");
    const levels = ["server", "group", "tool", "middleware", "around", "around", "own"];
    assertEquals(order.splice(0), levels);
    const page = resource({ uri: "a://b", name: "b", read: () => "text" });
    server.handlers.add(make("late"), page, prompt({ name: "ask", run: () => "text" }));
    await client.callTool("late");
    assertEquals(order.splice(0), levels.filter((name, at) => name !== "group" && at !== 5));
    await client.readResource("a://b");
    await client.getPrompt("ask");
    assertEquals(order, Array(2).fill(["server", "middleware", "around"]).flat());
    assertThrows(() => server.handlers.remove(audit), TypeError, sentence(ID));
  },
);

behaviour("a required layer of a server refuses calls of clients without the extension", async (connect, { era }) => {
  let runs = 0;
  const work = tool({ name: "work", run: () => `${++runs}` });
  const { client, join } = await connect({ handlers: [audit, work], use: [audit.layer({ required: true })] }, declares);
  await client.callTool("work");
  const without = await join();
  const error = await assertRejects(() => without.callTool("work"), McpError, sentence(ID));
  assertEquals([error.code, runs], [era === "modern" ? -32_021 : -32_600, 1]);
});

Deno.test("a method of an extension cannot have a layer of an extension", () => {
  const plain = layer(() => ({ name: "plain", limit: () => {} }));
  const make = (use: readonly Layer[]) => () =>
    extension({ id: "com.example/other", methods: { "other/get": { use, run } } });
  make([plain])();
  for (const use of [[audit.layer()], [audit.layer({ required: true }), plain], [plain, audit.layer()]]) {
    assertThrows(make(use), TypeError, sentence("other/get", ID));
  }
});

Deno.test("a layer of an extension of a server does not stand around handlers that other layers add", () => {
  const large = tool({ name: "large", use: [quota({ resultBytes: 2000, onLarge: "link" })], run: () => "" });
  for (const use of [[task()], [task(), quota({ timeoutMs: 5000 })]]) {
    createServer({ name: "s", version: "1.0.0", handlers: [tasks(), large], use });
  }
});

behaviour("a layer can redirect a call's messages without detaching the call", async (connect) => {
  const said: unknown[] = [];
  const work = tool({
    name: "work",
    use: [around((_call, next) =>
      next({
        progress: (value, { message }) => {
          said.push(["progress", value, message]);
          throw new Error("broken");
        },
        log: (level, data, logger) => void said.push([level, data, logger]),
        ask: ({ key, method }) => {
          said.push([key, method]);
          return Promise.resolve({ roots: [{ uri: "file:///a" }] });
        },
        once: (key) => Promise.resolve(key),
      })
    )],
    async run(_input, ctx) {
      await ctx.progress(1, { message: "half" });
      await ctx.log.error("bad", { logger: "db" });
      await ctx.log.debug("nobody wants this");
      const roots = await ctx.roots();
      return JSON.stringify([roots, await ctx.once("key", () => 1)]);
    },
  });
  const { client, takeFaults } = await connect(
    { handlers: [audit, work] },
    { capabilities: { roots: {} }, logLevel: "error" },
  );
  assertEquals(textOf(await client.callTool("work")), '[[{"uri":"file:///a"}],"key"]');
  assertEquals(said, [["progress", 1, "half"], ["error", "bad", "db"], ["roots", "roots/list"]]);
  assertEquals(client.received, []);
  assertEquals(takeFaults().length, 1);
});

behaviour("a wrap function that returns too early or returns nothing does not affect other calls", async (connect) => {
  let reason: unknown;
  const early = tool({
    name: "early",
    use: [around((_call, next) => {
      next().catch(() => {});
      return { content: [] };
    })],
    run: (_input, { signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          reason = signal.reason;
          reject(signal.reason);
        })
      ),
  });
  const nothing = tool({
    name: "nothing",
    use: [around(() => undefined as unknown as Result)], // Wrong on purpose.
    run: () => {},
  });
  const twice = tool({
    name: "twice",
    use: [around(async (_call, next) => {
      await next();
      return await next();
    })],
    run: () => {},
  });
  const { client, takeFaults } = await connect({ handlers: [audit, early, nothing, twice] });
  await client.callTool("early");
  await until(() => reason !== undefined, "the abort");
  assertEquals(Object(reason).message, sentence("detach()"));
  await assertRejects(() => client.callTool("nothing"), McpError, sentence());
  await assertRejects(() => client.callTool("twice"), McpError, sentence());
  assertEquals(takeFaults().length, 2);
});

behaviour("cancelling the request aborts a handler that a layer wraps", async (connect) => {
  let reason: unknown;
  const work = tool({
    name: "work",
    use: [around((_call, next) => next())],
    run: (_input, { signal }) =>
      new Promise((_, reject) => {
        isRunning = true;
        signal.addEventListener("abort", () => {
          reason = signal.reason;
          reject(signal.reason);
        });
      }),
  });
  let isRunning = false;
  const { client } = await connect({ handlers: [audit, work] });
  const stop = new AbortController();
  const calling = client.callTool("work", {}, { signal: stop.signal });
  until(() => isRunning, "the handler runs").finally(() => stop.abort(new Error("enough")));
  await assertRejects(() => calling, Error, "enough");
  await until(() => reason !== undefined, "the abort");
});

behaviour("detach refuses a timeout that is not a number, because the handler might never end", async (connect) => {
  for (const timeoutMs of ["60000", NaN, 0, null, {}] as never[]) {
    const around = (call: WrappedCall) => (call.detach({ timeoutMs }), { content: [] });
    const work = tool({ name: "work", use: [audit.layer({ around })], run: () => "" });
    const { client, takeFaults } = await connect({ handlers: [audit, work] });
    await assertRejects(() => client.callTool("work"), McpError, sentence());
    assertEquals(`${takeFaults()[0].error}`, sentence("timeoutMs"));
  }
}, modern);

behaviour("the timeout that detach sets counts the time in which the handler waits for answers", async (connect) => {
  // 120,000 is the default timeout of calls, which does not count this time.
  for (const timeoutMs of [60_000, 120_000]) {
    const clock = fakeClock();
    const questions: string[] = [];
    let reason: unknown;
    const around = async (call: WrappedCall, next: Next) => {
      const ask = ({ key }: { readonly key: string }) => {
        questions.push(key);
        return key === "first" ? Promise.resolve({ action: "decline" }) : new Promise(() => {});
      };
      next({ ask }).catch((error) => reason = error);
      await call.untilRun();
      call.detach({ timeoutMs });
      return { content: [] };
    };
    const work = tool({
      name: "work",
      use: [audit.layer({ around })],
      async run(_input, ctx) {
        await ctx.elicit("first", { message: "?", schema: nobody });
        await ctx.elicit("second", { message: "?", schema: nobody });
      },
    });
    const { client, server } = await connect({ handlers: [audit, work], clock }, { capabilities: { elicitation: {} } });
    await client.callTool("work");
    await until(() => questions.length === 2, "the second question");
    await clock.advance(timeoutMs - 1);
    assertEquals([reason, server.stats().detached], [undefined, 1]);
    await clock.advance(1);
    await until(() => reason !== undefined, "the timeout");
    assertEquals([Object(reason).why, server.stats().detached], ["timeout", 0]);
  }
}, { ...modern, transports: ["memory"] });

behaviour("a detached handler can only send redirected messages, and cannot ask the client", async (connect) => {
  const outcomes: unknown[] = [];
  const work = tool({
    name: "work",
    use: [around((call, next) => {
      call.detach();
      next().then((result) => outcomes.push(result), (error) => outcomes.push(error));
      return { content: [] };
    })],
    async run(_input, ctx) {
      await ctx.progress(1);
      await ctx.log.error("late");
      const values = [await ctx.once("key", () => 1), await ctx.once("key", () => 2)];
      const refused = await ctx.roots().then(() => "asked", (error) => error.message);
      return JSON.stringify([values, refused]);
    },
  });
  const { client } = await connect({ handlers: [audit, work] }, { capabilities: { roots: {} }, logLevel: "debug" });
  await client.callTool("work", {}, { onProgress: () => outcomes.push("progress") });
  await until(() => outcomes.length > 0, "the outcome");
  assertEquals(outcomes, [{ content: [{ type: "text", text: `[[1,1],"${sentence("roots")}"]` }] }]);
  assertEquals(client.received, []);
});

behaviour("notifications from a client reach the extension that declares them", async (connect, { era }) => {
  const seen: unknown[] = [];
  const audit = extension({
    id: ID,
    notifications: {
      "notifications/audit/seen": {
        params: z.object({ day: z.string() }),
        async run({ day }, ctx) {
          await Promise.resolve();
          if (day === "fail") throw new Error("secret");
          if (day === "own") throw new McpError(-31001, "dropped");
          seen.push([day, ctx.principal?.id, ctx.method]);
        },
      },
    },
  });
  const { client, join, takeFaults } = await connect({ handlers: [audit] }, declares);
  const send = (day: unknown, from = client) => from.notify("notifications/audit/seen", { day });
  for (const day of ["monday", 7, "own", "fail", "tuesday"]) await send(day);
  await send("undeclared", await join({ extensions: [clientExtension({ id: "com.example/other" })] }));
  await client.notify("notifications/audit/unknown");
  const all = [["monday", undefined, "notifications/audit/seen"], ["tuesday", undefined, "notifications/audit/seen"]];
  if (era === "modern") await until(() => seen.length === 2, "the notifications");
  await client.request(era === "modern" ? "server/discover" : "ping");
  await turn(10);
  assertEquals(seen, era === "modern" ? all : []);
  assertEquals(takeFaults().length, era === "modern" ? 1 : 0);
});

const watched = () => {
  const asked: unknown[] = [];
  const audit = extension({
    id: ID,
    listen: {
      auditIds: {
        filter: z.array(z.string().max(20)),
        async grant(ids, { principal }) {
          asked.push(ids);
          await Promise.resolve();
          if (ids.includes("fail")) throw new Error("secret");
          if (ids.includes("refuse")) throw new McpError(-31001, "refused");
          return principal ? ids.filter((id) => id.startsWith(principal.id)) : undefined;
        },
      },
      auditChanged: { filter: z.literal(true) },
    },
  });
  return { audit, asked };
};

behaviour(
  "a subscription is granted per caller, and gets only the publications that its grant includes",
  async (connect) => {
    const { audit } = watched();
    const { client, join } = await connect({ handlers: [audit] }, { ...declares, principal: { id: "ada" } });
    const mine = await client.subscribe({ extensions: { auditIds: ["ada1", "bo1"], auditChanged: true, other: 1 } });
    assertEquals(mine.granted, { extensions: { auditIds: ["ada1"], auditChanged: true } });
    const anonymous = await join({ ...declares, principal: undefined });
    const nothing = await anonymous.subscribe({ extensions: { auditIds: ["ada1"] } });
    assertEquals(nothing.granted, {});
    const method = "notifications/audit";
    audit.publish("auditIds", { topic: "bo1", method, params: { n: 0 } });
    audit.publish("auditIds", { topic: "ada1", method, params: { n: 1, gone: undefined, _meta: { a: 1 } } });
    audit.publish("auditChanged", { method });
    const news = await mine.take(2);
    assertEquals(news.map(({ params: { _meta, ...params } }) => params), [{ n: 1 }, {}]);
    const ids = news.map(({ params }) => Object(params._meta)["io.modelcontextprotocol/subscriptionId"]);
    assert(ids[0] !== undefined && ids[0] === ids[1]);
    assertEquals(Object(news[0].params._meta).a, 1);
    await mine.close();
    audit.publish("auditIds", { topic: "ada1", method });
    assertEquals([mine.received.length, nothing.received.length], [2, 0]);
  },
  modern,
);

behaviour("a grant of undefined, null or false subscribes to nothing", async (connect) => {
  for (const grant of [undefined, null, false, Promise.resolve(false)]) {
    const feed = extension({ id: ID, listen: { feed: { filter: z.boolean(), grant: () => grant } } });
    const { client } = await connect({ handlers: [feed] }, declares);
    const nothing = await client.subscribe({ toolsListChanged: true, extensions: { feed: true } });
    assertEquals(nothing.granted.extensions, undefined);
    feed.publish("feed", { method: "notifications/feed" });
    await nothing.close();
    assertEquals(nothing.received, []);
  }
}, modern);

behaviour(
  "a grant that JSON cannot represent subscribes to nothing, because JSON would change its value",
  async (connect) => {
    class Granted {
      readonly ids = ["a"];
    }
    const odd: readonly unknown[] = [
      ...[new Set(["a"]), new Map([["a", 1]]), new Granted(), new Error("no"), NaN, Infinity],
      ...[() => true, Symbol("a"), 1n, Response.json({}), { ids: new Set(["a"]) }, { ids: undefined, of: NaN }, [NaN]],
    ];
    for (const grant of odd) {
      const feed = extension({ id: ID, listen: { feed: { filter: z.boolean(), grant: () => grant } } });
      const { client, takeFaults } = await connect({ handlers: [feed] }, declares);
      await assertRejects(() => client.subscribe({ extensions: { feed: true } }), McpError, sentence());
      assertEquals(`${takeFaults()[0].error}`, sentence("feed"));
    }
  },
  modern,
);

Deno.test("a client prints a warning about a notification whose asynchronous handler fails", async () => {
  const { audit } = watched();
  const method = "notifications/audit";
  const warnings: string[] = [];
  const receive = async () => {
    await Promise.resolve();
    throw new Error("no room for it");
  };
  const server = serve(audit);
  await using client = await connectTo("http://localhost/mcp", {
    fetch: server.fetch,
    extensions: [clientExtension({ id: ID, notifications: { [method]: { receive } } })],
    onWarning: (text) => void warnings.push(text),
  });
  await client.subscribe({ extensions: { auditChanged: true } });
  audit.publish("auditChanged", { method });
  await until(() => warnings.length > 0, "the warning");
  assertEquals(warnings, ["no room for it"]);
});

behaviour(
  "a filter that is invalid, too large or not declared is refused as a whole",
  async (connect, { transport }) => {
    const { audit, asked } = watched();
    const limits = testLimits({ streams: { watchedUris: 3 } });
    const { client, join, takeFaults } = await connect({ handlers: [audit], limits }, {
      ...declares,
      principal: { id: "a" },
    });
    const code = async (auditIds: unknown, from = client) => {
      const open = () => from.subscribe({ toolsListChanged: true, extensions: { auditIds } });
      const { code, status } = await assertRejects(open, McpError);
      assertEquals(status, transport === "pipe" ? undefined : code === -32603 ? 200 : 400);
      return code;
    };
    const other = await join({ principal: { id: "a" } });
    assertEquals(await code(["a1"], other), -32021);
    assertEquals(asked, []);
    for (const wrong of [true, null, [1], { __proto__: [] }, ["x".repeat(21)]]) assertEquals(await code(wrong), -32602);
    assertEquals(await code(["a1", "a2", "a3", "a4"]), -32602);
    assertEquals(await code(["refuse"]), -31001);
    assertEquals(await code(["fail"]), -32603);
    assertEquals(takeFaults().length, 1);
    // Keys that every object inherits do not count as keys of an extension.
    const extensions = JSON.parse('{"__proto__": {"auditIds": [1]}, "constructor": 1, "auditIds": ["a1"]}');
    await using open = await client.subscribe({ extensions });
    assertEquals(open.granted, { extensions: { auditIds: ["a1"] } });
  },
  modern,
);

Deno.test("publish refuses unknown keys, undeclared methods, and parameters that are not JSON", () => {
  const { audit } = watched();
  const method = "notifications/audit";
  const refused: readonly (readonly [key: string, event: unknown, message: string])[] = [
    ["nothing", { method }, sentence("nothing", ID, "auditIds", "auditChanged")],
    ["auditIds", { method: "audit" }, sentence("audit", "notifications/")],
    ["auditIds", { method, params: { a: 1n } }, sentence("params")],
    ["auditIds", { method, params: [] }, sentence("params")],
  ];
  for (const [key, event, message] of refused) {
    // The casts pass values of the wrong type on purpose.
    assertThrows(() => audit.publish(key as never, event as never), TypeError, message);
  }
  audit.publish("auditIds", { method });
});

Deno.test("a client that reads slowly gets the newest notification for each topic", async () => {
  const { audit } = watched();
  const server = serve(audit);
  await using client = await connectTest(server, { ...declares, transport: "http", principal: { id: "a" } });
  const subscription = await client.subscribe({ extensions: { auditIds: ["a1", "a2"] } });
  const text = "x".repeat(100_000);
  for (let n = 0; n < 200; n++) {
    for (const topic of ["a1", "a2"]) {
      audit.publish("auditIds", { topic, method: "notifications/a", params: { n, text } });
    }
  }
  await until(
    () => subscription.received.filter(({ params }) => params.n === 199).length === 2,
    "the newest notifications",
  );
  assert(subscription.received.length < 400, "no notification was left out");
});

Deno.test("a detached handler that ignores the server's shutdown ends without an effect", async () => {
  const audit = extension({ id: ID, listen: { auditChanged: { filter: z.boolean() } } });
  const { promise: pass, resolve: open } = Promise.withResolvers<void>();
  const outcomes: unknown[] = [];
  const faults: unknown[] = [];
  const late: unknown[] = [];
  const work = tool({
    name: "work",
    use: [around((call, next) => {
      call.detach();
      next({ progress: (value) => void late.push(value) }).then(
        (result) => outcomes.push(result),
        (error) => outcomes.push(error.message),
      );
      return { content: [] };
    })],
    async run(_input, ctx) {
      await pass;
      await ctx.progress(1);
      audit.publish("auditChanged", { method: "notifications/audit" });
      throw new Error("too late");
    },
  });
  const observer = { fault: ({ error }: { error: unknown }) => void faults.push(error) };
  const limits = { calls: { closeMs: 10 } };
  const server = testServer({ handlers: [audit, work], observer, limits });
  const client = await connectTest(server);
  await client.callTool("work");
  await client.close();
  await server.close();
  assertEquals(outcomes, [sentence()]);
  open();
  // The observer gets the error, because no client does.
  await until(() => faults.length > 0, "the error");
  await turn(5);
  assertEquals([outcomes.length, late, faults.length], [1, [], 1]);
});

Deno.test("while the server is closing, no handler continues after its response", async () => {
  const { promise: pass, resolve: open } = Promise.withResolvers<void>();
  const work = wrapped(async (call, next) => {
    isWrapped = true;
    await pass;
    call.detach();
    return await next();
  });
  let isWrapped = false;
  const server = serve(audit, work);
  const client = await connectTest(server);
  const calling = client.callTool("work");
  const refused = assertRejects(() => calling, McpError, sentence());
  await until(() => isWrapped, "the call");
  const closing = server.close();
  open();
  await refused;
  await client.close();
  await closing;
});

behaviour("an extension and a handler get the reason of a cancellation", async (connect) => {
  const seen: unknown[] = [];
  const running: string[] = [];
  const layer = audit.layer({
    async around(call, next) {
      try {
        assertEquals(call.why, undefined);
        if (call.ctx.params.name === "stopped") call.untilRun().then(() => call.cancel("enough"));
        if (call.ctx.params.name === "detached") {
          const ending = next();
          ending.catch(({ why, code, message }) => seen.push(["detached", call.why, why, code, message]));
          await call.untilRun();
          call.detach({ timeoutMs: 10 });
          return { content: [] };
        }
        return await next();
      } catch (error) {
        const { why, code, message } = Object(error);
        seen.push([call.ctx.params.name, call.why, why, code, message]);
        throw error;
      }
    },
  });
  const wait = (name: string) =>
    tool({
      name,
      use: [layer],
      run(_input, { signal }) {
        running.push(name);
        return new Promise((_, reject) => signal.onabort = () => reject(signal.reason));
      },
    });
  const handlers = [audit, ...["stopped", "slow", "detached", "closing"].map(wait)];
  const { client } = await connect({ handlers }, declares);
  const stopped = await assertRejects(() => client.callTool("stopped"), McpError);
  assertEquals([stopped.code, stopped.message], [-32603, "enough"]);
  const { client: hasty } = await connect({ handlers, limits: { calls: { timeoutMs: 60 } } }, declares);
  await assertRejects(() => hasty.callTool("slow"), McpError);
  await client.callTool("detached");
  await until(() => seen.length === 3, "the detached handler has timed out");
  const { client: other, server } = await connect({ handlers, limits: { calls: { closeMs: 10 } } }, declares);
  const closing = other.callTool("closing").catch(() => {});
  await until(() => running.includes("closing"), "the last call");
  await server.close();
  await closing;
  assertEquals(seen, [
    ["stopped", "extension", "extension", -32603, "enough"],
    ["slow", "timeout", "timeout", -32603, sentence(60, "calls.timeoutMs")],
    ["detached", "timeout", "timeout", -32603, sentence(10, "calls.timeoutMs")],
    ["closing", "closing", "closing", -32603, sentence()],
  ]);
});

const nobody = { type: "object", properties: {} } as const;

behaviour(
  "questions and messages that a handler sends synchronously reach the redirecting function",
  async (connect) => {
    const seen: string[] = [];
    const work = tool({
      name: "work",
      use: [around(async (call, next) => {
        const ending = next({
          progress: (progress) => void seen.push(`progress ${progress}`),
          log: (level) => void seen.push(level),
          ask: ({ key }) => (seen.push(key), Promise.resolve({ action: "decline" })),
        });
        // The layer redirects late, but misses no message.
        await turn(3);
        assertEquals(call.isAsking, false);
        return await ending;
      })],
      async run(_input, ctx) {
        ctx.progress(1);
        ctx.log.error("bad");
        const asked = ctx.elicit("first", { message: "?", schema: nobody });
        return `${(await asked).action}`;
      },
    });
    const { client } = await connect({ handlers: [audit, work] }, {
      capabilities: { elicitation: {} },
      logLevel: "error",
    });
    assertEquals(textOf(await client.callTool("work")), "decline");
    assertEquals(seen, ["progress 1", "error", "first"]);
    assertEquals(client.received, []);
  },
);

behaviour(
  "messages are sent to the client if there is no redirecting function, or if the function passes them on",
  async (connect) => {
    const made: string[] = [];
    const toTool = (name: string, redirect: Redirect) =>
      tool({
        name,
        use: [around((_call, next) => next(redirect))],
        async run(_input, ctx) {
          await ctx.progress(1);
          await ctx.log.error("bad");
          const { action } = await ctx.elicit("ok", { message: "?", schema: nobody });
          // The value is kept across the rounds in which the client is asked.
          const value = await ctx.once("key", () => made.push(name));
          const second = await ctx.elicit("more", { message: "?", schema: nobody });
          return `${action} ${second.action} ${value}`;
        },
      });
    const handlers = [
      audit,
      toTool("partly", {}),
      toTool("through", {
        progress: (_progress, _options, direct) => void direct(),
        log: (_level, _data, _logger, direct) => void direct(),
        ask: (_question, direct) => direct(),
        once: (_key, _make, direct) => direct(),
      }),
    ];
    const onElicit = () => ({ action: "accept" as const, content: {} });
    const { client } = await connect({ handlers }, { onElicit, logLevel: "error" });
    for (const [index, name] of ["partly", "through"].entries()) {
      const reports: number[] = [];
      const result = await client.callTool(name, {}, { onProgress: ({ progress }) => void reports.push(progress) });
      assertEquals(textOf(result), `accept accept ${index + 1}`);
      assert(reports.length > 0 && reports.every((progress) => progress === 1));
      assert(client.received.some(({ method }) => method === "notifications/message"));
    }
    assertEquals(made, ["partly", "through"]);
  },
);

behaviour("a handler that is asking its client cannot be detached", async (connect, { era }) => {
  const seen: unknown[] = [];
  const work = tool({
    name: "work",
    use: [around(async (call, next) => {
      const ending = next();
      ending.catch(() => {});
      await call.untilRun();
      await turn();
      seen.push(call.isAsking);
      if (call.isAsking) {
        assertThrows(() => call.detach(), TypeError, sentence());
        return await ending;
      }
      call.detach();
      return { content: [{ type: "text", text: "ticket" }] };
    })],
    async run(_input, ctx) {
      const { action } = await ctx.elicit("ok", { message: "?", schema: nobody });
      await pass;
      return action;
    },
  });
  const { pass, open } = gate();
  if (era === "legacy") open();
  const asked: unknown[] = [];
  const onElicit = async () => {
    asked.push(1);
    await turn(3);
    return { action: "accept" as const, content: {} };
  };
  const { client } = await connect({ handlers: [audit, work] }, { onElicit });
  // Without sessions, the handler runs again with the answer, and is detached in its second run.
  assertEquals(textOf(await client.callTool("work")), era === "modern" ? "ticket" : "accept");
  assertEquals([seen, asked], [era === "modern" ? [true, false] : [true], [1]]);
  open();
});

behaviour(
  "if a handler repeats a question with the same key, the question reaches the redirecting function once",
  async (connect) => {
    const asked: string[] = [];
    let fails = true;
    const work = tool({
      name: "work",
      use: [around((_call, next) =>
        next({
          async ask({ key }) {
            asked.push(key);
            await turn();
            if (key === "fails" && fails) {
              fails = false;
              throw McpError.invalidRequest("not now");
            }
            return { action: "accept", content: {} };
          },
        })
      )],
      async run(_input, ctx) {
        const ask = (key: string) => ctx.elicit(key, { message: key, schema: nobody });
        await Promise.all([ask("a"), ask("b"), ask("a")]);
        await ask("a");
        await assertRejects(() => ask("fails"), McpError, "not now");
        await ask("fails");
        await assertRejects(() => ctx.elicit("a", { message: "another", schema: nobody }), TypeError, sentence());
        return asked.join();
      },
    });
    const { client } = await connect({ handlers: [audit, work] }, { capabilities: { elicitation: {} } });
    assertEquals(textOf(await client.callTool("work")), "a,b,fails,fails");
  },
);

behaviour("handlers that continue after their response do not occupy the slots of calls", async (connect) => {
  const { pass, open } = gate();
  const work = wrapped((call, next) => {
    call.detach();
    next().catch(() => {});
    return { content: [] };
  }, () => pass);
  const quick = tool({ name: "quick", run: async () => (await turn(), "quick") });
  const limits = { calls: { running: 8, runningPerClient: 2, detached: 40 } };
  const { client } = await connect({ handlers: [audit, work, quick], limits }, declares);
  for (let i = 0; i < 10; i++) await client.callTool("work");
  assertEquals(textOf(await client.callTool("quick")), "quick");
  open();
  await turn(3);
  await client.callTool("work");
}, { transports: ["memory", "pipe"] });

behaviour(
  "an extension that supports sessions also has its methods, notifications and layers in sessions",
  async (connect, { era }) => {
    const noted: unknown[] = [];
    const seen: unknown[] = [];
    const skills = extension({
      id: ID,
      settings: { directoryRead: true },
      sessions: true,
      methods: {
        "audit/get": { params: z.object({ day: z.string() }), subject: "day", run: ({ day }) => ({ day, ttlMs: 5 }) },
        "audit/fail": { run: throwing(new McpError(-31001, "own")) },
      },
      notifications: {
        "notifications/audit/seen": { params: z.object({ day: z.string() }), run: ({ day }) => void noted.push(day) },
      },
      listen: { auditIds: { filter: z.array(z.string()) } },
    });
    const other = extension({
      id: "com.example/other",
      methods: { "other/get": { run } },
      notifications: { "notifications/other": { run: () => void noted.push("other") } },
    });
    const work = tool({
      name: "work",
      use: [skills.layer({
        async around(call, next) {
          seen.push(call.declared !== undefined);
          if (era === "legacy") assertThrows(() => call.result("ticket", {}), TypeError, sentence());
          return await next();
        },
      })],
      run: () => "done",
    });
    const options = { handlers: [skills, other, work] };
    const { client, join } = await connect(options, declares);
    const described = era === "modern" ? await client.request("server/discover") : client.handshake;
    const shown = Object.keys(Object(described?.capabilities).extensions);
    assertEquals(shown, era === "modern" ? [ID, "com.example/other"] : [ID]);
    const { day, ttlMs } = await client.request("audit/get", { day: "monday" });
    assertEquals([day, ttlMs], ["monday", 5]);
    const failed = await assertRejects(() => client.request("audit/fail"), McpError, "own");
    assertEquals(failed.code, -31001);
    assertEquals((await assertRejects(() => client.request("audit/get", { day: 7 }), McpError)).code, -32602);
    const missing = await assertRejects(() => client.request("other/get"), McpError);
    assertEquals(missing.code, era === "modern" ? -32021 : -32601);
    const undeclared = await join();
    const refused = await assertRejects(() => undeclared.request("audit/fail"), McpError);
    assertEquals(refused.code, era === "modern" ? -32021 : -32600);
    await undeclared.callTool("work");
    assertEquals(seen, [false]);
    await client.notify("notifications/audit/seen", { day: "monday" });
    // Without sessions, a notification need not contain the client's capabilities.
    if (era === "legacy") await undeclared.notify("notifications/audit/seen", { day: "monday" });
    await client.notify("notifications/audit/seen", { day: 7 });
    await client.notify("notifications/other");
    await until(() => noted.length > 0, "the notification");
    await client.request("audit/get", { day: "tuesday" });
    await turn(5);
    assertEquals(noted, ["monday"]);
  },
);

behaviour("in sessions, an extension can wrap calls, but cannot set a resultType", async (connect) => {
  const seen: unknown[] = [];
  const audit = extension({ id: ID, sessions: true, methods: { "audit/get": { run } } });
  const work = wrapped((call, next) => {
    seen.push(call.declared);
    assertThrows(() => call.result("ticket", {}), TypeError, sentence());
    return next();
  }, () => "done");
  const { client } = await connect({ handlers: [audit, work] }, declares);
  assertEquals(textOf(await client.callTool("work")), "done");
  assertEquals(seen, [{}]);
}, { eras: ["legacy"] });

Deno.test("calls of a tool with a layer of an extension leave no bytes counted", async () => {
  const wire = extension({ id: "com.example/wire" });
  const slow = tool({
    name: "slow",
    use: [wire.layer({ around: async (_call, next) => await next() })],
    run: () => "done",
  });
  await using server = createServer({ name: "weights", version: "1.0.0", handlers: [slow, wire] });
  await using client = await connect(server, { capabilities: { extensions: { "com.example/wire": {} } } });
  for (let i = 0; i < 20; i++) await client.callTool("slow");
  assertEquals(server.stats().bytes, 0);
});
