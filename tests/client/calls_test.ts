// The client with this library's own server, in both eras over every transport.
import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  type Client,
  clientExtension,
  connect,
  type ConnectOptions,
  McpError,
  type Notification,
  type Progress,
} from "../../src/client/client.ts";
import { startHttpServer, toCommand } from "../../src/testing/http_server.ts";
import { started, textOf, until } from "../support/behaviour.ts";
import { createLibrary } from "./server.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { withTimersOn } from "../support/timers.ts";
import { z } from "zod";
import { sentence } from "../support/messages.ts";
import { discovered, fakeHttp, ok, url } from "./fakes.ts";

const ways = (["modern", "legacy"] as const).flatMap((era) =>
  (["http", "stdio", "memory"] as const).map((transport) => ({ era, transport }))
);

type Way = typeof ways[number];
type Join = (options?: ConnectOptions) => Promise<Client>;

/** Registers one test per era and transport. */
function everyWay(name: string, run: (join: Join, way: Way) => Promise<void>): void {
  for (const way of ways) {
    Deno.test(`${name} (${way.era} over ${way.transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const server = createLibrary();
      stack.defer(() => server.close());
      const [command, ...args] = toCommand(new URL("./server.ts", import.meta.url));
      const host = way.transport === "http" ? startHttpServer(server.fetch) : undefined;
      if (host) stack.defer(host.stop);
      const target = host ? `${host.origin}/mcp` : way.transport === "stdio" ? { command, args } : server;
      const warnings: string[] = [];
      // Use a long probe timeout, because a process that starts slowly would otherwise count as legacy.
      const usual = { era: way.era, probeMs: 30_000, onWarning: (text: string) => void warnings.push(text) };
      await run(async (options) => stack.use(await connect(target, { ...usual, ...options })), way);
      assertEquals(warnings, []);
    });
  }
}

everyWay("the client exposes the server's info", async (join, { era }) => {
  const client = await join();
  const { info, instructions, version, capabilities } = client.server;
  assertEquals([info?.name, info?.version, instructions], ["library", "1.0.0", "Be quiet."]);
  assertEquals([client.server.era, version], [era, era === "modern" ? "2026-07-28" : "2025-11-25"]);
  assert("tools" in capabilities && "prompts" in capabilities);
});

everyWay("lists are complete for every page size", async (join) => {
  const client = await join();
  const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name);
  assertEquals(names(await client.listTools()), ["echo", "count", "wait", "ended", "join", "pay", "lend"]);
  assertEquals(names(await client.listResources()), ["book 1", "book 2", "book 3"]);
  assertEquals(names(await client.listResourceTemplates()), ["shelf"]);
  const [{ name, arguments: args }] = await client.listPrompts();
  assertEquals([name, args], ["review", [{ name: "book", required: true }]]);
});

everyWay("tools are called, resources are read, prompts are rendered, and arguments are completed", async (join) => {
  const client = await join();
  assertEquals(textOf(await client.callTool("echo", { text: "hi", times: 2 })), "hihi");
  const { contents } = await client.readResource("book://2");
  assertEquals(contents[0].text, "Text of book 2");
  const { messages } = await client.getPrompt("review", { book: "Emma" });
  assertEquals(textOf({ content: [messages[0].content] }), "Review Emma");
  const books = await client.complete({ type: "ref/prompt", name: "review" }, { name: "book", value: "E" });
  assertEquals(books.values, ["Emma", "Ezra"]);
  const letters = await client.complete({ type: "ref/resource", uri: "shelf://{letter}" }, {
    name: "letter",
    value: "",
  }, { arguments: { other: "x" } });
  assertEquals(letters.values, ["a", "b"]);
});

everyWay("text that headers cannot encode arrives unchanged", async (join) => {
  const client = await join();
  await client.listTools();
  for (const text of ["naïve 世界", " padded ", "two\nlines", "=?base64?aGk=?=", ""]) {
    assertEquals(textOf(await client.callTool("echo", { text, times: 1 })), text);
  }
});

everyWay("protocol errors have a code, and a failing tool returns an error result", async (join) => {
  const client = await join();
  const unknown = await assertRejects(() => client.callTool("nothing"), McpError);
  assertEquals(unknown.code, -32602);
  assertEquals((await assertRejects(() => client.request("no/method"), McpError)).code, -32601);
  const failed = await client.callTool("echo", {});
  assertEquals(failed.isError, true);
});

everyWay("the client receives progress notifications and log messages", async (join) => {
  const heard: Notification[] = [];
  const client = await join({ onNotification: (notification) => void heard.push(notification), logLevel: "warning" });
  const progress: unknown[] = [];
  await client.callTool("count", {}, { onProgress: (step) => void progress.push([step.progress, step.total]) });
  await until(() => progress.length === 3 && heard.some(({ method }) => method === "notifications/message"), "log");
  assertEquals(progress, [[1, 3], [2, 3], [3, 3]]);
  const log = heard.find(({ method }) => method === "notifications/message");
  assertEquals([log?.params.level, log?.params.data], ["warning", { counted: 3 }]);
});

everyWay("each of several concurrent calls receives only its own progress", async (join) => {
  const client = await join();
  const tokens = await Promise.all([1, 2].map(async (n) => {
    const heard: unknown[] = [];
    await client.callTool("count", {}, {
      meta: { progressToken: `token ${n}` },
      onNotification: ({ method, params }) =>
        void (method === "notifications/progress" && heard.push(params.progressToken)),
    });
    return heard;
  }));
  assertEquals(tokens, [Array(3).fill("token 1"), Array(3).fill("token 2")]);
});

everyWay("the log level can be changed", async (join) => {
  const levels: unknown[] = [];
  const client = await join({
    onNotification: ({ method, params }) => void (method === "notifications/message" && levels.push(params.level)),
  });
  await client.setLogLevel("error");
  await client.callTool("count");
  await client.setLogLevel("debug");
  await client.callTool("count");
  await until(() => levels.length > 0, "a message");
  assertEquals(levels, ["warning"]);
});

everyWay("a call ends when its signal aborts or its timeout expires", async (join) => {
  const client = await join();
  const stop = new AbortController();
  const waiting = client.callTool("wait", {}, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error("enough")),
  });
  await assertRejects(() => waiting, Error, "enough");
  const clock = fakeClock();
  const timeoutMs = 12_345;
  await withTimersOn(clock, timeoutMs, async () => {
    let isRunning = false;
    const late = started(client.callTool("wait", {}, { timeoutMs, onProgress: () => isRunning = true }));
    await until(() => isRunning, "the second call runs");
    await clock.advance(timeoutMs);
    assertEquals((await assertRejects(() => late, DOMException)).name, "TimeoutError");
  });
  // The client has sent a cancellation for both calls.
  await until(async () => textOf(await client.callTool("ended")) === "2", "the server stops both calls");
});

everyWay("elicitations are answered, and omitted fields get their defaults", async (join, { era }) => {
  const seen: unknown[] = [];
  const client = await join({
    onElicit({ message, requestedSchema }) {
      seen.push(message, requestedSchema.type);
      return { action: "accept", content: { age: 28 } };
    },
    onElicitUrl({ url }) {
      seen.push(url);
      return { action: "decline" };
    },
    onSample({ messages: [message] }) {
      seen.push(message.role);
      return { role: "assistant", model: "m", content: { type: "text", text: "Welcome" } };
    },
    roots: () => [{ uri: "file:///home" }],
  });
  const text = textOf(await client.callTool("join"));
  const content = { name: "Ada", age: 28, likes: ["maps"] };
  assertEquals(JSON.parse(text), [{ action: "accept", content }, "file:///home", { type: "text", text: "Welcome" }]);
  assertEquals(textOf(await client.callTool("pay")), "decline");
  assertEquals(seen, ["Who are you?", "object", "user", "https://pay.test/1"], era);
});

everyWay("the client declares capabilities only for the callbacks in its options", async (join, { era }) => {
  const client = await join({ onElicit: () => ({ action: "decline" }) });
  for (const name of ["pay", "join"]) {
    // In sessions, clients treat a tool that needs a missing capability as a failed tool.
    if (era === "legacy") assertEquals((await client.callTool(name)).isError, true);
    else await assertRejects(() => client.callTool(name), McpError);
  }
});

everyWay("a subscription reports changes while it is open", async (join) => {
  const client = await join();
  const subscription = await client.subscribe({ toolsListChanged: true, resourceSubscriptions: ["book://1"] });
  assertEquals(subscription.granted, { toolsListChanged: true, resourceSubscriptions: ["book://1"] });
  const other = await client.subscribe({ resourceSubscriptions: ["book://1", "book://2"] });
  const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  assertEquals((await client.subscribe(lists)).granted, lists);
  const heard: string[] = [];
  const reading = (async () => {
    for await (const { method, params } of subscription) {
      heard.push(`${method.slice("notifications/".length)} ${params.uri ?? ""}`.trim());
      if (new Set(heard).size === 2) break;
    }
  })();
  await client.callTool("lend");
  await client.callTool("lend");
  await reading;
  assertEquals([...new Set(heard)].sort(), ["resources/updated book://1", "tools/list_changed"]);
  await subscription.close();
  assertEquals(await subscription.ended, undefined);
  // Closing the first subscription does not close the other subscription.
  const first = await other[Symbol.asyncIterator]().next();
  assertEquals(first.value.params.uri, "book://1");
});

everyWay("running calls fail when the client is closed, and a second close does nothing", async (join) => {
  const client = await join();
  const subscription = await client.subscribe({ toolsListChanged: true });
  const started = Promise.withResolvers<void>();
  const waiting = client.callTool("wait", {}, { onProgress: () => started.resolve() });
  waiting.catch(() => {});
  await started.promise;
  await Promise.all([client.close(), client.close()]);
  await assertRejects(() => waiting, Error);
  await subscription.ended;
});

// Timeouts and signals end a request, whatever the request is waiting for.

const asks = { resultType: "input_required", inputRequests: { name: { method: "roots/list" } }, requestState: "s" };
const ticket = { resultType: "ticket", ticketId: "1" };
const never = new Promise<never>(() => {});

/** Creates a server that responds to tool calls with the given results in order, and repeats the last result. */
function responding(...results: readonly object[]) {
  let calls = 0;
  return fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    return heard.method === "tools/call" ? ok(heard, results[Math.min(calls++, results.length - 1)]) : ok(heard);
  });
}

function ticketsThat(finish: Parameters<typeof clientExtension<{ ticket: z.ZodObject }>>[0]["results"]) {
  return clientExtension({ id: "com.example/tickets", results: finish });
}

const schema = z.looseObject({ ticketId: z.string() });

/** What a request waits for, with the server results and client options that cause the wait. */
const waits: Readonly<Record<string, { results: readonly object[]; options: ConnectOptions }>> = {
  "an extension that never finishes it": {
    results: [ticket],
    options: { extensions: [ticketsThat({ ticket: { schema, finish: () => never } })] },
  },
  "a user who never answers": { results: [asks], options: { roots: () => never } },
  "a server that asks repeatedly": { results: [asks], options: { roots: [] } },
  "a middleware function that never returns": {
    results: [],
    options: { use: [(request, next) => request.method === "tools/call" ? never : next()] },
  },
  "a token": { results: [], options: { auth: slowAuth() } },
};

function slowAuth(): NonNullable<ConnectOptions["auth"]> {
  let isFirst = true;
  return {
    token() {
      if (!isFirst) return never;
      isFirst = false;
      return undefined;
    },
  };
}

for (const [what, { results, options }] of Object.entries(waits)) {
  Deno.test(`a request times out while it waits for ${what}`, async () => {
    // Delay the responses of the server that asks repeatedly, so that the timeout expires before the limit on rounds.
    const server = responding(...results);
    const fetch = async (request: Request) => {
      const response = await server.fetch(request);
      // Fixed wait: a server that takes a fixed time for each response.
      if (what.includes("repeatedly")) await new Promise((resolve) => setTimeout(resolve, 10));
      return response;
    };
    const auth = options.auth && slowAuth();
    await using client = await connect(url, { ...options, ...auth && { auth }, fetch });
    const late = await assertRejects(() => client.callTool("slow", {}, { timeoutMs: 60 }), DOMException);
    assertEquals([late.name, late.message], ["TimeoutError", sentence("tools/call", 60)]);
    const stop = new AbortController();
    const calling = client.callTool("slow", {}, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")));
    await assertRejects(() => calling, Error, "enough");
  });
}

Deno.test("an extension that finishes a request receives the request's signal, which also ends the extension's own requests", async () => {
  const state = { isRunning: false, isAborted: false, nested: undefined as unknown };
  const extension = ticketsThat({
    ticket: {
      schema,
      async finish(_result, { signal, request }) {
        state.isRunning = true;
        signal.addEventListener("abort", () => state.isAborted = true);
        state.nested = await request("tickets/redeem").catch((error) => error);
        return {};
      },
    },
  });
  const server = responding(ticket);
  const fetch = (request: Request) => {
    const isNested = request.headers.get("mcp-method") === "tickets/redeem";
    return isNested ? never : server.fetch(request);
  };
  await using client = await connect(url, { fetch, extensions: [extension] });
  const clock = fakeClock();
  const timeoutMs = 12_345;
  await withTimersOn(clock, timeoutMs, async () => {
    const late = started(client.callTool("slow", {}, { timeoutMs }));
    await until(() => state.isRunning, "the extension finishes the request");
    await clock.advance(timeoutMs);
    await assertRejects(() => late, DOMException, "tools/call");
  });
  assert(state.isAborted);
  await until(() => state.nested !== undefined, "the end of the nested request");
  assertEquals(Object(state.nested).name, "TimeoutError");
});

Deno.test("an extension that finishes a request receives the caller's onProgress function", async () => {
  const extension = ticketsThat({
    ticket: {
      schema,
      finish(_result, { onProgress }) {
        onProgress?.({ progress: 1, total: 2 });
        return { content: [{ type: "text", text: String(typeof onProgress) }] };
      },
    },
  });
  await using client = await connect(url, { fetch: responding(ticket).fetch, extensions: [extension] });
  const heard: Progress[] = [];
  const result = await client.callTool("slow", {}, { onProgress: (progress) => void heard.push(progress) });
  assertEquals([textOf(result), heard], ["function", [{ progress: 1, total: 2 }]]);
  assertEquals(textOf(await client.callTool("slow")), "undefined");
});
