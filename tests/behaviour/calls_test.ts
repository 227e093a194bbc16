// Middleware, progress, logs, cancellation and concurrency of calls.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { type Context, McpError, type Middleware, prompt, resource, tool } from "../../mod.ts";
import { behaviour, gate, LEGACY_VERSIONS, plainTool, started, textOf, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

function traced(log: string[], name: string): Middleware {
  return async (call, next) => {
    log.push(`> ${name} ${call.method}`);
    try {
      return await next();
    } finally {
      log.push(`< ${name}`);
    }
  };
}

behaviour(
  "middleware wraps calls in order: the server's middleware is outside, the tool's middleware is inside",
  async (connect, { era }) => {
    const log: string[] = [];
    const work = tool({
      name: "work",
      use: [traced(log, "c"), traced(log, "d")],
      run: () => {
        log.push("run");
        return "";
      },
    });
    const { client } = await connect({ handlers: [work], use: [traced(log, "a"), traced(log, "b")] });
    log.length = 0;
    await client.callTool("work");
    const inner = ["> c tools/call", "> d tools/call", "run", "< d", "< c"];
    assertEquals(log, ["> a tools/call", "> b tools/call", ...inner, "< b", "< a"]);
    log.length = 0;
    await client.request("tools/list");
    assertEquals(log, ["> a tools/list", "> b tools/list", "< b", "< a"]);
    log.length = 0;
    const method = era === "modern" ? "server/discover" : "ping";
    await client.request(method);
    assertEquals(log, [`> a ${method}`, `> b ${method}`, "< b", "< a"]);
  },
);

behaviour("middleware can change a result, return its own result, or fail", async (connect) => {
  const use: Middleware = async (call, next) => {
    switch (call.params.name) {
      case "changed":
        return { ...await next(), _meta: { "example.com/by": "middleware" } };
      case "answered":
        return { content: [{ type: "text", text: "not run" }] };
      case "refused":
        throw new McpError(4050, "Not today");
      case "broken":
        throw new Error("secret");
      default:
        return await next();
    }
  };
  const ran: string[] = [];
  const handlers = ["changed", "answered", "refused", "broken"].map((name) =>
    plainTool(name, () => {
      ran.push(name);
      return "run";
    })
  );
  const { client, takeFaults } = await connect({ handlers, use: [use] });
  assertEquals(Object(await client.callTool("changed"))._meta["example.com/by"], "middleware");
  assertEquals(textOf(await client.callTool("answered")), "not run");
  assertEquals((await assertRejects(() => client.callTool("refused"), McpError)).code, 4050);
  const error = await assertRejects(() => client.callTool("broken"), McpError);
  const [fault] = takeFaults();
  assertEquals([error.code, error.message, error.data], [-32603, sentence(), { errorId: fault.id }]);
  assertEquals(ran, ["changed"]);
});

const steps = tool({
  name: "steps",
  input: z.object({ values: z.array(z.number()) }),
  async run({ values }, ctx) {
    for (const value of values) await ctx.progress(value, { total: 10, message: `at ${value}` });
    return "done";
  },
});

behaviour("progress is sent only if the client requested it, and only if its value grows", async (connect) => {
  const { client } = await connect({ handlers: [steps] });
  const values = [1, 2, 2, 1, 3.5, -1, 10];
  await client.callTool("steps", { values: [1, 2] });
  assertEquals(client.received, []);
  for (const progressToken of ["a", "", 0, 7]) {
    const heard: unknown[] = [];
    await client.callTool("steps", { values }, {
      meta: { progressToken },
      onNotification: (notification) => heard.push(notification),
    });
    assertEquals(
      heard,
      [1, 2, 3.5, 10].map((progress) => ({
        method: "notifications/progress",
        params: { progressToken, progress, total: 10, message: `at ${progress}` },
      })),
    );
  }
}, { versions: LEGACY_VERSIONS.slice(0, 3) });

behaviour("concurrent calls each get their own progress and result", async (connect) => {
  const slow = tool({
    name: "slow",
    input: z.object({ n: z.number() }),
    async run({ n }, ctx) {
      for (let i = 1; i <= 3; i++) {
        await ctx.progress(n * 100 + i);
        for (let turns = n % 3; turns > 0; turns--) await turn();
      }
      return n;
    },
  });
  const { client } = await connect({ handlers: [slow] });
  const calls = Array.from({ length: 30 }, async (_, n) => {
    const heard: unknown[] = [];
    const result = await client.callTool("slow", { n }, {
      meta: { progressToken: `token ${n}` },
      onNotification: ({ params }) => heard.push([params.progressToken, params.progress]),
    });
    return [textOf(result), ...heard];
  });
  const expected = calls.map((_, n) => [`${n}`, ...[1, 2, 3].map((i) => [`token ${n}`, n * 100 + i])]);
  assertEquals(await Promise.all(calls), expected);
});

behaviour("messages that a handler sends after its result are dropped", async (connect) => {
  const { pass, open } = gate();
  const said: Promise<unknown>[] = [];
  const late = plainTool("late", (ctx) => {
    said.push(pass.then(() => Promise.all([ctx.progress(1), ctx.log.error("late"), ctx.closeStream()])));
    return "done";
  });
  const next = tool({ name: "next", run: () => "next" });
  const { client } = await connect({ handlers: [late, next] }, { logLevel: "debug" });
  assertEquals(textOf(await client.callTool("late", {}, { meta: { progressToken: 1 } })), "done");
  open();
  await Promise.all(said);
  assertEquals(textOf(await client.callTool("next")), "next");
  assertEquals(client.received, []);
});

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
const logging = plainTool("logging", async (ctx) => {
  for (const level of LEVELS) await ctx.log[level]({ text: level }, { logger: "test" });
  return "";
});

for (const logLevel of [undefined, "debug", "warning", "emergency"] as const) {
  behaviour(`messages are filtered by the client's log level (${logLevel ?? "none"})`, async (connect, { era }) => {
    const { client } = await connect({ handlers: [logging] }, { logLevel });
    await client.callTool("logging");
    // A session without a log level uses the server's default. A client with neither a session nor a log level gets no
    // messages.
    const least = logLevel ?? (era === "legacy" ? "info" : undefined);
    const wanted = least ? LEVELS.slice(LEVELS.indexOf(least)) : [];
    assertEquals(
      client.received,
      wanted.map((level) => ({
        method: "notifications/message",
        params: { level, logger: "test", data: { text: level } },
      })),
    );
  }, { perInstance: "later" });
}

behaviour("the log level of a session can be changed, but only to a valid level", async (connect) => {
  const { client } = await connect({ handlers: [logging] }, { logLevel: "emergency" });
  for (const level of ["loud", 3, undefined, "constructor"]) {
    assertEquals((await assertRejects(() => client.request("logging/setLevel", { level }), McpError)).code, -32602);
  }
  assertEquals(await client.request("logging/setLevel", { level: "alert" }), {});
  await client.callTool("logging");
  assertEquals(client.received.map(({ params }) => params.level), ["alert", "emergency"]);
}, { eras: ["legacy"], versions: LEGACY_VERSIONS, perInstance: "later" });

behaviour("a call continues after logging data that cannot be serialized", async (connect) => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const odd = plainTool("odd", async (ctx) => {
    for (const data of [1n, cycle, undefined, () => {}, null, "fine"]) await ctx.log.error(data);
    return "done";
  });
  const { client } = await connect({ handlers: [odd] }, { logLevel: "debug" });
  assertEquals(textOf(await client.callTool("odd")), "done");
  assertEquals(client.received.length, 6);
  assertEquals(client.received.at(-1)?.params.data, "fine");
});

/** Creates a tool that waits until it is cancelled, and further handlers. */
function waiting() {
  const log: string[] = [];
  const { pass, open } = gate();
  const wait = tool({
    name: "wait",
    input: z.object({ n: z.number().default(0) }),
    async run({ n }, { signal }) {
      log.push(`start ${n}`);
      await Promise.race([pass, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      log.push(signal.aborted ? `cancelled ${n}` : `passed ${n}`);
      return `${n}`;
    },
  });
  const quick = tool({ name: "quick", run: () => "quick" });
  return { log, open, handlers: [wait, quick] };
}

behaviour("a cancelled call stops, gets no response, and does not affect other calls", async (connect) => {
  const { log, open, handlers } = waiting();
  const { client } = await connect({ handlers });
  const other = started(client.callTool("wait", { n: 2 }));
  const stop = new AbortController();
  const cancelled = assertRejects(
    () => client.callTool("wait", { n: 1 }, { signal: stop.signal, id: "mine" }),
    DOMException,
  );
  await until(() => log.length === 2, "both calls run");
  stop.abort();
  await cancelled;
  await until(() => log.includes("cancelled 1"), "the call is cancelled");
  assertEquals(textOf(await client.callTool("quick")), "quick");
  open();
  assertEquals(textOf(await other), "2");
  assertEquals(log.filter((line) => !line.startsWith("start")), ["cancelled 1", "passed 2"]);
  assert(
    !client.transcript.some((line) => line.startsWith('← {"jsonrpc":"2.0","id":"mine"')),
    "a cancelled call got a response",
  );
});

behaviour(
  "ctx.once computes one value for all concurrent callers, and computes again after a failure",
  async (connect) => {
    let made = 0;
    const make = async () => {
      await turn();
      return { made: ++made, on: new Date(0) };
    };
    const fail = () => Promise.reject(new Error("not now"));
    const run = async (_: unknown, { once }: Context) => {
      const [first, second] = await Promise.all([once("same", make), once("same", make)]);
      first.made = 7; // Each call gets its own copy.
      const failed = await once("later", fail).catch((error) => error.message);
      return [second, await once("same", make), failed, await once("later", () => "now")];
    };
    const { client } = await connect({ handlers: [tool({ name: "t", run })] });
    const value = { made: 1, on: "1970-01-01T00:00:00.000Z" };
    assertEquals(JSON.parse(textOf(await client.callTool("t"))), [value, value, "not now", "now"]);
  },
);

behaviour("a call that is cancelled during its validation does not start its handler", async (connect) => {
  const ran: string[] = [];
  const { pass, open } = gate();
  const checked = new Set<string>();
  const slow = z.object({ a: z.string() }).refine(async ({ a }) => {
    checked.add(a);
    await pass;
    return true;
  });
  const run = ({ a }: { readonly a: string }) => void ran.push(a);
  const handlers = [
    tool({ name: "slow", input: slow, run }),
    prompt({ name: "slow", input: slow, run: (input) => `${run(input)}` }),
    resource({ uri: "slow://{a}", name: "slow", variables: slow, read: (input) => `${run(input)}` }),
  ];
  let cancelled = 0;
  const count: Middleware = async (call, next) => {
    call.signal.addEventListener("abort", () => cancelled++);
    return await next();
  };
  const { client, takeFaults } = await connect({ handlers, use: [count] });
  const stop = new AbortController();
  const { signal } = stop;
  const calls = [
    client.callTool("slow", { a: "tool" }, { signal }),
    client.getPrompt("slow", { a: "prompt" }, { signal }),
    client.readResource("slow://resource", { signal }),
  ];
  for (const call of calls) started<unknown>(call);
  await until(() => checked.size === 3, "the calls are being validated");
  const staying = started(client.callTool("slow", { a: "staying" }));
  await until(() => checked.size === 4, "the last call is being validated");
  stop.abort();
  for (const call of calls) await assertRejects(() => call);
  await until(() => cancelled === 3, "the calls were cancelled");
  open();
  // The validation of this call ends after the validations of the cancelled calls.
  await staying;
  await turn(10);
  assertEquals(ran, ["staying"]);
  assertEquals(takeFaults(), []);
});

behaviour("a call with a large body can be cancelled before the call has sent a message", async (connect) => {
  const { log, handlers } = waiting();
  const { client } = await connect({ handlers });
  const stop = new AbortController();
  const args = { n: 1, padding: "x".repeat(5000) };
  const cancelled = started(assertRejects(() => client.callTool("wait", args, { signal: stop.signal }), DOMException));
  await until(() => log.length === 1, "the call runs");
  stop.abort();
  await cancelled;
  await until(() => log.includes("cancelled 1"), "the call is cancelled");
});

behaviour("a cancellation with an unknown request id is ignored", async (connect) => {
  const { log, open, handlers } = waiting();
  const { client } = await connect({ handlers });
  const running = started(client.callTool("wait", { n: 1 }, { id: 5 }));
  await until(() => log.length === 1, "the call runs");
  for (const requestId of ["5", 6, null, {}, [5], undefined, "__proto__"]) {
    await client.notify("notifications/cancelled", { requestId });
  }
  await client.notify("notifications/cancelled");
  await client.notify("notifications/no_such_thing", { requestId: 5 });
  open();
  assertEquals(textOf(await running), "1");
  await client.notify("notifications/cancelled", { requestId: 5 });
  assertEquals(textOf(await client.callTool("quick")), "quick");
});

behaviour("a call with id 0 can be cancelled", async (connect) => {
  const { log, handlers } = waiting();
  const { client } = await connect({ handlers });
  const stop = new AbortController();
  const cancelled = started(
    assertRejects(() => client.callTool("wait", {}, { signal: stop.signal, id: 0 }), DOMException),
  );
  await until(() => log.length === 1, "the call runs");
  stop.abort();
  await cancelled;
  await until(() => log.includes("cancelled 0"), "the call is cancelled");
});

behaviour("a lost connection cancels a call only if the call has no session", async (connect, { era }) => {
  const { log, open, handlers } = waiting();
  const { client, server } = await connect({ handlers });
  const staying = started(client.callTool("wait", { n: 1 }));
  await until(() => log.length === 1, "the call runs");
  // This call has its own connection. In the legacy era, it belongs to the same session.
  const body = { jsonrpc: "2.0", id: 9, method: "tools/call", params: { name: "wait", arguments: { n: 2 } } };
  const meta = {
    "io.modelcontextprotocol/protocolVersion": client.server.version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const response = await server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": client.server.version,
        ...era === "modern"
          ? { "mcp-method": "tools/call", "mcp-name": "wait" }
          : { "mcp-session-id": client.sessionId ?? "" },
      },
      body: JSON.stringify(era === "modern" ? { ...body, params: { ...body.params, _meta: meta } } : body),
    }),
  );
  await until(() => log.length === 2, "the second call runs");
  assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
  assert(response.body);
  await response.body.cancel(); // This closes the connection.
  if (era === "modern") await until(() => log.includes("cancelled 2"), "the call is cancelled");
  // If the server cancelled the call in a session, the log would show the cancellation before the next response.
  assertEquals(textOf(await client.callTool("quick")), "quick");
  await turn(10);
  assertEquals(log.slice(2), era === "modern" ? ["cancelled 2"] : []);
  open();
  assertEquals(textOf(await staying), "1");
  await until(() => log.length === 4, "both calls end");
  assertEquals(log.slice(2).sort(), era === "modern" ? ["cancelled 2", "passed 1"] : ["passed 1", "passed 2"]);
}, { transports: ["memory"] });

behaviour("two concurrent calls can have the same id", async (connect) => {
  const { log, open, handlers } = waiting();
  const { client } = await connect({ handlers });
  const calls = [1, 2, 3].map((n) => started(client.callTool("wait", { n }, { id: 1, meta: { progressToken: 1 } })));
  await until(() => log.length === 3, "all calls run");
  open();
  const results = await Promise.all(calls);
  assertEquals(results.map(textOf).sort(), ["1", "2", "3"]);
});

behaviour("clients that use the same request ids never get each other's responses", async (connect) => {
  const echo = tool({
    name: "echo",
    input: z.object({ text: z.string() }),
    async run({ text }, ctx) {
      await ctx.progress(1, { message: text });
      for (let turns = Math.random() * 3; turns > 0; turns--) await turn();
      return text;
    },
  });
  const { client, join } = await connect({ handlers: [echo] });
  const clients = [client, ...await Promise.all([join(), join(), join()])];
  await Promise.all(clients.map(async (client, who) => {
    for (let i = 0; i < 10; i++) {
      const result = await client.callTool("echo", { text: `${who}-${i}` }, { id: i, meta: { progressToken: "same" } });
      assertEquals(textOf(result), `${who}-${i}`);
    }
    assertEquals(
      client.received.map(({ params }) => params.message),
      Array.from({ length: 10 }, (_, i) => `${who}-${i}`),
    );
  }));
});

behaviour("request ids are returned unchanged", async (connect) => {
  const { client } = await connect({ handlers: [tool({ name: "quick", run: () => "" })] });
  for (const id of [0, -1, Number.MAX_SAFE_INTEGER, "", "0", 'é"\\\n😀', "x".repeat(256)]) {
    // The client refuses a response with another id.
    assertEquals(textOf(await client.callTool("quick", {}, { id })), "");
  }
});

behaviour("the server ends a call that exceeds its timeout, and aborts the handler's signal", async (connect) => {
  const { log, handlers } = waiting();
  const { client } = await connect({ handlers, limits: { calls: { timeoutMs: 60 } } });
  const error = await assertRejects(() => client.callTool("wait"), McpError);
  assertEquals(error.code, -32603);
  assertStringIncludes(error.message, "calls.timeoutMs");
  await until(() => log.includes("cancelled 0"), "the handler's signal aborts");
  assertEquals(textOf(await client.callTool("quick")), "quick");
});

behaviour(
  "calls beyond the concurrency limit wait in a queue; when the queue is full, calls are refused with the limit's name",
  async (connect, { transport, era }) => {
    const { log, open, handlers } = waiting();
    const { client } = await connect({ handlers, limits: testLimits({ calls: { running: 2, waiting: 1 } }) });
    const [first, second] = [1, 2].map((n) => started(client.callTool("wait", { n })));
    await until(() => log.length === 2, "two calls run");
    const third = started(client.callTool("wait", { n: 3 }));
    // The server accepts calls in order, so when the fourth call has been refused, the third call is in the queue.
    const error = await assertRejects(() => client.callTool("wait", { n: 4 }), McpError);
    assertStringIncludes(error.message, "calls.running, calls.waiting");
    assertEquals(error.status, transport === "pipe" ? undefined : era === "modern" ? 503 : 429);
    assertEquals(log, ["start 1", "start 2"]);
    open();
    assertEquals((await Promise.all([first, second, third])).map(textOf), ["1", "2", "3"]);
  },
  { transports: ["memory", "pipe"] },
);

behaviour("one client cannot occupy every slot", async (connect) => {
  const { log, open, handlers } = waiting();
  const { client, join } = await connect({ handlers, limits: { calls: { runningPerClient: 2 } } }, {
    principal: { id: "ada" },
  });
  const other = await join({ principal: { id: "bob" } });
  const calls = [1, 2, 3, 4].map((n) => started(client.callTool("wait", { n })));
  await until(() => log.length === 2, "two calls run");
  assertEquals(textOf(await other.callTool("quick")), "quick");
  assertEquals(log, ["start 1", "start 2"]);
  open();
  assertEquals((await Promise.all(calls)).map(textOf), ["1", "2", "3", "4"]);
}, { perInstance: "limits" });

behaviour("a result above the size limit is an internal error", async (connect) => {
  const give = tool({ name: "give", input: z.object({ n: z.number() }), run: ({ n }) => "x".repeat(n) });
  const { client, takeFaults } = await connect({ handlers: [give], limits: { calls: { resultBytes: 1000 } } });
  assertEquals(textOf(await client.callTool("give", { n: 500 })).length, 500);
  const error = await assertRejects(() => client.callTool("give", { n: 2000 }), McpError);
  assertEquals([error.code, error.message], [-32603, sentence()]);
  assertStringIncludes(
    String(takeFaults()[0].error),
    sentence('tools/call "give"', 1000, "calls.resultBytes"),
  );
});

behaviour(
  "a message that is nested too deeply or is too long is refused with the name of the limit",
  async (connect, { transport }) => {
    const any = tool({ name: "any", input: { type: "object" }, run: () => "taken" });
    const limits = testLimits({ request: { depth: 20, methodCharacters: 30, idCharacters: 10 } });
    const { client } = await connect({ handlers: [any], limits });
    let deep: object = {};
    for (let i = 0; i < 30; i++) deep = { deep };
    const cases = [
      ["request.depth", (signal: AbortSignal) => client.callTool("any", { deep }, { signal })],
      ["request.methodCharacters", (signal: AbortSignal) => client.request("x".repeat(31), {}, { signal })],
      [
        "request.idCharacters",
        (signal: AbortSignal) => client.request("tools/list", {}, { id: "x".repeat(11), signal }),
      ],
    ] as const;
    for (const [name, send] of cases) {
      // Over a pipe, the client cannot match a response without an id to its request, so read the transcript.
      const before = client.transcript.length;
      const stop = new AbortController();
      const failing = assertRejects(() => send(stop.signal));
      const read = () => client.transcript.slice(before).filter((line) => line.startsWith("←")).join("\n");
      await until(() => read().includes(name), "the response", read);
      if (transport === "pipe") stop.abort();
      const error = await failing;
      if (transport !== "pipe") {
        assert(
          error instanceof McpError && error.status === 400 && error.code === -32600,
          name,
        );
      }
    }
    assertEquals(textOf(await client.callTool("any", {})), "taken");
  },
);

behaviour(
  "a server that is closing finishes running calls and accepts no new calls",
  async (connect, { transport }) => {
    const { log, open, handlers } = waiting();
    const { client, server } = await connect({ handlers });
    const running = started(client.callTool("wait", { n: 1 }));
    await until(() => log.length === 1, "the call runs");
    const closing = server.close();
    assertEquals(server.close(), closing);
    if (transport !== "pipe") {
      const error = await assertRejects(() => client.callTool("quick"), McpError);
      assertEquals([error.status, error.code], [503, -32600]);
    }
    open();
    assertEquals(textOf(await running), "1");
    await closing;
  },
  { transports: ["memory", "pipe"] },
);

behaviour("a server that is closing cancels calls that do not end before its deadline", async (connect) => {
  const { log, handlers } = waiting();
  const { client, server } = await connect({ handlers, limits: { calls: { closeMs: 30 } } });
  const running = client.callTool("wait", { n: 1 }).catch(() => {});
  await until(() => log.length === 1, "the call runs");
  await server.close();
  await until(() => log.includes("cancelled 1"), "the call is cancelled");
  await client.close();
  await running;
});
