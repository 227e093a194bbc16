// The places of a quota's `concurrency`: which calls share a place, and when a place is free again.
import { assertEquals, assertRejects } from "@std/assert";
import {
  extension,
  type Handler,
  McpError,
  type Middleware,
  onlyMethods,
  resource,
  type ServerOptions,
  tool,
} from "../../../mod.ts";
import { type Layer, layer, quota } from "../../../src/layers/layers.ts";
import { task, tasks } from "../../../src/extensions/tasks/tasks.ts";
import { taskClient } from "../../../src/extensions/tasks/client/tasks.ts";
import type { CallEvent } from "../../../src/observe/observe.ts";
import { serveStdio } from "../../../src/server/transports/stdio/stdio.ts";
import { fakeClock } from "../../../src/testing/testing.ts";
import { behaviour, gate, started, textOf, turn, until } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";
import { closeAtEnd } from "../../support/running.ts";
import { openServer } from "../../support/servers.ts";

const one = extension({ id: "com.example/one" });
const two = extension({ id: "com.example/two" });

/** A layer of an extension, which passes the call on. */
function around(use: typeof one): Layer {
  return use.layer({ around: async (_call, next) => await next() });
}

/** A handler that works until the gate opens. `most` is the largest number of handlers that ran at the same time. */
function worker() {
  const { pass, open } = gate();
  const seen = { running: 0, most: 0, runs: 0 };
  const run = async () => {
    seen.runs++;
    seen.most = Math.max(seen.most, ++seen.running);
    await pass;
    seen.running--;
    return "done";
  };
  return { seen, open, run };
}

/** Waits for the text of a result. Fails if the result does not arrive. */
async function textWithin(call: Promise<{ readonly content: readonly unknown[] }>, what: string): Promise<string> {
  let text: string | undefined;
  started(call).then((result) => text = textOf(result), (error) => text = String(error));
  await until(() => text !== undefined, what);
  return text ?? "";
}

const SHARING: Readonly<Record<string, readonly Layer[]>> = {
  "a layer of an extension": [around(one)],
  "two layers of extensions": [around(one), around(two)],
  "task()": [task()],
  "task() and other layers": [around(one), task(), around(two)],
};

for (const [name, use] of Object.entries(SHARING)) {
  behaviour(`a handler within ${name} reads resources in its own place`, async (connect) => {
    const handlers = [
      ...[one, two, tasks()],
      resource({ uri: "x://inner", name: "inner", read: () => "inner" }),
      resource({
        uri: "x://outer",
        name: "outer",
        use: [around(one)],
        read: async (_uri, ctx) => Object((await ctx.readResource("x://inner"))[0]).text,
      }),
      tool({ name: "t", use, run: async (_input, ctx) => Object((await ctx.readResource("x://outer"))[0]).text }),
      tool({ name: "other", run: () => "other" }),
    ];
    const { client, join } = await connect({ handlers, use: [quota({ concurrency: 1 })] });
    assertEquals(await textWithin(client.callTool("t"), "the handler reads"), "inner");
    const declared = await join({ extensions: [taskClient()] });
    assertEquals(await textWithin(declared.callTool("t"), "the handler of the task reads"), "inner");
    assertEquals(await textWithin(client.callTool("other"), "the place is free"), "other");
  }, { perInstance: "limits" });
}

behaviour("a read in a handler takes no place and does not wait for a place", async (connect) => {
  const { seen, open, run } = worker();
  const limited = resource({
    uri: "x://r",
    name: "r",
    use: [around(one), quota({ concurrency: { calls: 1, waiting: 0 } })],
    read: run,
  });
  const twice = tool({
    name: "twice",
    use: [around(one)],
    run: async (_input, ctx) => {
      await Promise.all([ctx.readResource("x://r"), ctx.readResource("x://r")]);
      await ctx.readResource("x://r");
    },
  });
  const { client } = await connect({ handlers: [one, limited, twice] });
  const call = started(client.callTool("twice"));
  await until(() => seen.running === 2, "both reads run");
  const read = started(client.readResource("x://r"));
  await until(() => seen.running === 3, "the place is free for a client");
  open();
  await Promise.all([call, read]);
  assertEquals(seen, { running: 0, most: 3, runs: 4 });
}, { perInstance: "limits" });

behaviour(
  "handlers with different quotas read each other's resources and do not wait for each other",
  async (connect) => {
    const names = ["a", "b"];
    const quotas = names.map(() => quota({ concurrency: 1 }));
    let running = 0;
    const { pass, open } = gate();
    const handlers = names.flatMap((name, at) => [
      resource({ uri: `x://${name}`, name, use: [quotas[at]], read: () => name }),
      tool({
        name,
        use: [quotas[at]],
        run: async (_input, ctx) => {
          running++;
          await pass;
          return Object((await ctx.readResource(`x://${names[1 - at]}`))[0]).text;
        },
      }),
    ]);
    const { client } = await connect({ handlers });
    const calls = names.map((name) => started(client.callTool(name)));
    await until(() => running === 2, "both tools run");
    open();
    const texts = await Promise.all(calls.map((call, at) => textWithin(call, `${names[at]} reads`)));
    assertEquals(texts, ["b", "a"]);
  },
  { perInstance: "limits" },
);

/** Where a call can hang between its place and its handler. */
const HANGING: Readonly<
  Record<string, (hang: Middleware) => { readonly server?: ServerOptions["use"]; readonly tool?: readonly Layer[] }>
> = {
  "middleware of the server": (hang) => ({ server: [onlyMethods(["tools/call"], hang)] }),
  "around of a server's layer": (hang) => ({
    server: [layer(() => ({ name: "hang", methods: ["tools/call"], around: hang }))],
  }),
  "a layer of an extension": (hang) => ({
    tool: [one.layer({ around: async ({ ctx }, next) => await hang(ctx, next) })],
  }),
  "a layer within the layer of an extension": (hang) => ({
    tool: [around(two), one.layer({ around: async ({ ctx }, next) => await hang(ctx, next) })],
  }),
  "enter of an inner layer": (hang) => ({
    tool: [layer(() => ({ name: "hang", enter: ({ ctx }, next) => hang(ctx, next) }))],
  }),
};

for (const [name, where] of Object.entries(HANGING)) {
  behaviour(`a call that hangs in ${name} gives its place back`, async (connect) => {
    const clock = fakeClock();
    const { pass, open } = gate();
    let hanging = 0;
    let isHanging = true;
    let runs = 0;
    const hang: Middleware = async (_ctx, next) => {
      if (isHanging) {
        hanging++;
        await pass;
      }
      return await next();
    };
    const { server = [], tool: within = [] } = where(hang);
    const calls: CallEvent[] = [];
    const { client } = await connect({
      clock,
      handlers: [
        ...[one, two],
        tool({ name: "t", use: [quota({ concurrency: 1, timeoutMs: 1000 }), ...within], run: () => `${++runs}` }),
      ],
      use: server,
      observer: { call: (event) => calls.push(event) },
    });
    const timedOut = started(client.callTool("t"));
    await until(() => hanging === 1, "the call hangs");
    await clock.advance(1000);
    await assertRejects(() => timedOut);
    const stop = new AbortController();
    const cancelled = started(client.callTool("t", {}, { signal: stop.signal }));
    await until(() => hanging === 2, "the place is free after a timeout");
    stop.abort();
    await assertRejects(() => cancelled);
    await until(() => calls.some(({ outcome }) => outcome === "cancelled"), "the server cancels the call");
    isHanging = false;
    let text: string | undefined;
    const waiting = started(client.callTool("t").then((result) => text = textOf(result)));
    await turn(5);
    await clock.advance(500);
    await turn(5);
    assertEquals(text, undefined);
    await until(() => clock.advance(100).then(() => text), "the place is free after a cancellation");
    await waiting;
    // The handlers of the calls that have lost their places do not run.
    open();
    await turn(5);
    assertEquals([text, runs], ["1", 1]);
  }, { perInstance: "limits" });
}

/** Middleware that responds without waiting for the handler. */
const early: Middleware = async (_ctx, next) => {
  started(next());
  await turn();
  return { content: [{ type: "text", text: "early" }] };
};
const slow: Middleware = async (_ctx, next) => {
  await turn(3);
  return await next();
};
const detaching = one.layer({
  around: (call, next) => {
    call.detach();
    void next();
    return { content: [{ type: "text", text: "early" }] };
  },
});

const EARLY: Readonly<
  Record<string, { readonly server?: readonly Middleware[]; readonly tool?: readonly (Middleware | Layer)[] }>
> = {
  "middleware of the handler": { tool: [early] },
  "around of a layer": { tool: [layer(() => ({ name: "early", around: early }))] },
  "middleware of the server": { server: [early] },
  "enter of a layer": { tool: [layer(() => ({ name: "early", enter: ({ ctx }, next) => early(ctx, next) }))] },
  "a layer of an extension": { tool: [detaching, slow] },
  "a layer of an extension, before the handler starts,": {
    server: [slow],
    tool: [detaching, two.layer({ around: async ({ ctx }, next) => await slow(ctx, next) })],
  },
  "middleware within a layer of an extension": { server: [early], tool: [detaching] },
};

for (const [name, { server = [], tool: within = [] }] of Object.entries(EARLY)) {
  behaviour(`a handler keeps its place if ${name} responds early`, async (connect) => {
    const clock = fakeClock();
    const { seen, open, run } = worker();
    const use = [quota({ concurrency: 1, timeoutMs: 60_000 }), ...within];
    let hangs = 0;
    const hang = () => new Promise<string>(() => void hangs++);
    const handlers: Handler[] = [one, two, tool({ name: "t", use, run }), tool({ name: "hang", use, run: hang })];
    const { client } = await connect({
      clock,
      handlers,
      use: server.map((each) => onlyMethods(["tools/call"], each)),
    });
    assertEquals(textOf(await client.callTool("t")), "early");
    await until(() => seen.runs === 1, "the first handler runs");
    const second = started(client.callTool("t"));
    await turn(10);
    assertEquals(seen, { running: 1, most: 1, runs: 1 });
    open();
    assertEquals(await textWithin(second, "the second call runs"), "early");
    await until(() => seen.runs === 2 && !seen.running, "the second handler has ended");
    assertEquals(seen.most, 1);
    // No cancellation follows the response, so the handler counts as ended after the timeout of its call.
    assertEquals(await textWithin(client.callTool("hang"), "the place is free"), "early");
    await until(() => hangs === 1, "the handler hangs");
    const last = started(client.callTool("t"));
    await turn(5);
    await clock.advance(30_000);
    await turn(5);
    assertEquals(seen.runs, 2);
    await until(() => clock.advance(1000).then(() => seen.runs === 3), "the place is free after the timeout");
    await last;
  }, { perInstance: "limits" });
}

behaviour("a call that runs its handler again keeps its place", async (connect) => {
  const { seen, open, run } = worker();
  open();
  const again: Middleware = async (_ctx, next) => {
    await next();
    await turn(3);
    return await next();
  };
  const { client } = await connect({
    handlers: [tool({ name: "t", use: [quota({ concurrency: 1 })], run })],
    use: [onlyMethods(["tools/call"], again)],
  });
  await Promise.all([client.callTool("t"), client.callTool("t")]);
  assertEquals(seen, { running: 0, most: 1, runs: 4 });
}, { perInstance: "limits" });

behaviour(
  "a handler whose middleware still waits at the response does not start, and gives its place back",
  async (connect) => {
    const { pass, open } = gate();
    let runs = 0;
    let waiting = 0;
    const held: Middleware = async (_ctx, next) => {
      waiting++;
      await pass;
      return await next();
    };
    const once = quota({ concurrency: { calls: 1, waiting: 0 } });
    const { client } = await connect({
      handlers: [
        tool({ name: "early", use: [once, early, held], run: () => `${++runs}` }),
        tool({ name: "t", use: [once], run: () => "free" }),
      ],
    });
    assertEquals(textOf(await client.callTool("early")), "early");
    assertEquals(waiting, 1);
    await assertRejects(() => client.callTool("t"), McpError, sentence("handler.concurrency"));
    open();
    await until(() => client.callTool("t").then(textOf, () => undefined), "the place is free");
    assertEquals(runs, 0);
  },
  { perInstance: "limits" },
);

behaviour("a handler does not start after the response if its place is free", async (connect) => {
  let runs = 0;
  let late: (() => Promise<unknown>) | undefined;
  const careless: Middleware = async (_ctx, next) => {
    late = next;
    return await Promise.resolve({ content: [{ type: "text", text: "early" }] });
  };
  const { client } = await connect({
    handlers: [tool({ name: "t", use: [quota({ concurrency: 1 })], run: () => `${++runs}` })],
    use: [onlyMethods(["tools/call"], careless)],
  });
  assertEquals(textOf(await client.callTool("t")), "early");
  const error = await assertRejects(async () => await late?.(), Error);
  assertEquals([error.message, runs], [sentence("next()"), 0]);
}, { perInstance: "limits" });

for (const [what, use] of Object.entries({ "calls": [], "tasks": [task()] })) {
  behaviour(`one client cannot use all places with ${what} that wait for answers`, async (connect, way) => {
    const asked: string[] = [];
    const pay = tool({
      name: "pay",
      use: [quota({ concurrency: { calls: 4, waiting: 16 } }), ...use],
      run: async (_input, ctx) => {
        asked.push(ctx.principal?.id ?? "");
        if (ctx.principal?.id === "ada") return "paid";
        const { action } = await ctx.elicit("ok", { message: "Pay?", schema: { type: "object", properties: {} } });
        return action;
      },
    });
    const handlers = [tasks(), pay];
    const { pass, open } = gate();
    const onElicit = () => pass.then(() => ({ action: "accept", content: {} } as const));
    const eve = { principal: { id: "eve" }, extensions: [taskClient()], onElicit };
    const { client, join } = await connect({ handlers }, eve);
    const calls = [1, 2, 3, 4].map(() => started(client.callTool("pay")));
    // In the newer revision, a call that is not a task ends with its question.
    const most = use.length || way.era === "legacy" ? 3 : 4;
    await until(() => asked.length >= most, "the handlers ask");
    const ada = await join({ principal: { id: "ada" } });
    assertEquals(await textWithin(ada.callTool("pay"), "the other client's call"), "paid");
    assertEquals(asked.filter((id) => id === "eve").length, most);
    open();
    for (const call of calls) assertEquals(textOf(await call), "accept");
  }, { perInstance: "limits", transports: ["memory", "http"] });
}

behaviour("a client can use three quarters of the places, and all of up to three places", async (connect) => {
  for (const [calls, share] of [[1, 1], [2, 2], [3, 3], [4, 3], [8, 6]]) {
    const { seen, open, run } = worker();
    const work = tool({ name: "work", use: [quota({ concurrency: { calls, waiting: 64 } })], run });
    const { client, join } = await connect({ handlers: [work] }, { principal: { id: "eve" } });
    const ada = await join({ principal: { id: "ada" } });
    const mine = Array.from({ length: calls }, () => started(client.callTool("work")));
    await until(() => seen.running === share, `${share} of ${calls} places`);
    const others = Array.from({ length: calls }, () => started(ada.callTool("work")));
    await until(() => seen.running === calls, `${calls} places`);
    open();
    await Promise.all([...mine, ...others]);
    assertEquals(seen, { running: 0, most: calls, runs: 2 * calls });
  }
}, { perInstance: "limits", transports: ["memory", "http"] });

Deno.test("over stdio, where the process has one client, the client can use all places", async () => {
  const { seen, open, run } = worker();
  const work = tool({ name: "work", use: [quota({ concurrency: 4 })], run });
  const server = closeAtEnd(openServer({ handlers: [work] }));
  const lines = [1, 2, 3, 4].map((id) => {
    const params = {
      name: "work",
      arguments: {},
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    };
    return `${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`;
  });
  const { pass: isRead, open: endInput } = gate();
  const input = ReadableStream.from((async function* () {
    yield new TextEncoder().encode(lines.join(""));
    await isRead;
  })());
  let output = "";
  const served = serveStdio(server, {
    input,
    output: (bytes) => Promise.resolve(void (output += new TextDecoder().decode(bytes))),
  });
  await until(() => seen.running === 4, "all places");
  open();
  await until(() => output.match(/"done"/g)?.length === 4, "all results");
  endInput();
  await served;
});
