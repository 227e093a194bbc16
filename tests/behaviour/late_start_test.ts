// A handler does not start after the end of its call, whatever waits between the call and the handler.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { extension, group, McpError, prompt, resource, resourceProvider, service, tool } from "../../mod.ts";
import type { Middleware, ServerOptions } from "../../mod.ts";
import { type Layer, layer, quota } from "../../src/layers/layers.ts";
import { clientExtension } from "../../src/client/client.ts";
import { type Connection, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, gate, plainTool, started, textOf, turn, until } from "../support/behaviour.ts";
import type { BehaviourOptions } from "../support/behaviour.ts";

const ID = "com.example/late";
const late = extension({ id: ID });

/** A handler behind something that waits, and the request that calls the handler. */
interface Waiting {
  readonly serve: (wait: () => Promise<void>, run: () => string) => Partial<ServerOptions>;
  readonly call?: (client: Connection, signal: AbortSignal) => Promise<unknown>;
}

const toMiddleware = (wait: () => Promise<void>): Middleware => async (_ctx, next) => {
  await wait();
  return await next();
};

/** Server middleware that waits for requests with one of the methods. */
const onServer = (wait: () => Promise<void>, ...methods: readonly string[]): Middleware => async (call, next) => {
  if (methods.includes(call.method)) await wait();
  return await next();
};

const complete = (client: Connection, signal: AbortSignal) => {
  const ref = { type: "ref/resource", uri: "x://{a}/b" };
  return client.request("completion/complete", { ref, argument: { name: "a", value: "" } }, { signal });
};

const WAITING: Readonly<Record<string, Waiting>> = {
  "middleware of the server": {
    serve: (wait, run) => ({ handlers: [tool({ name: "t", run })], use: [onServer(wait, "tools/call")] }),
  },
  "around of a layer": {
    serve: (wait, run) => {
      const around = layer(() => ({ name: "around", around: toMiddleware(wait) }));
      return { handlers: [tool({ name: "t", use: [around], run })] };
    },
  },
  "middleware of a tool": {
    serve: (wait, run) => ({ handlers: [tool({ name: "t", use: [toMiddleware(wait)], run })] }),
  },
  "inside of a layer": {
    serve: (wait, run) => {
      const inside = layer(() => ({ name: "inside", inside: toMiddleware(wait) }));
      return { handlers: [tool({ name: "t", use: [inside], run })] };
    },
  },
  "middleware of a group": {
    serve: (wait, run) => ({ handlers: [group("g", [tool({ name: "t", run })], { use: [toMiddleware(wait)] })] }),
    call: (client, signal) => client.callTool("g_t", {}, { signal }),
  },
  "run of a layer": {
    serve: (wait, run) => {
      const outer = layer(() => ({
        name: "outer",
        run: async (_call, next) => {
          await wait();
          return await next();
        },
      }));
      return { handlers: [tool({ name: "t", use: [outer], run })] };
    },
  },
  "around of an extension": {
    serve: (wait, run) => {
      const around = late.layer({
        around: async (_call, next) => {
          await wait();
          return await next();
        },
      });
      return { handlers: [late, tool({ name: "t", use: [around], run })] };
    },
  },
  "a service of a call": {
    serve: (wait, run) => {
      const slow = service("slow", () => wait().then(() => "made"), { per: "call" });
      return { handlers: [tool({ name: "t", services: { slow }, run })] };
    },
  },
  "middleware of a prompt": {
    serve: (wait, run) => ({ handlers: [prompt({ name: "p", use: [toMiddleware(wait)], run })] }),
    call: (client, signal) => client.getPrompt("p", {}, { signal }),
  },
  "middleware of a resource": {
    serve: (wait, run) => ({ handlers: [resource({ uri: "x://r", name: "r", use: [toMiddleware(wait)], read: run })] }),
    call: (client, signal) => client.readResource("x://r", { signal }),
  },
  "middleware of a completion": {
    serve: (wait, run) => ({
      handlers: [
        resource({ uri: "x://{a}/b", name: "a", complete: { a: () => [run()] }, read: () => "a" }),
      ],
      use: [onServer(wait, "completion/complete")],
    }),
    call: complete,
  },
  "a service of a completion": {
    serve: (wait, run) => {
      const slow = service("slow", () => wait().then(() => "made"), { per: "call" });
      return {
        handlers: [
          resource({
            uri: "x://{a}/b",
            name: "a",
            services: { slow },
            complete: { a: () => [run()] },
            read: () => "a",
          }),
        ],
      };
    },
    call: complete,
  },
  "middleware of a list": {
    serve: (wait, run) => ({
      handlers: [
        resourceProvider({
          scheme: "note",
          name: "notes",
          list: () => ({ resources: [{ uri: `note://${run()}`, name: "n" }] }),
          read: () => "n",
        }),
      ],
      use: [onServer(wait, "resources/list")],
    }),
    call: (client, signal) => client.request("resources/list", {}, { signal }),
  },
  "middleware of a method of an extension": {
    serve: (wait, run) => ({
      handlers: [extension({ id: ID, sessions: true, methods: { "late/get": { run: () => ({ value: run() }) } } })],
      use: [onServer(wait, "late/get")],
    }),
    call: (client, signal) => client.request("late/get", {}, { signal }),
  },
};

const declares = { extensions: [clientExtension({ id: ID })] };
const alone: BehaviourOptions = { perInstance: "limits" };
const callT = (client: Connection, signal: AbortSignal) => client.callTool("t", {}, { signal });

for (const [name, { serve, call = callT }] of Object.entries(WAITING)) {
  behaviour(`a handler behind ${name} does not start after a cancellation`, async (connect) => {
    const held = gate();
    let runs = 0;
    const { client, server } = await connect(serve(held.enter, () => `${++runs}`), declares);
    const controller = new AbortController();
    const cancelled = started(call(client, controller.signal));
    await until(() => held.entered, "the call waits");
    controller.abort();
    await until(() => server.stats().running === 0, "the call is cancelled");
    held.open();
    await turn(10);
    assertEquals(runs, 0);
    await cancelled.catch(() => {});
  }, alone);
}

for (const name of ["middleware of a tool", "inside of a layer", "middleware of a group", "run of a layer"]) {
  behaviour(`a handler behind ${name} does not start after a timeout`, async (connect) => {
    const clock = fakeClock();
    const held = gate();
    let runs = 0;
    const { serve, call = callT } = WAITING[name];
    const options = { clock, limits: { calls: { timeoutMs: 1000 } } };
    const { client } = await connect({ ...serve(held.enter, () => `${++runs}`), ...options });
    const outcome = call(client, new AbortController().signal).then(() => "result", () => "error");
    await until(() => held.entered, "the call waits");
    await clock.advance(1000);
    assertEquals(await outcome, "error");
    held.open();
    await turn(10);
    assertEquals(runs, 0);
  }, alone);
}

/** Where middleware can respond before it calls `next()`. */
const LATE: Readonly<Record<string, (middleware: Middleware, run: () => string) => Partial<ServerOptions>>> = {
  "middleware of the server": (middleware, run) => ({
    handlers: [tool({ name: "t", use: [quota({ concurrency: 1 })], run })],
    use: [async (call, next) => call.method === "tools/call" ? await middleware(call, next) : await next()],
  }),
  "around of a layer": (around, run) => ({
    handlers: [tool({ name: "t", use: [quota({ concurrency: 1 }), layer(() => ({ name: "a", around }))], run })],
  }),
  "middleware of a tool": (middleware, run) => ({
    handlers: [tool({ name: "t", use: [quota({ concurrency: 1 }), middleware], run })],
  }),
  "inside of a layer": (inside, run) => ({
    handlers: [tool({ name: "t", use: [quota({ concurrency: 1 }), layer(() => ({ name: "i", inside }))], run })],
  }),
};

for (const [name, serve] of Object.entries(LATE)) {
  behaviour(`a handler does not start if ${name} calls next() after its response`, async (connect) => {
    const { pass, open } = gate();
    let runs = 0;
    let ended = 0;
    const end = () => void ended++;
    const middleware: Middleware = async (_call, next) => {
      pass.then(next).then(end, end);
      return await Promise.resolve({ content: [{ type: "text", text: "too busy" }] });
    };
    const { client, takeFaults } = await connect(serve(middleware, () => `${++runs}`));
    const texts = await Promise.all([1, 2].map(async () => textOf(await client.callTool("t"))));
    open();
    await until(() => ended === 2, "next() has settled");
    assertEquals([texts, runs], [["too busy", "too busy"], 0]);
    // Middleware around the whole tool gets a result, so the error is reported.
    takeFaults();
  }, alone);
}

behaviour("a read that a handler has not awaited does not start after the response", async (connect) => {
  const { pass, open } = gate();
  let deciding = 0;
  let reads = 0;
  const slow = resource({
    uri: "x://slow",
    name: "slow",
    allow: async ({ method }) => {
      if (method !== "resources/read") return true;
      deciding++;
      await pass;
      return true;
    },
    read: () => `read ${++reads}`,
  });
  // This resource reads the other one, without awaiting the read.
  const outer = resource({
    uri: "x://outer",
    name: "outer",
    read: (_uri, ctx) => (void ctx.readResource("x://slow"), ""),
  });
  const late: Promise<unknown>[] = [];
  const run = plainTool("run", async (ctx) => {
    await ctx.readResource("x://outer");
    late.push(ctx.readResource("x://slow").catch((error) => error));
    return "done";
  });
  const { client, takeFaults } = await connect({ handlers: [slow, outer, run] });
  assertEquals(textOf(await client.callTool("run")), "done");
  await until(() => deciding === 2, "both reads");
  open();
  await Promise.all(late);
  await turn(5);
  assertEquals(reads, 0);
  // The reads were cancelled after the response, which is not reported, because a handler may await only the first of
  // several inner calls.
  assertEquals(takeFaults(), []);
});

/** Layers of a resource, of which each adds an entry to `steps` when it starts. */
const LATE_LAYERS: Readonly<Record<string, (steps: string[]) => Layer>> = {
  limit: (steps) => layer(() => ({ name: "limited", limit: () => void steps.push("limit") })),
  onInput: (steps) => layer(() => ({ name: "guarded", onInput: () => void steps.push("guard") })),
  "around of an extension": () => late.layer({ around: async (_call, next) => await next() }),
};

for (const [name, toLayer] of Object.entries(LATE_LAYERS)) {
  behaviour(`a read that a handler has not awaited does not start ${name} after the response`, async (connect) => {
    const { pass, open } = gate();
    const steps: string[] = [];
    let waiting = 0;
    const wait = async () => {
      waiting++;
      await pass;
    };
    const around = layer(() => ({ name: "around", around: toMiddleware(wait) }));
    const isExtension = name.startsWith("around");
    const row = resource({
      uri: "x://row",
      name: "row",
      allow: async ({ method }) => {
        if (!isExtension && method === "resources/read") await wait();
        return true;
      },
      use: [...isExtension ? [around] : [], toLayer(steps)],
      read: () => (steps.push("read"), "row"),
    });
    const ended = gate();
    const run = plainTool("run", async (ctx) => {
      ctx.readResource("x://row").then(ended.open, ended.open);
      await until(() => waiting, "the read has begun");
      return "done";
    });
    const { client, takeFaults } = await connect({ handlers: [late, row, run] });
    assertEquals(textOf(await client.callTool("run")), "done");
    open();
    await ended.pass;
    assertEquals(steps, []);
    assertEquals(takeFaults(), []);
  });
}

behaviour("grant of an extension does not start after its subscription has ended", async (connect) => {
  const clock = fakeClock();
  const { pass, open } = gate();
  let granted = 0;
  let isStarting = false;
  const feed = extension({
    id: ID,
    start: async () => {
      isStarting = true;
      await pass;
    },
    listen: { feedIds: { filter: z.array(z.string()), grant: (ids) => (granted++, ids) } },
  });
  const { client } = await connect({ handlers: [feed], clock, limits: { calls: { timeoutMs: 1000 } } }, {
    capabilities: { extensions: { [ID]: {} } },
  });
  const listening = started(client.subscribe({ extensions: { feedIds: ["a"] } }));
  await until(() => isStarting, "the extension starts");
  await assertRejects(() => advanceUntil(clock, 200, listening));
  open();
  await turn(10);
  assertEquals(granted, 0);
}, { ...alone, eras: ["modern"] });

behaviour("a subscription behind middleware that throws at once gives its slot back", async (connect) => {
  const refuse: Middleware = (call, next) => {
    if (call.method === "subscriptions/listen") throw McpError.invalidParams("Not now");
    return next();
  };
  const { client, server } = await connect({
    handlers: [tool({ name: "t", run: () => "done" })],
    use: [refuse],
    limits: { calls: { runningPerClient: 2 } },
  }, { principal: { id: "eve" } });
  for (let i = 0; i < 6; i++) await assertRejects(() => client.subscribe({ toolsListChanged: true }));
  assertEquals(server.stats().running, 0);
  assertEquals(textOf(await client.callTool("t")), "done");
}, { ...alone, eras: ["modern"] });
