// Every call ends exactly once: with a response, or with a closed stream if the call was cancelled.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { McpError, type Observer, tool, ToolError } from "../../mod.ts";
import { refuseRequest } from "../../src/server/engine/auth.ts";
import { layer, type UseItem } from "../../src/layers/layers.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { behaviour, gate, started, textOf, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { random } from "../support/random.ts";
import { ask, toRequest } from "../support/requests.ts";
import { readData } from "./unread.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { openServer } from "../support/servers.ts";

const any = { type: "object" } as const;

/** Fails the test if an unhandled rejection occurs during `run` or shortly afterwards. */
async function withoutUnhandled(run: () => Promise<void>): Promise<void> {
  const unhandled: unknown[] = [];
  const listener = (event: Event) => {
    event.preventDefault();
    unhandled.push("reason" in event ? event.reason : event);
  };
  globalThis.addEventListener("unhandledrejection", listener);
  try {
    await run();
    await turn(10);
  } finally {
    globalThis.removeEventListener("unhandledrejection", listener);
  }
  assertEquals(unhandled, []);
}

/** Returns values for handlers to throw. Inspecting some of these values throws another error. */
function hostileErrors(): readonly (readonly [what: string, error: unknown])[] {
  const trap = () => {
    throw new Error("a trap");
  };
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  return [
    ["null", null],
    ["undefined", undefined],
    ["a symbol", Symbol("odd")],
    [
      "a proxy that throws when inspected",
      new Proxy({}, { getPrototypeOf: trap, get: trap, has: trap, ownKeys: trap }),
    ],
    ["a revoked proxy", revoked],
    ["an error whose message throws", Object.defineProperty(new Error("x"), "message", { get: trap })],
    ["an error whose stack throws", Object.defineProperty(new Error("x"), "stack", { get: trap })],
    ["an object whose toString throws", { toString: trap, toJSON: trap, [Symbol.toPrimitive]: trap }],
    ["a thenable that never settles", { then: () => {} }],
    ["a frozen cycle", Object.freeze(Object.assign(Object.create(null), { cycle: hostileErrors }))],
  ];
}

/** Returns the first line of a message, without the id of the error. */
function toFirstLine(message: string): string {
  return message.split("\n")[0].replace(/[0-9a-f]{8}/, "ID");
}

behaviour("a call gets exactly one response, whatever the handler throws", async (connect) => {
  const errors = hostileErrors();
  const throwing = tool({
    name: "throwing",
    input: any,
    run({ i, later }: { readonly i?: unknown; readonly later?: unknown }) {
      const [, error] = errors[Number(i)];
      if (later) return Promise.reject(error);
      throw error;
    },
  });
  const quick = tool({ name: "quick", run: () => "quick" });
  const { client, takeFaults } = await connect({ handlers: [throwing, quick] });
  for (const [i, [what]] of errors.entries()) {
    for (const later of [false, true]) {
      // The response is an error result for the model, or a protocol error if the thrown value cannot be inspected.
      const outcome = await client.callTool("throwing", { i, later }).then(textOf, (error) => {
        assert(error instanceof McpError, `${what}: ${error}`);
        return error.message;
      });
      assertEquals(toFirstLine(outcome), sentence(), what);
      assertEquals(takeFaults().length, 1, what);
      assertEquals(textOf(await client.callTool("quick")), "quick", what);
    }
  }
});

behaviour("a protocol error whose data JSON cannot represent is sent without the data", async (connect) => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const throwing = tool({
    name: "throwing",
    input: any,
    run({ i }: { readonly i?: unknown }) {
      throw new McpError(-32001, "The door is closed", [1n, cycle, { toJSON: () => 1n }][Number(i)]);
    },
  });
  const { client } = await connect({ handlers: [throwing] });
  for (const i of [0, 1, 2]) {
    const error = await client.callTool("throwing", { i }).catch((error) => error);
    assert(error instanceof McpError, `${error}`);
    assertEquals([error.code, error.message, error.data], [-32001, "The door is closed", undefined]);
  }
});

Deno.test("an observer that throws, rejects or hangs changes no response", () =>
  withoutUnhandled(async () => {
    const broken = tool({
      name: "broken",
      run() {
        throw new Error("broken");
      },
    });
    const hooks: readonly NonNullable<Observer["fault"]>[] = [
      () => {
        throw new Error("telling failed");
      },
      () => Promise.reject(new Error("telling failed")),
      () => new Promise(() => {}),
    ];
    for (const fault of hooks) {
      const server = openServer({ handlers: [broken], observer: { fault } });
      const { result } = await ask(server, "tools/call", { name: "broken" });
      assertEquals(toFirstLine(textOf(result)), sentence("ID"));
    }
  }));

behaviour("a handler that ignores its signal releases its slot", async (connect) => {
  const ran: number[] = [];
  const deaf = tool({ name: "deaf", run: () => new Promise<string>(() => void ran.push(1)) });
  const quick = tool({ name: "quick", run: () => "quick" });
  const { client } = await connect({
    handlers: [deaf, quick],
    limits: { calls: { running: 2, runningPerClient: 2, timeoutMs: 50 } },
  });
  const errors = await Promise.all(
    Array.from({ length: 6 }, () => client.callTool("deaf").catch((error) => error)),
  );
  for (const error of errors) {
    assert(error instanceof McpError, `${error}`);
    assertEquals(error.code, -32603);
    assertStringIncludes(error.message, "calls.timeoutMs");
  }
  assertEquals(ran.length, 6);
  assertEquals(textOf(await client.callTool("quick")), "quick");
});

behaviour(
  "a result or an error that a handler produces after the timeout is dropped",
  (connect) =>
    withoutUnhandled(async () => {
      const over = gate();
      const late = tool({
        name: "late",
        async run(_input, ctx) {
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          await ctx.progress(1);
          await ctx.log.error("late");
          await ctx.elicit("late", { message: "?", schema: { type: "object", properties: {} } }).catch(() => {});
          ctx.closeStream(1);
          over.open();
          throw ctx.signal.reason;
        },
      });
      const { client } = await connect({ handlers: [late], limits: { calls: { timeoutMs: 40 } } }, {
        logLevel: "debug",
      });
      const error = await client.callTool("late", {}, { meta: { progressToken: 1 } }).catch((error) => error);
      assertStringIncludes(error.message, "calls.timeoutMs");
      await over.pass;
      assertEquals(client.received, []);
    }),
);

behaviour(
  "a promise that a handler does not await never becomes an unhandled rejection",
  (connect) =>
    withoutUnhandled(async () => {
      const floating = tool({
        name: "floating",
        run(_input, ctx) {
          const schema = { type: "object", properties: {} } as const;
          ctx.progress(1);
          // The casts pass values that the types forbid. Untyped code can pass such values.
          ctx.progress(2, { total: 1n as unknown as number });
          ctx.log.error({
            get a() {
              throw new Error("a getter");
            },
          });
          ctx.log.error(1n);
          ctx.elicit("a", { message: "?", schema });
          ctx.elicitUrl("b", { message: "?", url: "https://example.com" });
          ctx.sample("c", { messages: [], maxTokens: 1 });
          ctx.roots();
          ctx.once("d", () => Promise.reject(new Error("made in vain")));
          return "floating";
        },
      });
      const { client, takeFaults } = await connect({ handlers: [floating] }, { logLevel: "debug" });
      // Every question fails immediately, because the client has declared no capabilities.
      const result = await client.callTool("floating", {}, { meta: { progressToken: 1 } });
      assertEquals(textOf(result), "floating");
      assertEquals(takeFaults().map(({ error }) => String(error)), [sentence('"floating"', "progress")]);
    }),
);

behaviour(
  "a call continues if the handler sends values that JSON cannot represent, even while the client does not read",
  (connect) =>
    withoutUnhandled(async () => {
      const odd = tool({
        name: "odd",
        async run(_input, ctx) {
          for (let i = 1; i < 300; i++) ctx.progress(i, { message: "x".repeat(500) });
          await ctx.progress(300, { total: 1n as unknown as number }); // The cast passes a value that the types forbid.
          return "odd";
        },
      });
      const { client, takeFaults } = await connect({ handlers: [odd] });
      assertEquals(textOf(await client.callTool("odd", {}, { meta: { progressToken: 1 } })), "odd");
      assertEquals(takeFaults().map(({ error }) => String(error)), [sentence('"odd"', "progress")]);
    }),
);

/** Creates a tool whose calls wait until the test releases them. */
function holding() {
  const log: string[] = [];
  const holds = new Map<string, () => void>();
  const hold = tool({
    name: "hold",
    input: any,
    async run({ name }: { readonly name?: unknown }, { signal }) {
      log.push(`start ${name}`);
      await new Promise<void>((resolve) => {
        holds.set(String(name), resolve);
        signal.addEventListener("abort", () => resolve());
      });
      log.push(`${signal.aborted ? "cancel" : "end"} ${name}`);
      return String(name);
    },
  });
  return { log, handlers: [hold], free: (name: string) => holds.get(name)?.() };
}

function cancelled(client: Connection, name: string): { readonly cancel: () => void; readonly done: Promise<unknown> } {
  const stop = new AbortController();
  const done = started(client.callTool("hold", { name }, { signal: stop.signal, id: name }).catch(() => "gave up"));
  return { done, cancel: () => stop.abort() };
}

for (const limit of ["running", "runningPerClient"]) {
  const limits = { calls: { [limit]: 1 } };
  // In the modern era over HTTP, each call counts as a separate client, so a limit per client has no effect.
  const eras = limit === "running" ? undefined : (["legacy"] as const);

  behaviour(
    `a queued call that was cancelled never runs (${limit})`,
    async (connect) => {
      const { log, handlers, free } = holding();
      const { client, server } = await connect({ handlers, limits });
      const { scheduler } = server[INTERNALS].engine;
      const first = started(client.callTool("hold", { name: "a" }));
      await until(() => log.length === 1, "the first call runs");
      const second = cancelled(client, "b");
      const third = started(client.callTool("hold", { name: "c" }));
      await until(() => scheduler.waiting === 2, "two calls wait");
      second.cancel();
      assertEquals(await second.done, "gave up");
      await until(() => scheduler.waiting === 1, "the second call leaves the queue");
      free("a");
      assertEquals(textOf(await first), "a");
      await until(() => log.includes("start c"), "the third call takes the slot");
      free("c");
      assertEquals(textOf(await third), "c");
      assertEquals(log, ["start a", "end a", "start c", "end c"]);
    },
    { eras, perInstance: "limits" },
  );

  behaviour(
    `all queued calls run in the order of their arrival (${limit})`,
    async (connect) => {
      const { log, handlers, free } = holding();
      const { client } = await connect({ handlers, limits });
      const names = Array.from("abcdefgh");
      const calls = names.map((name) => started(client.callTool("hold", { name })));
      for (const name of names) {
        await until(() => log.includes(`start ${name}`), `${name} runs`);
        free(name);
      }
      assertEquals((await Promise.all(calls)).map(textOf), names);
      assertEquals(log, names.flatMap((name) => [`start ${name}`, `end ${name}`]));
    },
    { eras, perInstance: "limits" },
  );
}

behaviour("a client with many queued calls does not keep other clients from using free slots", async (connect) => {
  const { log, handlers, free } = holding();
  const limits = { calls: { running: 2, runningPerClient: 1 } };
  const { client, join } = await connect({ handlers, limits }, { principal: { id: "greedy" } });
  const greedy = Array.from({ length: 5 }, (_, i) => started(client.callTool("hold", { name: `greedy ${i}` })));
  await until(() => log.length === 1, "the first runs");
  const others = [await join({ principal: { id: "a" } }), await join({ principal: { id: "b" } })].map((other, i) =>
    started(other.callTool("hold", { name: `other ${i}` }))
  );
  await until(() => log.includes("start other 0") || log.includes("start other 1"), "a call of another client runs");
  const order = () => log.filter((line) => line.startsWith("start")).map((line) => line.slice(6));
  for (let i = 0; i < 7; i++) {
    await until(() => order().length > i, `call ${i} runs`);
    free(order()[i]);
  }
  await Promise.all([...greedy, ...others]);
  assert(order().slice(0, 4).includes("other 0") && order().slice(0, 4).includes("other 1"), order().join());
}, { eras: ["legacy"], perInstance: "limits" });

Deno.test("thousands of queued calls that end immediately do not grow the stack", async () => {
  const open = gate();
  let isRunning = false;
  const hold = tool({
    name: "hold",
    run: async () => {
      isRunning = true;
      await open.pass;
      return "";
    },
  });
  const server = openServer({ handlers: [hold], limits: { calls: { running: 1 } } });
  const first = server.fetch(toRequest("tools/call", { name: "hold" }));
  await until(() => isRunning, "the first call runs");
  const waiting = Array.from({ length: 4200 }, () => ask(server, "tools/list"));
  await Promise.race(waiting); // Wait until the queue is full.
  open.open();
  await (await first).text();
  const answers = await Promise.all(waiting);
  assert(answers.every(({ result, status }) => result || status === 503));
  // A quarter of the 4,096 places in the queue is reserved for clients with an identity.
  assertEquals(answers.filter(({ status }) => status === 503).length, 4200 - 3072);
  assertEquals((await ask(server, "tools/list")).status, 200);
});

Deno.test("a cancellation that races with the end of a call causes at most one response, 10,000 times", () =>
  withoutUnhandled(async () => {
    const { below } = random(137);
    const race = tool({
      name: "race",
      async run(_input, { signal }) {
        for (let turns = below(6); turns > 0 && !signal.aborted; turns--) await undefined;
        if (below(10) === 0) signal.throwIfAborted();
        return "done";
      },
    });
    const server = openServer({ handlers: [race] });
    await using client = await connectTest(server, { era: "legacy", transport: "pipe" });
    const answers = new Map<number, number>();
    const outcomes = { answered: 0, silent: 0 };
    const end = openPipe(server, {
      write: (text) => {
        const { id } = JSON.parse(text);
        answers.set(id, (answers.get(id) ?? 0) + 1);
      },
    });
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const call = (id: number) =>
      end.receive(JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "race", _meta: meta } }));
    call(0); // Load the code of the era with a first call, because calls that wait for the load would not race.
    await end.idle();
    for (let id = 1; id <= 10_000; id++) {
      call(id);
      for (let turns = below(12); turns > 0; turns--) await undefined;
      end.receive(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }));
    }
    await end.idle();
    for (let id = 1; id <= 10_000; id++) {
      const count = answers.get(id) ?? 0;
      assert(count <= 1, `${count} responses to ${id}`);
      outcomes[count ? "answered" : "silent"]++;
    }
    assert(outcomes.answered > 500 && outcomes.silent > 500, JSON.stringify(outcomes));
    end.close();
    await client.close();
  }));

Deno.test("a client that disconnects while the response is sent gets at most one response, 1,000 times", () =>
  withoutUnhandled(async () => {
    const { below } = random(1137);
    let running = 0;
    const race = tool({
      name: "race",
      async run(_input, ctx) {
        running++;
        await ctx.progress(1);
        for (let turns = below(20); turns > 0; turns--) await undefined;
        running--;
        return "done";
      },
    });
    const server = openServer({ handlers: [race] });
    const outcomes = { whole: 0, cut: 0 };
    for (let i = 0; i < 1000; i++) {
      const request = toRequest("tools/call", { name: "race", _meta: { progressToken: 1 } });
      const reader = (await server.fetch(request)).body?.getReader();
      assert(reader);
      let text = "";
      for (let reads = below(5); reads > 0; reads--) {
        const { done, value } = await reader.read();
        if (done) break;
        text += new TextDecoder().decode(value);
      }
      await reader.cancel();
      const results = readData(text).filter((message) => Object(message).result);
      assert(results.length <= 1);
      outcomes[results.length ? "whole" : "cut"]++;
    }
    assert(outcomes.whole > 50 && outcomes.cut > 50, JSON.stringify(outcomes));
    await until(() => running === 0, "all handlers end");
  }));

behaviour("if a result cannot be sent, the response is an error, on a stream as well", async (connect) => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const results = [
    () => ({ content: [{ type: "text" as const, text: "x", _meta: { n: 1n } }] }),
    () => ({ content: [], structuredContent: cycle }),
    () => ({
      content: [],
      get structuredContent(): object {
        throw new Error("a getter");
      },
    }),
    () => ({
      content: [],
      structuredContent: {
        toJSON() {
          throw new Error("no JSON");
        },
      },
    }),
    () => "x".repeat(3000),
    () =>
      new Proxy({}, {
        ownKeys() {
          throw new Error("a trap");
        },
      }),
  ];
  const give = tool({
    name: "give",
    input: any,
    async run({ i }: { readonly i?: unknown }, ctx) {
      await ctx.progress(1);
      return results[Number(i)]();
    },
  });
  const { client, takeFaults } = await connect({ handlers: [give], limits: { calls: { resultBytes: 2000 } } });
  for (const i of results.keys()) {
    for (const meta of [{}, { progressToken: i }]) {
      const outcome = await client.callTool("give", { i }, { meta }).then(textOf, (error) => error.message);
      assertEquals(toFirstLine(outcome), sentence(), `result ${i}`);
      assertEquals(takeFaults().length, 1, `result ${i}`);
    }
  }
});

/** Work of the author that a call does not wait for, such as a slow write to an audit log. */
const write = () => turn(3);

const OVERLAPS: Readonly<Record<string, UseItem>> = {
  middleware: async (_ctx, next) => {
    const result = next();
    await write();
    return await result;
  },
  "a layer with inside that drops the result": layer(() => ({
    name: "drop",
    inside: async (_ctx, next) => {
      next();
      await write();
      return { content: [] };
    },
  })),
  "a layer with around that fails itself": layer(() => ({
    name: "fail",
    around: async (_ctx, next) => {
      next();
      await write();
      throw new Error("own");
    },
  })),
  "a layer with enter": layer(() => ({
    name: "enter",
    enter: async (_entry, next) => {
      const result = next();
      await write();
      return await result;
    },
  })),
  "a layer with run": layer(() => ({
    name: "run",
    run: async (_run, next) => {
      const value = next();
      await write();
      return await value;
    },
  })),
};

for (const [title, item] of Object.entries(OVERLAPS)) {
  Deno.test(`an error of a handler does not end the process if ${title} awaits the call later or never`, () =>
    withoutUnhandled(async () => {
      const fails = tool({ name: "fails", use: [item], run: () => Promise.reject(new ToolError("handler failed")) });
      const busy = tool({ name: "busy", use: [item], run: () => Promise.reject(McpError.busy("busy")) });
      const throws = tool({
        name: "throws",
        use: [item],
        run: () => {
          throw new ToolError("handler failed");
        },
      });
      const server = openServer({ handlers: [fails, throws, busy] });
      for (const name of ["fails", "throws", "busy"]) await ask(server, "tools/call", { name });
      await turn(10);
    }));
}

for (const step of ["admit", "allow", "limit"] as const) {
  Deno.test(`a slow ${step} that refuses a call without a free slot does not end the process`, () =>
    withoutUnhandled(async () => {
      const { pass, open } = gate();
      let asked = 0;
      let isFull = false;
      const refuse = async () => {
        asked++;
        await pass;
        return false;
      };
      const limiting = layer(() => ({
        name: "limiting",
        limit: async () => {
          await refuse();
          throw McpError.busy("Not now");
        },
      }));
      let running = 0;
      const hold = tool({
        name: "hold",
        run: async () => {
          running++;
          await pass;
          return "";
        },
      });
      const work = tool({
        name: "work",
        ...step === "allow" && { allow: refuse },
        use: step === "limit" ? [limiting] : [],
        run: () => "never",
      });
      const server = openServer({
        handlers: [hold, work],
        ...step === "admit" && { admit: async () => !isFull || await refuse() || refuseRequest(403) },
        limits: testLimits({ calls: { running: 1, waiting: 0 } }),
      });
      const holding = ask(server, "tools/call", { name: "hold" });
      await until(() => running === 1, "the slot is in use");
      isFull = true;
      assertEquals((await ask(server, "tools/call", { name: "work" })).error?.message, sentence("calls.running"));
      assertEquals(asked, 1);
      open();
      assertEquals((await holding).error, undefined);
    }));
}
