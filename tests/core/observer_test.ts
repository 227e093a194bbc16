// The events that an observer gets, in every era and over every transport.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  McpError,
  type Observer,
  prompt,
  resource,
  type Result,
  type ServerOptions,
  tool,
  ToolError,
} from "../../mod.ts";
import type { AskedEvent, CallEvent, StartEvent } from "../../src/observe/observe.ts";
import { EVENTS } from "../../src/server/call/combined_observer.ts";
import { clientExtension } from "../../src/client/client.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, turn, until } from "../support/behaviour.ts";
import { pageFile, toTable } from "../release/events_page.ts";
import { withTables } from "../release/page_tables.ts";
import { z } from "zod";
import { ask, toRequest } from "../support/requests.ts";
import { toSessionRequest } from "../support/sessions.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { onDeno } from "../support/on_deno.ts";
import { throwing } from "../support/throwing.ts";
import { testClient, testServer } from "../support/test_server.ts";
import { patch } from "../support/patch.ts";
import { random } from "../support/random.ts";
import { metrics, type Totals } from "./metrics.ts";
import { createCounted } from "./metrics_server.ts";

/** An event with its name. The type allows the fields of every kind of event. */
interface Heard {
  readonly name: string;
  // deno-lint-ignore no-explicit-any
  readonly event: any;
}

/** Creates an observer that records all events, or only the named events. */
function recorder(
  names: readonly (keyof Observer)[] = EVENTS,
): { readonly observer: Observer; readonly heard: Heard[] } {
  const heard: Heard[] = [];
  const observer = Object.fromEntries(names.map((name) => [name, (event: unknown) => heard.push({ name, event })]));
  return { observer, heard };
}

const only = (heard: readonly Heard[], name: string) =>
  heard.filter((each) => each.name === name).map(({ event }) => event);

const form = { type: "object", properties: { name: { type: "string" } } };

const handlers = [
  tool({ name: "fine", run: () => "fine" }),
  tool({ name: "later", run: () => turn().then(() => "later") }),
  tool({ name: "wrong", run: throwing(new ToolError("wrong")) }),
  tool({ name: "error", run: throwing(new McpError(-31001, "closed")) }),
  tool({ name: "asks", run: async (_, ctx) => (await ctx.elicit("a", { message: "A?", schema: form })).action }),
  tool({
    name: "waits",
    run: (_, { signal }) => new Promise((_, reject) => signal.onabort = () => reject(signal.reason)),
  }),
  resource({ uri: "note:1", name: "note", read: () => "1" }),
];

behaviour(
  "each call is reported with one start event and one end event, which contains the outcome",
  async (connect, { era, version, transport }) => {
    const { observer, heard } = recorder(["start", "call"]);
    const clock = fakeClock();
    const long = tool({ name: "long", run: () => clock.advance(5).then(() => "long") });
    const options = { clock, handlers: [...handlers, long], observer };
    const { client } = await connect(options, { onElicit: () => ({ action: "decline" }) });
    for (const name of ["fine", "later", "long", "wrong", "error", "asks"]) await client.callTool(name).catch(() => {});
    await client.listTools();
    await client.readResource("note:1");
    const expected = [
      ...era === "legacy" ? [["initialize", undefined, "result", undefined]] : [],
      ["tools/call", "fine", "result", undefined],
      ["tools/call", "later", "result", undefined],
      ["tools/call", "long", "result", undefined],
      ["tools/call", "wrong", "tool_error", undefined],
      ["tools/call", "error", "error", -31001],
      ...era === "modern" ? [["tools/call", "asks", "input_required", undefined]] : [],
      ["tools/call", "asks", "result", undefined],
      ["tools/list", undefined, "result", undefined],
      ["resources/read", "note:1", "result", undefined],
    ];
    const calls: CallEvent[] = only(heard, "call");
    assertEquals(calls.map(({ method, subject, outcome, code }) => [method, subject, outcome, code]), expected);
    const starts: StartEvent[] = only(heard, "start");
    assertEquals(starts.map(({ id }) => id), calls.map(({ id }) => id));
    assertEquals(new Set(calls.map(({ id }) => id)).size, calls.length);
    for (const call of calls) {
      assertEquals([call.revision, call.principal], [version, undefined]);
      assertEquals(call.transport, transport === "pipe" ? "memory" : "http");
      assertEquals([call.durationMs, call.waitedMs], [call.subject === "long" ? 5 : 0, 0]);
      assertEquals(call.client?.name, "test");
    }
  },
);

behaviour("the time in the queue of the server counts as waiting time of the call", async (connect) => {
  const { observer, heard } = recorder(["call"]);
  const clock = fakeClock();
  const { pass, open } = gate();
  let runs = 0;
  const work = tool({ name: "work", run: () => (runs++, pass) });
  const limits = testLimits({ calls: { running: 1, waiting: 8 } });
  const { client, server } = await connect({ clock, handlers: [work], observer, limits });
  const first = client.callTool("work");
  await until(() => runs === 1, "the first call runs");
  const second = client.callTool("work");
  await until(() => server.stats().waiting === 1, "the second call waits");
  await clock.advance(120);
  open();
  await Promise.all([first, second]);
  const calls: CallEvent[] = only(heard, "call").filter(({ subject }) => subject === "work");
  assertEquals(calls.map(({ waitedMs, durationMs }) => [waitedMs, durationMs]), [[0, 120], [120, 120]]);
}, { perInstance: "limits" });

behaviour("the end event of a cancelled call contains the reason", async (connect, { transport }) => {
  const { observer, heard } = recorder(["start", "call", "limit"]);
  const options = { handlers, observer, limits: { calls: { timeoutMs: 60_000, closeMs: 30 } } };
  const { client, server, join } = await connect(options);
  const controller = new AbortController();
  const cancelled = client.callTool("waits", {}, { signal: controller.signal }).catch(() => {});
  await until(() => only(heard, "start").some(({ subject }) => subject === "waits"), "the first call has started");
  controller.abort();
  await cancelled;
  await until(() => only(heard, "call").some(({ outcome }) => outcome === "cancelled"), "the first call has ended");
  const other = await join();
  const closing = other.callTool("waits").catch(() => {});
  await until(() => only(heard, "start").filter(({ subject }) => subject === "waits").length === 2, "the second call");
  await server.close();
  await closing;
  const [first, second, ...more] = only(heard, "call").filter(({ subject }) => subject === "waits");
  // Over HTTP without sessions, a client cancels a call by closing the connection.
  assert(["client", "disconnected"].includes(first.why), first.why);
  if (transport === "pipe") assertEquals(first.why, "client");
  assertEquals([first.outcome, second.outcome, second.why, more.length], ["cancelled", "cancelled", "closing", 0]);
  assertEquals(only(heard, "limit").map(({ limit }) => limit), ["calls.closeMs"]);
});

behaviour("a call that exceeds its timeout is reported as cancelled by the timeout", async (connect) => {
  const { observer, heard } = recorder(["call", "limit"]);
  const { client } = await connect({ handlers, observer, limits: { calls: { timeoutMs: 20 } } });
  await client.callTool("waits").catch(() => {});
  const [call] = only(heard, "call").filter(({ subject }) => subject === "waits");
  assertEquals([call.outcome, call.why, call.code], ["cancelled", "timeout", -32603]);
  assertEquals(only(heard, "limit"), [{ limit: "calls.timeoutMs", client: undefined }]);
});

behaviour(
  "a request that is refused before its call starts is reported with a reason",
  async (connect, { transport, era }) => {
    const { observer, heard } = recorder(["start", "call", "refused"]);
    const { client } = await connect({ handlers, observer });
    heard.length = 0;
    for (const name of ["no/such", "tools/nothing"]) await client.request(name, {}).catch(() => {});
    await client.callTool("unknown").catch(() => {});
    assertEquals(only(heard, "start"), []);
    const refusals = only(heard, "refused");
    assertEquals(refusals.map(({ reason, method, code }) => [reason, method, code]), [
      ["method", "no/such", -32601],
      ["method", "tools/nothing", -32601],
      ["params", "tools/call", -32602],
    ]);
    const status = transport === "pipe" ? [] : era === "modern" ? [404, 404, 400] : [200, 200, 200];
    assertEquals(refusals.map(({ status }) => status).filter(Boolean), status);
  },
);

behaviour("a refusal because of a full queue is reported with the name of the limit", async (connect) => {
  const { observer, heard } = recorder(["refused", "limit", "call"]);
  const { pass, open } = gate();
  const held = tool({ name: "held", run: () => pass.then(() => "ok") });
  const { client } = await connect({
    handlers: [held],
    observer,
    limits: testLimits({ calls: { running: 1, runningPerClient: 1, waiting: 1 } }),
  });
  const calls = Array.from({ length: 4 }, () => client.callTool("held").catch((error) => error));
  await until(() => only(heard, "refused").length === 2, "two refusals");
  open();
  await Promise.all(calls);
  for (const { reason, limit, method } of only(heard, "refused")) {
    assertEquals([reason, limit, method], ["limit", "calls.waiting", "tools/call"]);
  }
  assertEquals(only(heard, "call").filter(({ method }) => method === "tools/call").length, 2);
  const limits = only(heard, "limit").map(({ limit }) => limit);
  assertEquals(limits.filter((limit) => limit === "calls.waiting").length, 2);
  assert(limits.some((limit) => limit.startsWith("calls.running")), limits.join());
}, { perInstance: "limits" });

behaviour(
  "a client's text, or a handler's text, that names a limit is not reported as a reached limit",
  async (connect) => {
    const { observer, heard } = recorder(["refused", "limit"]);
    const fails = tool({
      name: "fails",
      run: throwing(new McpError(-31001, "Cannot search: too many calls (calls.running)")),
    });
    const breaks = tool({ name: "breaks", run: throwing(new Error("Cannot search: too much memory (memory.bytes)")) });
    const { client, takeFaults } = await connect({ handlers: [fails, breaks], observer });
    heard.length = 0;
    for (const name of ["fails", "breaks", "(request.values)"]) await client.callTool(name).catch(() => {});
    await client.request("search (calls.timeoutMs)", {}).catch(() => {});
    assertEquals(takeFaults().length, 1);
    assertEquals(only(heard, "limit"), []);
    assertEquals(only(heard, "refused").map(({ reason, limit }) => [reason, limit]), [
      ["params", undefined],
      ["method", undefined],
    ]);
  },
);

behaviour("each limit that ends a call or a request is reported by its path", async (connect, { transport, era }) => {
  const { observer, heard } = recorder(["refused", "limit"]);
  async function* numbers() {
    for (let i = 0; i < 100_000; i++) yield i;
  }
  const big = tool({ name: "big", run: () => "x".repeat(2000) });
  const endless = tool({ name: "endless", run: () => numbers() });
  const { client, takeFaults } = await connect({
    handlers: [big, endless],
    observer,
    limits: testLimits({ calls: { resultBytes: 1000 }, request: { idCharacters: 50, methodCharacters: 50 } }),
  });
  heard.length = 0;
  const reached = async (send: () => Promise<unknown>) => {
    heard.length = 0;
    await send().catch(() => {});
    return [...new Set(heard.map(({ event }) => event.limit))];
  };
  assertEquals(await reached(() => client.callTool("big")), ["calls.resultBytes"]);
  assertEquals(await reached(() => client.callTool("endless")), ["calls.resultBytes"]);
  assertEquals(takeFaults().length, 2);
  const longToken = { _meta: { progressToken: "t".repeat(51) } };
  assertEquals(await reached(() => client.request("tools/list", longToken)), ["request.idCharacters"]);
  // Over HTTP, the revisions with an Mcp-Method header reject a long method with this header before its message is read.
  if (transport === "http" && era === "modern") return;
  assertEquals(await reached(() => client.request("m".repeat(51), {})), ["request.methodCharacters"]);
});

behaviour("the start and the end of a subscription are reported, and so is its call", async (connect, { era }) => {
  const { observer, heard } = recorder(["subscription", "call"]);
  const { client } = await connect({ handlers, observer });
  const subscription = await client.subscribe({ resourceSubscriptions: ["note:1"] });
  await until(() => only(heard, "subscription").length > 0, "the subscription has started");
  await subscription.close();
  await until(() => only(heard, "subscription").length === 2, "the subscription has ended");
  const [opened, ended] = only(heard, "subscription");
  assertEquals([opened.state, opened.uris, ended.state, ended.uris], ["opened", ["note:1"], "ended", ["note:1"]]);
  assert(["client", "disconnected"].includes(ended.why), ended.why);
  if (era === "legacy") return;
  await until(() => only(heard, "call").some(({ method }) => method === "subscriptions/listen"), "the call has ended");
}, { perInstance: "observer" });

behaviour(
  "the start and the end of each session and each stream are reported",
  async (connect, { transport }) => {
    const { observer, heard } = recorder(["session", "stream"]);
    const { client, server } = await connect({ handlers, observer });
    await client.callTool("fine");
    const slow = client.callTool("later");
    await slow;
    await client.close();
    const ended = () => only(heard, "session").some(({ state }) => state === "ended");
    await until(ended, "the session has ended");
    assertEquals(only(heard, "session").map(({ state }) => state), ["created", "ended"]);
    const [{ id, why }] = only(heard, "session").slice(1);
    assertEquals([id?.length, why], transport === "pipe" ? [undefined, "disconnected"] : [8, "client"]);
    await server.close();
    const states = only(heard, "stream").map(({ state }) => state);
    assertEquals(
      states.filter((state) => state === "opened").length,
      states.filter((state) => state === "ended").length,
    );
  },
  { eras: ["legacy"], perInstance: "observer" },
);

behaviour("all messages are reported as JSON, without headers", async (connect) => {
  const { observer, heard } = recorder(["message"]);
  const { client } = await connect({ handlers, observer }, { headers: { authorization: "Bearer secret-token" } });
  await client.callTool("fine");
  const messages = only(heard, "message");
  assert(messages.some(({ direction, text }) => direction === "in" && text.includes('"tools/call"')));
  assert(messages.some(({ direction, text }) => direction === "out" && text.includes('"fine"')));
  for (const { text } of messages) JSON.parse(text);
  assert(!JSON.stringify(heard).includes("secret-token"));
});

behaviour("changes of handlers, and the server's closing, are reported", async (connect) => {
  const { observer, heard } = recorder(["handlers", "close"]);
  const { server } = await connect({ handlers, observer });
  const extra = tool({ name: "extra", run: () => "extra" });
  server.handlers.add(extra);
  server.handlers.remove(extra);
  await server.close();
  assertEquals(heard.map(({ name }) => name), ["handlers", "handlers", "close"]);
  assertEquals(only(heard, "handlers"), [
    { added: ['tool "extra"'], removed: [] },
    { added: [], removed: ['tool "extra"'] },
  ]);
}, { perInstance: "observer" });

/** HTTP requests that are refused, with the reason. */
const refused: readonly (readonly [reason: string, status: number, request: () => Request])[] = [
  ["host", 403, () => change({ headers: { host: "evil.example" } })],
  ["origin", 403, () => change({ headers: { host: "localhost", origin: "https://evil.example" } })],
  ["path", 404, () => change({ url: "http://localhost/other" })],
  ["verb", 405, () => new Request("http://localhost/mcp", { method: "PUT" })],
  ["accept", 406, () => change({ headers: { accept: "text/html" } })],
  ["content_type", 415, () => change({ headers: { "content-type": "text/plain" } })],
  ["content_encoding", 415, () => change({ headers: { "content-encoding": "gzip" } })],
  ["limit", 413, () => change({ body: JSON.stringify("x".repeat(200_000)) })],
  ["message", 400, () => change({ body: "{" })],
  ["limit", 400, () => change({ body: `${"[".repeat(200)}${"]".repeat(200)}` })],
  ["header", 400, () => change({ headers: { "mcp-method": "tools/other" } })],
  ["revision", 400, () => toRequest("tools/list", revised, { "mcp-protocol-version": "2099-01-01" })],
  ["session", 404, () => older({ "mcp-session-id": "unknown" })],
  ["revision", 400, () => older({ "mcp-protocol-version": "2020-01-01" })],
];

const revised = { _meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } };

interface Change {
  readonly url?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

function change({ url = "http://localhost/mcp", headers = {}, body }: Change): Request {
  const request = toRequest("tools/list", {}, { host: "localhost", ...headers });
  const all = new Headers(request.headers);
  if (body !== undefined) all.set("content-length", `${body.length}`);
  return new Request(url, { method: "POST", headers: all, body: body ?? request.body });
}

const older = (headers: Record<string, string>) =>
  toSessionRequest({ jsonrpc: "2.0", id: 1, method: "tools/list" }, headers);

Deno.test("each refused HTTP request is reported once, with its status and reason", async () => {
  for (const [reason, status, make] of refused) {
    const { observer, heard } = recorder(["refused", "start"]);
    const server = testServer({ observer, limits: { request: { bodyBytes: 100_000 } } });
    const request = make();
    // Runtimes that behave like browsers do not let tests set the Host header.
    if (reason === "host" && request.headers.get("host") === null) continue;
    const response = await server.fetch(request);
    const text = await response.text();
    await server.close();
    assertEquals(heard.map(({ event }) => [event.reason, event.status]), [[reason, status]], text);
    assertEquals(response.status, status);
    assertStringIncludes(text, JSON.stringify(heard[0].event.message).slice(1, -1));
  }
});

Deno.test("an observer can be a class instance or a list, and can have asynchronous methods", async () => {
  class Counter {
    count = 0;
    call(): Promise<void> {
      this.count++;
      return Promise.resolve();
    }
    helper(): void {}
  }
  const counter = new Counter();
  const { observer, heard } = recorder(["call"]);
  const server = testServer({ handlers, observer: [counter, observer] });
  await ask(server, "tools/call", { name: "fine" });
  await server.close();
  assertEquals([counter.count, heard.length], [1, 1]);
});

Deno.test("an observer that throws, rejects or never settles does not affect calls, and its failure is reported once", async () => {
  const printed: string[] = [];
  using _patched = patch(console, { error: (text: string) => void printed.push(text) });
  const call = throwing(new Error("broken observer"));
  const observer: Observer[] = [
    { call },
    { start: () => Promise.reject(new Error("rejected observer")) },
    { start: () => new Promise(() => {}) },
  ];
  const server = testServer({ handlers, observer });
  for (let i = 0; i < 3; i++) assertEquals((await ask(server, "tools/call", { name: "fine" })).status, 200);
  await until(() => printed.length >= 2, "two reports");
  assertEquals(printed.filter((text) => text.includes("broken observer")).length, 1);
  assertEquals(printed.filter((text) => text.includes("rejected observer")).length, 1);
  assertStringIncludes(printed.join(), "observer.call");
});

Deno.test("the start event contains the trace context of the request", async () => {
  const { observer, heard } = recorder(["start", "call"]);
  const server = testServer({ handlers, observer });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
  await ask(server, "tools/call", { name: "fine", _meta: { traceparent, tracestate: "a=1", baggage: "b=2" } });
  await server.fetch(toRequest("tools/list"), { principal: { id: "ada" } });
  await server.close();
  for (const { event } of heard.slice(0, 2)) {
    assertEquals([event.traceparent, event.tracestate, event.baggage], [traceparent, "a=1", "b=2"]);
  }
  assertEquals(heard.map(({ event }) => event.principal), [undefined, undefined, "ada", "ada"]);
});

Deno.test("events that no observer listens to create no object and do not read the clock", async () => {
  const { observer, heard } = recorder(["close"]);
  let times = 0;
  const count = () => (times++, performance.now());
  const clock = { now: count, date: () => Date.now(), start: () => () => {} };
  const run = async (observer?: Observer) => {
    const server = testServer({ handlers, observer, clock });
    await ask(server, "tools/call", { name: "fine" });
    times = 0;
    await ask(server, "tools/call", { name: "fine" });
    return times;
  };
  const without = await run();
  assertEquals(await run(observer), without);
  assertEquals(heard, []);
});

Deno.test("an observer without events, or with an unknown event, is refused with the list of events", () => {
  const make = (observer: unknown) => () =>
    createServer({ name: "s", version: "1", observer: observer as ServerOptions["observer"] }); // The cast disables the type check, as in plain JavaScript.
  assertThrows(make({ onCall() {} }), TypeError, sentence("observer.onCall", ...EVENTS));
  assertThrows(make([{ call: 5 }]), TypeError, sentence("observer.call"));
  assertThrows(make(5), TypeError, sentence("observer", 5));
});

// files are read with Deno
onDeno("docs/reference/observing.md matches the source, and contains every event", async () => {
  const page = await Deno.readTextFile(pageFile);
  const table = await toTable();
  assertEquals(page, withTables(page, [table]), `${pageFile.pathname} is out of date; run "deno task docs:events"`);
  const rows = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  assertEquals(rows, [...EVENTS]);
});

Deno.test("a server behaves the same with and without an observer", async () => {
  const { observer } = recorder();
  await using client = await testClient({ handlers, observer }, { era: "legacy", transport: "http" });
  assertEquals((await client.callTool("fine")).content, [{ type: "text", text: "fine" }]);
});

const ID = "com.example/later";

behaviour(
  "events contain the data that a trace needs: ids, session, address, errors, types and complete URIs",
  async (connect, way) => {
    const { era, transport } = way;
    const { observer, heard } = recorder(["start", "call", "session"]);
    const uri = `note:${"x".repeat(500)}`;
    const later = extension({ id: ID, sessions: true, methods: { "later/get": { run: () => ({}) } } });
    const more = [
      later,
      resource({ uri: "note:{id}", name: "notes", read: () => "1" }),
      tool({
        name: "task",
        use: [later.layer({
          around: async (call, next) => era === "modern" ? call.result("task", { taskId: "1" }) : await next(),
        })],
        run: () => "",
      }),
    ];
    const declared = {
      extensions: [
        clientExtension({ id: ID, results: { task: { schema: z.object({}), finish: () => ({ content: [] }) } } }),
      ],
    };
    const { client } = await connect({ handlers: [...handlers, ...more], observer }, declared);
    await client.readResource(uri);
    await client.callTool("error").catch(() => {});
    await client.request("tools/call", { name: "task" }, { finish: false });
    const [read, failed, task]: CallEvent[] = only(heard, "call").filter(({ method }) => method !== "initialize");
    assertEquals(read.subject, uri);
    assertEquals([failed.code, failed.message], [-31001, "closed"]);
    assertEquals([task.outcome, task.resultType], ["result", era === "modern" ? "task" : undefined]);
    assertEquals([read.resultType, read.message, read.parent], [undefined, undefined, undefined]);
    assert(read.request !== undefined && read.request !== failed.request);
    const [start]: StartEvent[] = only(heard, "start").filter(({ method }) => method !== "initialize");
    assertEquals([start.request, start.session, start.peer], [read.request, read.session, read.peer]);
    const hasSession = era === "legacy" && transport !== "pipe";
    assertEquals(read.session !== undefined, hasSession);
    assertEquals(read.peer, transport === "http" ? "127.0.0.1" : undefined);
    if (hasSession) assertEquals(only(heard, "session")[0].id, read.session);
  },
);

Deno.test("events contain the client's address, also behind a proxy and for an authenticated caller", async () => {
  for (const principal of [undefined, { id: "ada" }]) {
    const { observer, heard } = recorder(["call"]);
    const server = testServer({ handlers, observer, proxies: ["10.0.0.1"] });
    const send = (hostname: string, headers = {}) =>
      server.fetch(toRequest("tools/call", { name: "fine" }, headers), { remoteAddr: { hostname }, principal });
    await (await send("203.0.113.7")).text();
    await (await send("10.0.0.1", { "x-forwarded-for": "198.51.100.9" })).text();
    assertEquals(only(heard, "call").map(({ peer }) => peer), ["203.0.113.7", "198.51.100.9"]);
  }
});

behaviour("a call runs inside `around`, which does not change the result", async (connect) => {
  const stack: string[] = [];
  const during: unknown[] = [];
  const inside = (name: string): Observer => ({
    around(event, run) {
      stack.push(name);
      try {
        during.push([name, event.method, event.subject]);
        return run();
      } finally {
        stack.pop();
      }
    },
  });
  const seen: unknown[] = [];
  const now = tool({ name: "now", run: () => (seen.push([...stack]), "now") });
  const use = [async (_call: unknown, next: () => Promise<Result>) => (seen.push([...stack]), await next())];
  const { client } = await connect({ handlers: [...handlers, now], use, observer: [inside("a"), inside("b")] });
  seen.length = during.length = 0;
  await client.callTool("now");
  assertEquals(seen, [["a", "b"], ["a", "b"]]);
  assertEquals(during, [["a", "tools/call", "now"], ["b", "tools/call", "now"]]);
  await assertRejects(() => client.callTool("error"), McpError, "closed");
  // The list is still public, because `around` cannot change its result.
  await client.listTools();
});

Deno.test("an `around` that does not run the call, runs it twice, returns another value or throws does not affect the call, and is reported", async () => {
  const wrong: readonly NonNullable<Observer["around"]>[] = [
    () => undefined as never,
    (_event, run) => (run(), undefined as never),
    (_event, run) => (run(), run()),
    throwing(new Error("before")),
    (_event, run) => {
      run();
      throw new Error("after");
    },
    (async (_event: StartEvent, run: () => unknown) => await run()) as never,
  ];
  for (const [at, around] of wrong.entries()) {
    let runs = 0;
    const count = tool({ name: "count", run: async () => (await turn(), `${++runs}`) });
    const lines = await withErrors(async () => {
      const server = testServer({ handlers: [...handlers, count], observer: { around } });
      for (let call = 1; call <= 2; call++) {
        const { result } = await ask(server, "tools/call", { name: "count" });
        assertEquals(result.content, [{ type: "text", text: `${call}` }]);
      }
      assertEquals((await ask(server, "tools/call", { name: "error" })).error?.code, -31001);
    });
    assertEquals([at, lines.filter((line) => line.includes("observer.around")).length], [at, 1]);
  }
});

/** Runs a function, and returns what it printed with console.error. */
async function withErrors(run: () => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = [];
  using _patched = patch(console, { error: (...args: readonly unknown[]) => void lines.push(args.join(" ")) });
  await run();
  return lines;
}

behaviour(
  "parts of a call are reported as calls with a parent: resources that a handler reads, and handlers that continue after the response",
  async (connect, { era }) => {
    const { observer, heard } = recorder(["start", "call"]);
    const around: string[] = [];
    const wrapping: Observer = {
      around: (event, run) => (around.push(`${event.parent === undefined ? "" : "part "}${event.method}`), run()),
    };
    const later = extension({ id: ID });
    const { pass, open } = gate();
    const reads = tool({
      name: "reads",
      async run(_input, ctx) {
        await ctx.readResource("note:1");
        await ctx.readResource("note:2").catch(() => {});
        return "read";
      },
    });
    const goesOn = tool({
      name: "goes_on",
      use: [later.layer({
        around(call, next) {
          next().catch(() => {});
          call.detach();
          return { content: [] };
        },
      })],
      run: () => pass,
    });
    const { client } = await connect({ handlers: [...handlers, later, reads, goesOn], observer: [observer, wrapping] });
    around.length = 0;
    await client.callTool("reads");
    assertEquals(around, ["tools/call", "part resources/read"]);
    await client.callTool("goes_on");
    const ended = () => only(heard, "call").filter(({ method }) => method !== "initialize");
    assertEquals(ended().length, 3 + Number(ended().some(({ subject }) => subject === "note:2")));
    open();
    await until(() => ended().some(({ subject, parent }) => subject === "goes_on" && parent !== undefined), "its end");
    const find = (subject: string, isPart: boolean): CallEvent =>
      ended().find((event) => event.subject === subject && (event.parent !== undefined) === isPart);
    assertEquals(find("note:1", true).parent, find("reads", false).id);
    assertEquals(find("note:1", true).outcome, "result");
    assertEquals(find("goes_on", true).parent, find("goes_on", false).id);
    assertEquals([find("goes_on", true).method, find("goes_on", true).request], ["tools/call", undefined]);
    assertEquals(only(heard, "start").length, only(heard, "call").length);
    assert(era);
  },
);

behaviour("the questions of a handler are reported as events of its call", async (connect, { era }) => {
  const { observer, heard } = recorder(["asked", "call"]);
  const { client } = await connect({ handlers, observer }, { onElicit: () => ({ action: "decline" }) });
  await client.callTool("asks");
  const asked: AskedEvent[] = only(heard, "asked");
  const calls: CallEvent[] = only(heard, "call").filter(({ subject }) => subject === "asks");
  assertEquals(asked.map(({ method }) => method), asked.map(() => "elicitation/create"));
  assertEquals(asked.map(({ outcome }) => outcome), era === "modern" ? ["open", "answered"] : ["answered"]);
  assertEquals(asked.map(({ parent }) => parent), calls.map(({ id }) => id));
  assert(asked.every(({ durationMs }) => durationMs >= 0));
});

// Metrics that use only the published observer count the operations of a random workload exactly.

/** An operation, with the keys of the counts that it increases. */
interface Operation {
  readonly run: (client: Connection) => Promise<unknown>;
  readonly call?: string;
  readonly refusal?: string;
  readonly limit?: string;
  readonly fault?: boolean;
}

const operations: readonly Operation[] = [
  { run: (client) => client.callTool("fine"), call: "tools/call result" },
  { run: (client) => client.callTool("later"), call: "tools/call result" },
  { run: (client) => client.callTool("progress", {}, { onProgress: () => {} }), call: "tools/call result" },
  { run: (client) => client.callTool("wrong"), call: "tools/call tool_error" },
  { run: (client) => client.callTool("error"), call: "tools/call error" },
  { run: (client) => client.callTool("fault"), call: "tools/call tool_error", fault: true },
  { run: (client) => client.callTool("unknown"), refusal: "params" },
  { run: (client) => client.request("no/such", {}), refusal: "method" },
  { run: (client) => client.listTools(), call: "tools/list result" },
  { run: (client) => client.readResource("note:1"), call: "resources/read result" },
  {
    run: (client) => client.request("tools/list", { _meta: { progressToken: "x".repeat(300) } }),
    refusal: "limit",
    limit: "request.idCharacters",
  },
];

type Counts = Record<string, number>;

/** Runs random operations for a seed, several of them concurrently. Returns the expected counts. */
async function work(
  client: Connection,
  seed: number,
): Promise<{ calls: Counts; refusals: Counts; limits: Counts; faults: number }> {
  const { pick, below } = random(seed);
  const calls: Counts = client.era === "legacy" ? { "initialize result": 1 } : {};
  const refusals: Counts = {};
  const limits: Counts = {};
  let faults = 0;
  const add = (counts: Counts, key?: string) => key && (counts[key] = (counts[key] ?? 0) + 1);
  for (let round = 0; round < 12; round++) {
    const running = Array.from({ length: 1 + below(6) }, () => {
      const { run, call, refusal, limit, fault } = pick(operations);
      add(calls, call);
      add(refusals, refusal);
      add(limits, limit);
      if (fault) faults++;
      return run(client).catch(() => {});
    });
    await Promise.all(running);
  }
  return { calls, refusals, limits, faults };
}

function check(totals: Totals, expected: Awaited<ReturnType<typeof work>>): void {
  assertEquals(totals.calls, expected.calls);
  assertEquals(totals.refusals, expected.refusals);
  assertEquals(totals.limits, expected.limits);
  assertEquals([totals.faults, totals.running], [expected.faults, 0]);
  for (const [method, ms] of Object.entries(totals.durations)) assert(ms >= 0 && ms < 60_000, `${method}: ${ms}`);
  assertEquals([totals.sessions, totals.streams, totals.subscriptions], [0, 0, 0]);
}

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "memory", "pipe"] as const) {
    Deno.test(`metrics count a random workload exactly (${era} over ${transport})`, async () => {
      for (const seed of [1, 2, 3]) {
        const observer = metrics();
        const server = createCounted(observer);
        const client = await connectTest(server, { era, transport });
        const expected = await work(client, seed);
        const session = era === "legacy" ? 1 : 0;
        assertEquals(observer.totals().sessions, session);
        await client.close();
        await server.close();
        await until(() => observer.totals().streams === 0, "all streams have ended");
        check(observer.totals(), expected);
      }
    });
  }

  Deno.test(`metrics count a random workload exactly (${era} over stdio)`, async () => {
    const client = await connectTest(new URL("./metrics_program.ts", import.meta.url), { era, transport: "stdio" });
    const expected = await work(client, 4);
    await client.close();
    const stderr = await client.child?.stderr ?? "";
    check(JSON.parse(stderr.trim().split("\n").at(-1) ?? ""), expected);
  });
}

Deno.test("a question to the client is not reported to the observer as an error", async () => {
  const reported: unknown[] = [];
  const schema = { type: "object", properties: { name: { type: "string" } } };
  const server = testServer({
    observer: { fault: ({ error }) => reported.push(error) },
    handlers: [
      tool({ name: "who", run: async (_, ctx) => (await ctx.elicit("name", { message: "Who?", schema })).action }),
      prompt({ name: "who", run: async (_, ctx) => (await ctx.elicit("name", { message: "Who?", schema })).action }),
    ],
  });
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
  for (const method of ["tools/call", "prompts/get"]) {
    const { result } = await ask(server, method, { name: "who", _meta });
    assertEquals(Object.keys(result.inputRequests), ["name"], method);
  }
  assertEquals(reported, []);
});
