// Layers around handlers: the order of their steps, their state, and handlers that cannot have a step.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  type Context,
  createServer,
  extension,
  group,
  type Middleware,
  onlyMethods,
  prompt,
  resource,
  resourceProvider,
  type Result,
  service,
  tool,
  ToolError,
} from "../../mod.ts";
import {
  cache,
  circuit,
  confirm,
  guard,
  type HandlerInfo,
  idempotent,
  type Layer,
  layer,
  retry,
  type Steps,
} from "../../src/layers/layers.ts";
import { listSteps, listWarnings } from "../../src/host.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const annotations = { readOnlyHint: true };

/** Creates a layer that notes when each of its steps begins. */
function noting(
  trace: string[],
  name: string,
  steps: readonly string[],
  rank?: Steps["rank"],
): Layer<unknown, unknown> {
  const note = (step: string) => void trace.push(`${step} ${name}`);
  const wrap = (step: string): Middleware => async (_ctx, next) => {
    note(step);
    return await next();
  };
  return layer<unknown, unknown>(() => ({
    name,
    ...steps.includes("limit") && { limit: () => note("limit") },
    ...steps.includes("enter") && {
      enter: async (_call, next) => {
        note("enter");
        return await next();
      },
    },
    ...steps.includes("around") && { around: wrap("around") },
    ...steps.includes("onInput") && { onInput: () => note("onInput") },
    ...steps.includes("inside") && { inside: wrap("inside") },
    ...steps.includes("run") && {
      run: (_run, next) => {
        note("run");
        return next();
      },
    },
    ...steps.includes("onOutput") && { onOutput: (_output, _ctx, part) => note(`onOutput ${part}`) },
    ...steps.includes("result") && {
      result: () => {
        note("result");
        return undefined;
      },
    },
    ...rank && { rank },
  }));
}

const ALL = ["limit", "enter", "around", "onInput", "inside", "run", "onOutput", "result"];

behaviour(
  "the steps of all layers run in the order of the design, whatever the order of the lists",
  async (connect) => {
    const trace: string[] = [];
    const note = (step: string) => void trace.push(step);
    const value = service("value", () => note("services"), { per: "call" });
    const plain = (name: string): Middleware => {
      const middleware: Middleware = async (_ctx, next) => {
        note(`middleware ${name}`);
        return await next();
      };
      return Object.defineProperty(middleware, "name", { value: `middleware ${name}` });
    };
    const noteSchema = (step: string) =>
      z.object({ at: z.number() }).refine(() => {
        note(step);
        return true;
      });
    const wrapping = extension({ id: "com.example/wrap" });
    const all = tool({
      name: "all",
      input: noteSchema("input schema"),
      output: noteSchema("output schema"),
      services: { value },
      use: [
        idempotent(() => {
          note("key");
          return undefined;
        }),
        noting(trace, "tool", ALL),
        plain("tool"),
        guard({ input: [() => note("input guard")], output: [() => note("output guard")] }),
        wrapping.layer({
          around: (_call, next) => {
            note("around extension");
            return next();
          },
        }),
      ],
      run: ({ at }) => {
        note("function");
        return { at };
      },
    });
    const { client, server } = await connect({
      handlers: [wrapping, group("g", [all], { use: [plain("group"), noting(trace, "group", ALL)] })],
      use: [noting(trace, "server", ALL.filter((step) => step !== "run")), plain("server")],
      encoders: [{
        test: (given) => {
          note("encoders");
          return given === trace;
        },
        encode: String,
      }],
    });
    trace.length = 0;
    await client.callTool("g_all", { at: 1 });
    assertEquals(trace.filter((step, at) => step !== trace[at - 1]), [
      "limit server",
      "limit group",
      "limit tool",
      "enter server",
      "enter group",
      "enter tool",
      "around extension",
      "around server",
      "middleware server",
      "around group",
      "around tool",
      "input schema",
      "onInput server",
      "onInput group",
      "onInput tool",
      "input guard",
      "inside server",
      "middleware group",
      "inside group",
      "inside tool",
      "middleware tool",
      "key",
      "services",
      "run group",
      "run tool",
      "function",
      "encoders",
      "output guard",
      "onOutput result tool",
      "onOutput result group",
      "onOutput result server",
      "encoders",
      "output schema",
      "result tool",
      "result group",
      "result server",
    ]);
    assertEquals(
      listSteps(server).map(({ place, steps }) => [place, steps.map(({ step, layer }) => `${step} ${layer}`)]),
      [
        ["tool g_all", [
          "limit server",
          "limit group",
          "limit tool",
          "enter server",
          "enter group",
          "enter tool",
          "around com.example/wrap",
          "around server",
          "around middleware server",
          "around group",
          "around tool",
          "onInput server",
          "onInput group",
          "onInput tool",
          "onInput guard",
          "inside server",
          "inside middleware group",
          "inside group",
          "inside tool",
          "inside middleware tool",
          "key idempotent",
          "run group",
          "run tool",
          "onOutput guard",
          "onOutput tool",
          "onOutput group",
          "onOutput server",
          "result tool",
          "result group",
          "result server",
        ]],
      ],
    );
  },
);

Deno.test("the list of steps names middleware that runs for the handler, and the runs of layers by their rank", () => {
  function own(_ctx: Context, next: () => Promise<Result>) {
    return next();
  }
  const only = onlyMethods(["tools/call"], own);
  const run = () => "";
  const server = openServer({
    handlers: [
      tool({ name: "plain", run }),
      tool({ name: "reads", annotations, use: [retry(), own, circuit(), cache({ ttlMs: 5 }), confirm("?")], run }),
      prompt({ name: "ask", use: [own, (_ctx, next) => next()], run }),
      resource({ uri: "a://b", name: "b", read: run }),
    ],
    use: [only],
  });
  const list = () =>
    listSteps(server).map(({ place, steps }) => [place, ...steps.map((each) => Object.values(each).join(" "))]);
  assertEquals(list(), [
    ["tool plain", "around own"],
    ["tool reads", "around own", "inside own", "run confirm", "run cache", "run retry", "run circuit"],
    ["prompt ask", "inside own", "inside middleware"],
    ["resource a://b"],
  ]);
});

/** Returns all orders of a list. */
function permute<T>(items: readonly T[]): T[][] {
  if (!items.length) return [[]];
  return items.flatMap((item, at) => permute(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

behaviour("no order of the list changes the order of confirm, cache, retry and circuit", async (connect) => {
  const trace: string[] = [];
  let fails = 0;
  const run = () => {
    trace.push("function");
    if (fails-- > 0) throw new Error("down");
    return "up";
  };
  const toTools = () =>
    permute([0, 1, 2, 3, 4]).map((order, i) => {
      const layers = [
        confirm(() => {
          trace.push("ask");
          return "Sure?";
        }),
        cache({ ttlMs: 60_000, shared: true }),
        retry({ attempts: 3, delayMs: 1, maxDelayMs: 1 }),
        circuit({ failures: 2 }),
        noting(trace, "other", ["run"]),
      ];
      return tool({ name: `t${i}`, annotations, use: order.map((at) => layers[at]), run });
    });
  const { client, takeFaults } = await connect({ handlers: toTools() }, {
    onElicit: () => ({ action: "accept", content: {} }),
  });
  const traces = new Set<string>();
  for (let i = 0; i < 120; i++) {
    const name = `t${i}`;
    trace.length = 0;
    fails = 1;
    assertEquals(textOf(await client.callTool(name)), "up");
    // The kept value needs consent, but no run.
    assertEquals(textOf(await client.callTool(name)), "up");
    traces.add(trace.filter((step, at) => step !== "ask" || trace[at - 1] !== "ask").join(", "));
  }
  assertEquals([...traces], ["ask, run other, function, run other, function, ask"]);
  assertEquals(takeFaults(), []);
}, { perInstance: "ready" });

const ranks = ["ask", "reuse", "repeat", "break", undefined] as const;

behaviour("run steps run in the order of their ranks, and equal ranks in the order of the list", async (connect) => {
  const trace: string[] = [];
  const handlers = permute([0, 1, 2, 3, 4]).map((order, i) => {
    const use = order.flatMap((at) => [1, 2].map((no) => noting(trace, `${ranks[at]} ${no}`, ["run"], ranks[at])));
    return tool({ name: `t${i}`, use, run: () => "" });
  });
  const { client } = await connect({ handlers });
  for (const { name } of handlers) {
    trace.length = 0;
    await client.callTool(name);
    assertEquals(trace, ranks.flatMap((rank) => [`run ${rank} 1`, `run ${rank} 2`]));
  }
});

behaviour("a layer of a server stands around the handlers that are added later, which keep their identity", async (
  connect,
) => {
  const trace: string[] = [];
  const early = tool({ name: "early", run: () => "early" });
  const late = tool({ name: "late", run: () => "late" });
  const note = resource({ uri: "note://a", name: "a", read: () => "a" });
  const greet = prompt({ name: "greet", run: () => "Hi" });
  const all = noting(trace, "all", ["onInput", "onOutput"]);
  const { client, server } = await connect({ handlers: [early, note, greet], use: [all] });
  server.handlers.add(late);
  assertEquals(server.handlers.list(), [early, note, greet, late]);
  assert(server.handlers.get("tool", "late") === late);
  for (
    const call of [
      () => client.callTool("early"),
      () => client.callTool("late"),
      () => client.readResource("note://a"),
      () => client.getPrompt("greet"),
    ]
  ) {
    trace.length = 0;
    await call();
    assertEquals(trace, ["onInput all", "onOutput result all"]);
  }
  server.handlers.remove(late);
  assertEquals(server.handlers.list(), [early, note, greet]);
}, { perInstance: "handlers" });

behaviour("a tool of another server can be removed from a server with layers", async (connect) => {
  const trace: string[] = [];
  const distant = tool.from({ name: "distant", inputSchema: { type: "object" } }, () => "far");
  const { client, server } = await connect({ handlers: [distant], use: [noting(trace, "all", ["onInput"])] });
  assertEquals(textOf(await client.callTool("distant")), "far");
  assertEquals(trace, ["onInput all"]);
  server.handlers.remove(distant);
  assertEquals(server.handlers.list(), []);
  await assertRejects(() => client.callTool("distant"));
}, { perInstance: "handlers" });

behaviour("a hidden tool stays hidden if `forCaller` describes it", async (connect) => {
  const varied = tool({
    name: "varied",
    allow: () => Promise.resolve(false),
    forCaller: () => ({ description: "mine" }),
    run: () => "secret",
  });
  const { client } = await connect({ handlers: [varied] });
  await assertRejects(() => client.callTool("varied"));
});

behaviour("a member of a group keeps its identity on a server with layers", async (connect) => {
  const trace: string[] = [];
  const add = tool({ name: "add", run: () => "added" });
  const notes = group("notes", [add, group("inner", [tool({ name: "clear", run: () => "cleared" })])]);
  const { client, server } = await connect({ handlers: [notes], use: [noting(trace, "all", ["onInput"])] });
  const [added, inner] = notes.handlers;
  const [cleared] = Object(inner).handlers;
  const { handlers } = server;
  const find = () => [
    handlers.get("group", "notes"),
    handlers.get("tool", "notes_add"),
    handlers.get("group", "notes_inner"),
    handlers.get("tool", "notes_inner_clear"),
  ];
  const same = (found: readonly unknown[], expected: readonly unknown[]) =>
    assertEquals(found.map((each, at) => each === expected[at]), expected.map(() => true));
  same(find(), [notes, added, inner, cleared]);
  handlers.remove(handlers.get("tool", "notes_add"));
  same(find(), [notes, undefined, inner, cleared]);
  handlers.add(added);
  same(find(), [notes, added, inner, cleared]);
  assertEquals(textOf(await client.callTool("notes_add")), "added");
  assertEquals(textOf(await client.callTool("notes_inner_clear")), "cleared");
  assertEquals(trace, ["onInput all", "onInput all"]);
}, { perInstance: "handlers" });

behaviour("around of a server runs for its methods only, and of a handler for its calls", async (connect) => {
  const trace: string[] = [];
  const only = layer(() => ({
    name: "only",
    methods: ["tools/call"],
    around: async (ctx, next) => {
      trace.push(ctx.method);
      return await next();
    },
  }));
  const one = tool({ name: "one", use: [noting(trace, "one", ["around"])], run: () => "1" });
  const two = tool({ name: "two", run: () => "2" });
  const { client } = await connect({ handlers: [one, two], use: [only] });
  await client.listTools();
  await client.callTool("two");
  await client.callTool("one");
  assertEquals(trace, ["tools/call", "tools/call", "around one"]);
});

behaviour("input and output of a layer are checked as those of guards", async (connect) => {
  const strict = layer<{ readonly text: string }>(() => ({
    name: "strict",
    onInput: ({ text }) => {
      if (text === "bad") throw new ToolError("Not this text.");
      if (text === "yes") return true;
      return { text: text.toUpperCase() };
    },
    onOutput: (output) => typeof output === "string" ? output.replace("SECRET", "***") : undefined,
  }));
  const echo = tool({
    name: "echo",
    input: z.object({ text: z.string() }),
    use: [strict],
    run: ({ text }) => text,
  });
  const { client, takeFaults } = await connect({ handlers: [echo] });
  assertEquals(textOf(await client.callTool("echo", { text: "a secret" })), "A ***");
  assertEquals(textOf(await client.callTool("echo", { text: "bad" })), "Not this text.");
  assert((await client.callTool("echo", { text: "yes" })).isError);
  assertEquals(String(takeFaults()[0].error), sentence("TypeError"));
});

behaviour(
  "a layer starts once with the server, its steps get the state, and the server disposes it",
  async (connect) => {
    const events: string[] = [];
    const counting = layer<unknown, unknown, { runs: number } & AsyncDisposable>(({ key }) => ({
      name: "counting",
      start: async ({ store, slot }) => {
        await store?.own.set("started", "yes", { ttlMs: 60_000 });
        events.push(`start ${slot(events, () => ({})) === slot(events, () => ({}))}`);
        return {
          runs: 0,
          [Symbol.asyncDispose]: async () => {
            await Promise.resolve();
            events.push("dispose");
          },
        };
      },
      run: async ({ state }, next) => `${key} ${++state.runs} ${await next()}`,
      onInput: (_input, _ctx, state) => void (state.runs += 10),
    }));
    const one = tool({ name: "one", use: [counting], run: () => "1" });
    const two = tool({ name: "two", use: [counting], run: () => "2" });
    const { client, server } = await connect({
      handlers: [one, group("g", [two])],
      store: memoryStore(),
      secret: "x".repeat(32),
    });
    assertEquals(textOf(await client.callTool("one")), 'tool "one" 11 1');
    assertEquals(textOf(await client.callTool("g_two")), 'tool "g_two" 22 2');
    assertEquals(events, ["start true"]);
    await client.close();
    await server.close();
    assertEquals(events, ["start true", "dispose"]);
  },
  { perInstance: "ready" },
);

behaviour("if a layer cannot start, its calls fail, and the next call starts it again", async (connect) => {
  let starts = 0;
  const flaky = layer<unknown, unknown, string>(() => ({
    name: "flaky",
    start: () => {
      if (++starts < 3) throw new Error("no");
      return "up";
    },
    run: ({ state }) => state,
  }));
  const one = tool({ name: "one", use: [flaky], run: () => "never" });
  const { client, takeFaults } = await connect({ handlers: [one] });
  for (let failed = true; failed;) failed = (await client.callTool("one")).isError === true;
  assertEquals(textOf(await client.callTool("one")), "up");
  assertEquals(starts, 3);
  for (const { error } of takeFaults()) assertEquals(String(error), "Error: no");
}, { perInstance: "ready" });

behaviour("a layer of a server may have steps only for some kinds or names of handlers", async (connect) => {
  const trace: string[] = [];
  const noted = (name: string, steps: readonly string[], when: (handler: HandlerInfo) => boolean) =>
    layer<unknown, unknown, never>((handler) => when(handler) ? noting(trace, name, steps)(handler) : { name });
  const use = [
    noted("tools", ["onInput", "around", "inside", "run"], ({ kind }) => kind === "tool"),
    noted("named", ["onInput"], ({ name }) => name === "one" || name === "note://a"),
    noted("late", ["inside"], ({ name }) => name === "late"),
    layer<unknown, unknown, never>((handler) =>
      noting(trace, "all", handler.kind === "server" ? ["around"] : ["around", "onInput"])(handler)
    ),
  ];
  const [one, two] = ["one", "two"].map((name) => tool({ name, run: () => name }));
  const note = resource({ uri: "note://a", name: "a", read: () => "a" });
  const { client, server } = await connect({ handlers: [group("g", [two]), one, note], use });
  server.handlers.add(tool({ name: "late", run: () => "late" }));
  const traceOf = async (call: () => Promise<unknown>) => {
    trace.length = 0;
    await call();
    return trace.join(", ");
  };
  const ofTools = "around all, around tools, onInput tools";
  assertEquals(
    await traceOf(() => client.callTool("one")),
    `${ofTools}, onInput named, onInput all, inside tools, run tools`,
  );
  assertEquals(await traceOf(() => client.callTool("g_two")), `${ofTools}, onInput all, inside tools, run tools`);
  assertEquals(
    await traceOf(() => client.callTool("late")),
    `${ofTools}, onInput all, inside tools, inside late, run tools`,
  );
  assertEquals(await traceOf(() => client.readResource("note://a")), "around all, onInput named, onInput all");
  assertEquals(await traceOf(() => client.listTools()), "around all");
}, { perInstance: "handlers" });

behaviour("the handlers of a layer of a server are added once", async (connect) => {
  const extra = tool({ name: "extra", run: () => "extra" });
  const trace: string[] = [];
  const adds = layer(() => ({ name: "adds", handlers: [extra] }));
  const one = tool({ name: "one", run: () => "1" });
  for (const handlers of [[], [one, tool({ name: "two", run: () => "2" })]]) {
    const { client, server } = await connect({ handlers, use: [adds, noting(trace, "all", ["onInput"])] });
    const names = async () => (await client.listTools()).map(({ name }) => name).toSorted();
    assertEquals(await names(), ["extra", ...handlers.map(({ name }) => name)]);
    trace.length = 0;
    assertEquals(textOf(await client.callTool("extra")), "extra");
    assertEquals(trace, ["onInput all"]);
    assertEquals(server.handlers.list(), handlers);
    server.handlers.remove(one);
    assertEquals(await names(), ["extra", ...handlers.slice(1).map(({ name }) => name)]);
  }
}, { perInstance: "handlers" });

behaviour(
  "a handler that several handlers bring is added with the first and removed with the last of them",
  async (connect) => {
    const events: string[] = [];
    const timing = extension({
      id: "com.example/timing",
      start: () => {
        events.push("start");
        return () => void events.push("stop");
      },
    });
    const extra = tool({ name: "extra", run: () => "extra" });
    const adds = layer(() => ({ name: "adds", handlers: [timing, extra] }));
    const one = tool({ name: "one", use: [adds], run: () => "1" });
    const two = tool({ name: "two", use: [adds], run: () => "2" });
    const three = tool({ name: "three", run: () => "3" });
    const { client, server } = await connect({ handlers: [one, group("g", [three], { use: [] })] });
    const names = async () => (await client.listTools()).map(({ name }) => name).toSorted();
    server.handlers.add(two);
    assertEquals(await names(), ["extra", "g_three", "one", "two"]);
    server.handlers.remove(one);
    assertEquals(await names(), ["extra", "g_three", "two"]);
    assertEquals(textOf(await client.callTool("extra")), "extra");
    assertThrows(() => server.handlers.add(extra), TypeError, sentence());
    server.handlers.remove(two);
    assertEquals(await names(), ["g_three"]);
    await server.close();
    assertEquals(events, ["start", "stop"]);
  },
  { perInstance: "handlers" },
);

behaviour("groups and layers of the server also apply to the handlers that a layer adds", async (connect) => {
  const trace: string[] = [];
  const helper = tool({ name: "helper", run: () => "helped" });
  const about = resource({ uri: "about://one", name: "about", read: () => "about one" });
  const outermost = tool({ name: "last", run: () => "last" });
  const nested = tool({
    name: "nested",
    use: [layer(() => ({ name: "more", handlers: [outermost] }))],
    run: () => "n",
  });
  const adds = layer(() => ({ name: "adds", handlers: [helper, about, nested] }));
  const pay = tool({ name: "pay", use: [adds], run: () => "paid" });
  let isAllowed = true;
  const allow = () => isAllowed;
  const inner = group("inner", [pay], { use: [noting(trace, "inner", ["inside", "onInput"])] });
  const outer = group("outer", [inner], { allow, tags: ["money"], use: [noting(trace, "outer", ["inside"])] });
  const { client, server } = await connect({
    handlers: [outer],
    use: [
      layer<unknown, unknown, never>((handler) =>
        noting(trace, "server", handler.name === "outer_inner_helper" ? ["onInput", "inside"] : ["inside"])(handler)
      ),
    ],
  });
  const names = ["helper", "last", "nested", "pay"].map((name) => `outer_inner_${name}`);
  assertEquals((await client.listTools()).map(({ name }) => name).toSorted(), names);
  const calls = names.map((name) => async () => void (await client.callTool(name)));
  calls.push(async () => void (await client.readResource("about://one")));
  for (const [at, call] of calls.entries()) {
    trace.length = 0;
    await call();
    const first = at === 0 ? ["onInput server"] : [];
    assertEquals(trace, [...first, "onInput inner", "inside server", "inside outer", "inside inner"]);
  }
  server.handlers.disable({ tag: "money" });
  assertEquals((await client.listTools()).length, 0);
  server.handlers.enable({ tag: "money" });
  isAllowed = false;
  assertEquals([(await client.listTools()).length, (await client.listResources()).length], [0, 0]);
  for (const call of calls) await assertRejects(call);
  server.handlers.remove(outer);
  isAllowed = true;
  assertEquals([(await client.listTools()).length, (await client.listResources()).length], [0, 0]);
}, { perInstance: "handlers" });

behaviour("layers of extensions stand around no handler that a layer adds", async (connect) => {
  const trace: string[] = [];
  const audit = extension({ id: "com.example/audit" });
  const toNoting = (place: string) =>
    audit.layer({
      around: (call, next) => {
        trace.push(`${place} ${call.handler.name}`);
        return next();
      },
    });
  const helper = tool({ name: "helper", run: () => "helped" });
  const pay = tool({
    name: "pay",
    use: [layer(() => ({ name: "adds", handlers: [helper] }))],
    run: () => "paid",
  });
  const { client } = await connect({
    handlers: [audit, group("shop", [pay], { use: [toNoting("group")] })],
    use: [toNoting("server")],
  });
  assertEquals(textOf(await client.callTool("shop_helper")), "helped");
  assertEquals(trace, []);
  assertEquals(textOf(await client.callTool("shop_pay")), "paid");
  assertEquals(trace, ["server shop_pay", "group shop_pay"]);
}, { perInstance: "handlers" });

behaviour("a layer adds metadata, requirements and handlers to its handler", async (connect, way) => {
  const about = resource({ uri: "about://one", name: "about", read: () => "about one" });
  const described = layer(() => ({
    name: "described",
    list: { "com.example/a": 1, "com.example/b": 2 },
    requires: ["elicitation"],
    handlers: [about],
  }));
  const one = tool({ name: "one", _meta: { "com.example/b": 3 }, use: [described], run: () => "1" });
  const { client, join } = await connect({ handlers: [one] }, { onElicit: () => ({ action: "cancel" }) });
  assertEquals((await client.listTools())[0]._meta, { "com.example/a": 1, "com.example/b": 3 });
  assertEquals((await client.readResource("about://one")).contents.length, 1);
  assertEquals(textOf(await client.callTool("one")), "1");
  const other = await join();
  const error = await other.callTool("one").then(() => undefined, (error) => error);
  assertEquals(error?.code, way.era === "modern" ? -32021 : -32600);
});

Deno.test("layers of a handler, a group and a server check the other handlers, and warn of the handler", () => {
  const needing = (name: string) =>
    layer(({ key }) => ({
      name,
      verify: ({ has, handler }) => {
        assertEquals(handler.key, key);
        return has("tool", "undo") ? undefined : "no tool undo";
      },
      warn: ({ run }) => String(run).includes("fetch") ? `${name} does not see fetch` : undefined,
    }));
  const run = () => fetch("https://example.com").then(String);
  const work = tool({ name: "work", use: [needing("own")], run });
  const page = resource({ uri: "a://b", name: "b", read: () => "" });
  const undo = tool({ name: "undo", run: () => "" });
  const about = { name: "s", version: "1.0.0" };
  const refuse = (make: () => unknown, ...parts: string[]) => assertThrows(make, TypeError, sentence(...parts));
  refuse(() => createServer({ ...about, handlers: [work] }), 'tool "work"', "own: no tool undo");
  refuse(() => createServer({ ...about, handlers: [page], use: [needing("outer")] }), "a://b", "outer: no tool undo");
  const grouped = group("g", [page], { use: [needing("group")] });
  refuse(() => createServer({ ...about, handlers: [grouped] }), "a://b", "group: no tool undo");
  const server = createServer({ ...about, handlers: [work, grouped, undo], use: [needing("outer")] });
  assertEquals(listWarnings(server), [
    { place: "tool work", state: "outer does not see fetch" },
    { place: "tool work", state: "own does not see fetch" },
  ]);
  refuse(() => server.handlers.remove(undo), "no tool undo");
});

Deno.test("a handler that cannot have a step of a layer throws when it is made, and the error names it", () => {
  const cached = cache({ ttlMs: 1000 });
  const read = () => "";
  const run = () => "";
  const noted = noting([], "noted", ["run"]);
  const names = (name: string) => sentence(name);
  assertThrows(() => prompt({ name: "p", use: [noted], run }), TypeError, names('prompt "p"'));
  assertThrows(() => resource({ uri: "a://b", name: "r", use: [noted], read }), TypeError, names('resource "a://b"'));
  assertThrows(
    () => resource({ uri: "a://{b}", name: "r", use: [cached], read }),
    TypeError,
    names('resource "a://{b}"'),
  );
  assertThrows(
    () => resourceProvider({ scheme: "a", name: "r", use: [noted], read }),
    TypeError,
    names('resource "a:"'),
  );
  const fine = tool({ name: "fine", annotations, run });
  const other = tool({ name: "other", run });
  assertThrows(() => group("g", [fine, other], { use: [cached] }), TypeError, names('tool "g_other"'));
  const options = { name: "s", version: "1.0.0", use: [cached] };
  assertThrows(() => createServer({ ...options, handlers: [fine, other] }), TypeError, names('tool "other"'));
  const server = createServer({ ...options, handlers: [fine] });
  assertThrows(() => server.handlers.add(other), TypeError, names('tool "other"'));
  assertEquals(server.handlers.list(), [fine]);
});

Deno.test("a layer with wrong steps throws when its handler is made", () => {
  const make = (steps: unknown) => () => tool({ name: "t", use: [layer(() => steps as never)], run: () => "" });
  for (
    const [at, wrong] of [
      undefined,
      Promise.resolve({ name: "a" }),
      [],
      {},
      { name: "" },
      { name: "a", run: 1 },
      { name: "a", rank: "first", run() {} },
      { name: "a", before() {} },
      { name: "a", methods: ["tools/call"] },
      { name: "a", requires: "elicitation" },
      { name: "a", wrap() {} },
    ].entries()
  ) {
    assertThrows(make(wrong), TypeError, sentence('tool "t"'), `${at}`);
  }
  for (const definition of [{ name: "a" }, undefined]) {
    assertThrows(() => layer(definition as never), TypeError, sentence("layer(() =>"));
  }
  const late = layer(() => ({ name: "late", verify: (async () => await Promise.reject(new Error("late"))) as never }));
  assertThrows(
    () => createServer({ name: "s", version: "1.0.0", handlers: [tool({ name: "t", use: [late], run: () => "" })] }),
    TypeError,
    sentence('tool "t"', "late", "verify"),
  );
  const twice = (value: number) => layer(() => ({ name: `l${value}`, list: { "com.example/a": value } }));
  assertThrows(
    () => tool({ name: "t", use: [twice(1), twice(2)], run: () => "" }),
    TypeError,
    sentence('tool "t"', "l1", "l2"),
  );
});

behaviour("variants of a tool share the layers of the tool", async (connect) => {
  const clock = fakeClock();
  let runs = 0;
  const one = tool({
    name: "one",
    annotations,
    use: [cache({ ttlMs: 1000, shared: true })],
    forCaller: (ctx) => ({ description: ctx.client.info?.name ?? "" }),
    run: () => `${++runs}`,
  });
  const { client, join } = await connect({ clock, handlers: [one] });
  const other = await join();
  assertEquals([textOf(await client.callTool("one")), textOf(await other.callTool("one"))], ["1", "1"]);
}, { perInstance: "ready" });

behaviour("each path of a server with parameters starts its layers, and shares slots", async (connect, way) => {
  if (way.transport !== "memory") return;
  const starts: string[] = [];
  const key = {};
  const shared = layer<unknown, unknown, string>(() => ({
    name: "shared",
    start: ({ slot }) => {
      starts.push("start");
      return `${++slot(key, () => ({ count: 0 })).count}`;
    },
    onInput: (_input, ctx, state) => void starts.push(`${ctx.pathParams().tenant} ${state}`),
  }));
  const one = tool({ name: "one", run: () => "1" });
  const server = openServer({ path: "/:tenant/mcp", handlers: [one], use: [shared] });
  for (const tenant of ["a", "b"]) {
    await using client = await connectTest(server, { pathParams: { tenant } });
    await client.callTool("one");
    await client.callTool("one");
  }
  assertEquals(starts, ["start", "a 1", "a 1", "start", "b 2", "b 2"]);
  await server.close();
  await connect();
});

behaviour("a handler within a layer of the server that starts can be removed and added again", async (connect) => {
  let starts = 0;
  const counted = layer<unknown, unknown, number>(() => ({
    name: "counted",
    start: () => ++starts,
    onOutput: (output, _ctx, _part, state) => `${output} ${state}`,
  }));
  const one = tool({ name: "one", use: [counted], run: () => "1" });
  const { client, server } = await connect({ handlers: [one], use: [counted] });
  assertEquals(textOf(await client.callTool("one")), "1 1 1");
  server.handlers.remove(one);
  assertEquals(server.handlers.list(), []);
  server.handlers.add(one);
  assertEquals(textOf(await client.callTool("one")), "1 1 1");
  assertEquals(starts, 1);
}, { perInstance: "handlers" });

Deno.test("two layers of a server with the same name, place and start are refused", () => {
  const make = () => {
    const counted = layer(() => ({ name: "counted", start: () => 1 }));
    return tool({ name: "one", use: [counted], run: () => "" });
  };
  const handlers = [group("a", [make()]), group("b", [make()])];
  assertThrows(() => createServer({ name: "s", version: "1.0.0", handlers }), TypeError, sentence("counted"));
});

Deno.test("onlyMethods does not take a layer, which says its methods itself", () => {
  assertThrows(() => onlyMethods(["tools/call"], noting([], "a", ["around"]) as never), TypeError, sentence("methods"));
});

behaviour("the steps of a layer see the entry of their handler as lists show it", async (connect) => {
  const seen: unknown[] = [];
  const look = layer(() => ({
    name: "look",
    limit: ({ entry }) => void seen.push(entry),
    enter: ({ entry }, next) => (seen.push(entry), next()),
  }));
  const use = [look];
  const add = tool({ name: "add", description: "Adds", input: z.object({ a: z.number() }), use, run: () => "" });
  const handlers = [
    add,
    group("notes", [tool({ name: "list", title: "List", run: () => "" })], { use }),
    prompt({ name: "ask", description: "Asks", use, run: () => "" }),
    resource({ uri: "note://1", name: "one", use, read: () => "" }),
    resource({ uri: "note://{id}", name: "any", use, read: () => "" }),
  ];
  const { client } = await connect({ handlers, publishSchema: (schema) => ({ ...schema, "x-published": true }) });
  const [tools, prompts] = [await client.listTools(), await client.listPrompts()];
  const [resources, templates] = [await client.listResources(), await client.listResourceTemplates()];
  const check = async (run: () => Promise<unknown>, entry: unknown) => {
    await run();
    const plain = JSON.parse(JSON.stringify(seen.splice(0)));
    assertEquals(plain, [entry, entry]);
  };
  await check(() => client.callTool("add", { a: 1 }), tools.find(({ name }) => name === "add"));
  await check(() => client.callTool("notes_list"), tools.find(({ name }) => name === "notes_list"));
  await check(() => client.getPrompt("ask"), prompts[0]);
  await check(() => client.readResource("note://1"), resources[0]);
  await check(() => client.readResource("note://2"), templates[0]);
});
