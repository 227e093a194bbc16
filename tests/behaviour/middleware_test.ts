// Middleware runs for every method that the server serves, in every era and over every transport.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, extension, isQuestion, McpError, onlyMethods, prompt, resource, tool } from "../../mod.ts";
import type { Middleware } from "../../mod.ts";
import { type Layer, layer } from "../../src/layers/layers.ts";
import { behaviour, gate, LEGACY_VERSIONS, started, textOf, turn, until } from "../support/behaviour.ts";
import { LATE_STREAMS, testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

const handlers = [
  tool({ name: "t", run: () => "t" }),
  prompt({ name: "p", run: () => "p" }),
  resource({ uri: "x://{id}", name: "x", complete: { id: () => [] }, read: () => "x" }),
];

for (const waits of [false, true]) {
  behaviour(`middleware runs for every method${waits ? ", and can be slow" : ""}`, async (connect, { era }) => {
    const seen: string[] = [];
    const ended: string[] = [];
    const use: Middleware = async (call, next) => {
      seen.push(call.method);
      if (waits) await turn();
      const result = await next();
      if (waits) await turn();
      ended.push(call.method);
      return result;
    };
    const { client, server } = await connect({ handlers, use: [use] });
    // In a session, the notification stream is opened without a method, so no middleware runs for it.
    const subscription = await client.subscribe({ toolsListChanged: true, resourceSubscriptions: ["x://1"] });
    const ref = { type: "ref/resource", uri: "x://{id}" };
    const wanted: [string, Record<string, unknown>?][] = [
      ["tools/list"],
      ["tools/call", { name: "t" }],
      ["prompts/list"],
      ["prompts/get", { name: "p" }],
      ["resources/list"],
      ["resources/templates/list"],
      ["resources/read", { uri: "x://1" }],
      ["completion/complete", { ref, argument: { name: "id", value: "" } }],
      ...era === "modern"
        ? [["server/discover"] as [string]]
        : [["ping"], ["logging/setLevel", { level: "error" }], ["resources/unsubscribe", { uri: "x://1" }]] as [
          string,
          Record<string, unknown>?,
        ][],
    ];
    for (const [method, params] of wanted) await client.request(method, params);
    for (const method of ["no/such", era === "modern" ? "ping" : "server/lookup"]) {
      assertEquals((await assertRejects(() => client.request(method), McpError)).code, -32601);
    }
    const first = era === "modern" ? ["subscriptions/listen"] : ["initialize", "resources/subscribe"];
    assertEquals(seen, [...first, ...wanted.map(([method]) => method)]);
    if (era === "modern") assert(!ended.includes("subscriptions/listen"), "the subscription ended early");
    server.handlers.add(tool({ name: "late", run: () => "x" }));
    await subscription.take(1);
    await server.close();
    if (era === "modern") {
      await until(() => ended.includes("subscriptions/listen"), "the subscription has ended");
      if (!waits) assertEquals((await subscription.ended)?.resultType, "complete");
    }
  });
}

behaviour(
  "middleware can refuse any method, and a refused call frees its resources",
  async (connect, { era, transport }) => {
    let refused = "";
    const use: Middleware = async (call, next) => {
      await turn();
      if (call.method === refused) throw new McpError(4050, "Not today", { method: call.method });
      return await next();
    };
    const { client, join } = await connect({
      handlers,
      use: [use],
      limits: testLimits({ ...LATE_STREAMS, connections: { streams: 1 } }),
    });
    const fail = async (method: string, params?: Record<string, unknown>) => {
      refused = method;
      const error = await assertRejects(() => client.request(method, params), McpError, "Not today");
      assertEquals([error.code, error.data], [4050, { method }]);
      assertEquals(error.status, transport === "pipe" ? undefined : era === "modern" ? 400 : 200, method);
    };
    if (era === "modern") {
      for (let i = 0; i < 3; i++) await fail("subscriptions/listen", { notifications: {} });
      refused = "";
      // The refused subscriptions have freed their slots.
      await (await client.subscribe({ toolsListChanged: true })).close();
      await fail("server/discover");
    } else {
      for (
        const [method, params] of [
          ["ping"],
          ["logging/setLevel", { level: "error" }],
          ["resources/subscribe", { uri: "x://1" }],
          ["resources/unsubscribe", { uri: "x://1" }],
        ] as const
      ) await fail(method, params);
      refused = "initialize";
      assertEquals((await assertRejects(() => join(), McpError, "Not today")).code, 4050);
    }
    refused = "";
    assertEquals((await client.listTools()).length, 1);
  },
);

behaviour(
  "middleware can read the client's info in a handshake, and the server's response to it",
  async (connect, { version }) => {
    const seen: unknown[] = [];
    const use: Middleware = async (call, next) => {
      if (call.method !== "initialize") return await next();
      const { client, principal, params, http } = call;
      seen.push([
        client.version,
        client.info?.name,
        client.capabilities,
        principal?.id,
        params.protocolVersion,
        !!http,
      ]);
      // The server must not send a notification before the response to the handshake, because that response contains
      // the session id.
      await call.log.emergency("hello");
      await call.progress(1);
      await turn();
      await assertRejects(() => call.roots(), TypeError, sentence("initialize"));
      return { ...await next(), instructions: `For ${principal?.id}` };
    };
    const { client } = await connect({ handlers, use: [use] }, {
      principal: { id: "ada" },
      capabilities: { roots: {} },
    });
    const { http } = { http: seen.length && (seen[0] as unknown[])[5] };
    assertEquals(seen, [[version, "test", { roots: {} }, "ada", version, http]]);
    assertEquals(client.handshake?.instructions, "For ada");
    assertEquals(client.received, []);
    assertEquals((await client.listTools()).length, 1, "the session is not open");
  },
  { eras: ["legacy"], versions: LEGACY_VERSIONS },
);

behaviour("middleware is notified when a client ends its subscription", async (connect) => {
  const log: unknown[] = [];
  const { pass, open } = gate();
  const use: Middleware = async (call, next) => {
    if (call.method !== "subscriptions/listen") return await next();
    try {
      return await next();
    } catch (error) {
      log.push(Object(error).name);
      throw error;
    } finally {
      log.push("finally", call.signal.aborted);
      open();
    }
  };
  const { client, takeFaults } = await connect({ handlers, use: [use] });
  const subscription = await client.subscribe({ toolsListChanged: true });
  await subscription.close();
  await pass;
  assertEquals(takeFaults(), []);
  assertEquals(log.slice(-2), ["finally", true]);
  assertEquals(log.length, 3);
}, { eras: ["modern"] });

behaviour("a subscription that cannot be opened fails in the same way with and without middleware", async (connect) => {
  for (const use of [[], [((_call, next) => next()) as Middleware]]) {
    const { client } = await connect({ handlers, use, limits: testLimits({ streams: { watchedUris: 1 } }) });
    const notifications = { resourceSubscriptions: ["a:1", "a:2"] };
    const error = await assertRejects(() => client.request("subscriptions/listen", { notifications }), McpError);
    assertEquals(error.code, -32602);
    const none = await assertRejects(() => client.request("subscriptions/listen", {}), McpError);
    assertEquals(none.code, -32602);
  }
}, { eras: ["modern"] });

behaviour(
  "the number of subscriptions that wait for middleware is limited, and a waiting subscription can be cancelled",
  async (connect, { transport }) => {
    const { pass, open } = gate();
    let waiting = 0;
    let opened = 0;
    const use: Middleware = async (call, next) => {
      if (call.method !== "subscriptions/listen") return await next();
      waiting++;
      await pass;
      const result = next();
      opened++;
      return await result;
    };
    const limits = { calls: { running: 2, runningPerClient: 2 } };
    const { client } = await connect({ handlers, use: [use], limits });
    const listen = (id: string) => client.request("subscriptions/listen", { notifications: {} }, { id });
    const first = [listen("a"), listen("b")].map((each) => each.catch((error) => error));
    await until(() => waiting === 2, "two subscriptions wait");
    const error = await assertRejects(() => listen("c"), McpError);
    assertEquals(error.status, transport === "pipe" ? undefined : 503);
    if (transport === "pipe") await client.notify("notifications/cancelled", { requestId: "a" });
    open();
    await until(() => opened === 2, "the waiting subscriptions continue");
    // The subscriptions no longer occupy their slots.
    assertEquals((await client.listTools()).length, 1);
    void first;
  },
  { eras: ["modern"], transports: ["http", "pipe"], perInstance: "limits" },
);

Deno.test("a ping before the handshake passes through middleware too", async () => {
  const seen: unknown[] = [];
  const use: Middleware = async ({ method, client }, next) => {
    seen.push([method, client.capabilities]);
    return await next();
  };
  const server = createServer({ name: "s", version: "1", handlers, use: [use] });
  const { serveStdio } = await import("../../src/server/transports/stdio/stdio.ts");
  let written = "";
  await serveStdio(server, {
    input: new Blob(['{"jsonrpc":"2.0","id":1,"method":"ping"}\n']).stream(),
    output: (bytes) => Promise.resolve(void (written += new TextDecoder().decode(bytes))),
  });
  await server.close();
  assertEquals([JSON.parse(written).result, seen], [{}, [["ping", {}]]]);
});

behaviour(
  "next() rejects with the reason of the cancellation, even if the handler ignores its signal",
  async (connect) => {
    const caught: unknown[] = [];
    const { pass, open } = gate();
    const stubborn = tool({ name: "stubborn", run: () => pass.then(() => "late") });
    const watch: Middleware = async (call, next) => {
      try {
        return await next();
      } catch (error) {
        assert(error === call.signal.reason);
        caught.push(error);
        throw error;
      }
    };
    const own = tool({ name: "own", use: [watch], run: () => pass });
    const options = { handlers: [stubborn, own], use: [watch], limits: { calls: { timeoutMs: 20 } } };
    const { client } = await connect(options);
    const late = await assertRejects(() => client.callTool("stubborn"), McpError);
    await until(() => caught.length === 1, "next() has rejected in the server's middleware");
    const [{ why, code, name, message }] = caught.map(Object);
    assertEquals([why, code, name], ["timeout", -32603, "TimeoutError"]);
    assertEquals([late.code, late.message], [code, message]);
    await assertRejects(() => client.callTool("own"), McpError);
    await until(() => caught.length === 3, "next() has rejected in the tool's middleware too");
    open();
  },
);

behaviour("next() rejects if the client cancels the call, and causes no unhandled rejection", async (connect) => {
  const { pass, open } = gate();
  const reasons: unknown[] = [];
  const calls: (() => Promise<unknown>)[] = [];
  // Middleware that does not await next() must not end the process.
  const careless: Middleware = async (call, next) => {
    calls.push(next);
    if (call.params.name !== "waits") return await next();
    void next();
    call.signal.addEventListener("abort", () => reasons.push(call.signal.reason));
    await pass;
    return await next();
  };
  let runs = 0;
  const waits = tool({
    name: "waits",
    async run() {
      runs++;
      await pass;
    },
  });
  const { client } = await connect({ handlers: [waits], use: [careless] });
  const stop = new AbortController();
  const calling = client.callTool("waits", {}, { signal: stop.signal }).catch(() => {});
  await until(() => runs === 1, "the handler runs");
  stop.abort(new Error("enough"));
  await calling;
  await until(() => reasons.length === 1, "the call was cancelled");
  open();
  await turn(3);
});

behaviour("middleware can distinguish an open question from a failure", async (connect, { era }) => {
  const seen: unknown[] = [];
  const watch: Middleware = async (_call, next) => {
    try {
      return await next();
    } catch (error) {
      seen.push(isQuestion(error));
      throw error;
    }
  };
  const asks = tool({
    name: "asks",
    async run(_input, ctx) {
      const { action } = await ctx.elicit("ok", { message: "OK?", schema: { type: "object", properties: {} } });
      if (action !== "accept") throw McpError.invalidRequest("no");
      return "yes";
    },
  });
  const use = [onlyCalls(watch)];
  let action: "accept" | "decline" = "accept";
  const onElicit = () => action === "accept" ? { action, content: {} } : { action };
  const { client } = await connect({ handlers: [asks], use }, { onElicit });
  await client.callTool("asks");
  assertEquals(seen, era === "modern" ? [true] : []);
  action = "decline";
  await assertRejects(() => client.callTool("asks"), McpError, "no");
  assertEquals(seen, era === "modern" ? [true, true, false] : [false]);
  for (const other of [undefined, null, "a question", new Error("The client is being asked")]) {
    assert(!isQuestion(other));
  }
});

function onlyCalls(middleware: Middleware): Middleware {
  return async (call, next) => call.method === "tools/call" ? await middleware(call, next) : await next();
}

const late = extension({ id: "com.example/late" });

/** Layers with which the handler starts after different steps. */
const LATE_STARTS: Readonly<Record<string, readonly (Middleware | Layer)[]>> = {
  "no layer": [],
  "a layer with enter": [layer(() => ({ name: "enter", enter: (_call, next) => next() }))],
  "an input guard": [layer(() => ({ name: "guard", onInput: () => undefined }))],
  "an idempotency key": [layer(() => ({ name: "key", key: () => "k" }))],
  "a layer of an extension": [late.layer({ around: async (_call, next) => await next() })],
};

for (const [name, use] of Object.entries(LATE_STARTS)) {
  behaviour(`a handler with ${name} does not start after the response, and the error has words`, async (connect) => {
    let runs = 0;
    const starts: (() => Promise<unknown>)[] = [];
    const { client, takeFaults } = await connect({
      handlers: [late, tool({ name: "t", use, annotations: { readOnlyHint: true }, run: () => `${++runs}` })],
      use: [onlyMethods(["tools/call"], async (_call, next) => {
        starts.push(next);
        return await Promise.resolve({ content: [{ type: "text", text: "early" }] });
      })],
    });
    assertEquals(textOf(await client.callTool("t")), "early");
    await turn(3);
    const outcomes = await Promise.allSettled(starts.map((start) => start()));
    const rejected = outcomes.flatMap((outcome) => outcome.status === "rejected" ? [outcome.reason] : []);
    const errors = [...rejected, ...takeFaults().map(({ error }) => error)];
    const messages = errors.map((error) => error instanceof Error ? error.message : error);
    assertEquals([messages, runs], [[sentence("next()")], 0]);
  });
}

behaviour("prompts and resources do not start after the response, and the error has words", async (connect) => {
  let runs = 0;
  const starts: (() => Promise<unknown>)[] = [];
  const { client, takeFaults } = await connect({
    handlers: [
      prompt({ name: "p", run: () => `${++runs}` }),
      resource({ uri: "x://r", name: "r", read: () => `${++runs}` }),
    ],
    use: [onlyMethods(["prompts/get", "resources/read"], async (call, next) => {
      starts.push(next);
      return await Promise.resolve(call.method === "prompts/get" ? { messages: [] } : { contents: [] });
    })],
  });
  await client.getPrompt("p");
  await client.readResource("x://r");
  await turn(3);
  await Promise.allSettled(starts.map((start) => start()));
  const messages = takeFaults().map(({ error }) => error instanceof Error ? error.message : error);
  assertEquals([messages, runs], [[sentence("next()"), sentence("next()")], 0]);
});

behaviour("a handler whose input is validated during the response does not start, and is reported", async (connect) => {
  let runs = 0;
  const { pass, open } = gate();
  const input = z.object({}).refine(() => pass.then(() => true));
  const { client, takeFaults } = await connect({
    handlers: [tool({ name: "t", input, run: () => `${++runs}` })],
    use: [onlyMethods(["tools/call"], async (_call, next) => {
      started(next());
      await turn();
      return { content: [{ type: "text", text: "early" }] };
    })],
  });
  assertEquals(textOf(await client.callTool("t")), "early");
  open();
  const faults: unknown[] = [];
  await until(
    () => faults.push(...takeFaults().map(({ error }) => error instanceof Error ? error.message : error)),
    "a fault",
  );
  assertEquals([faults, runs], [[sentence("next()")], 0]);
});
