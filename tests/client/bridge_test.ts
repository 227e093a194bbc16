// The bridge between a stdio client and an HTTP server, in one process: which messages the bridge forwards, drops and
// sends again. tests/cli/bridge_test.ts tests the bridge as a process.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { createServer, resource, type Server, tool } from "../../mod.ts";
import { bridgeLines } from "../../src/client/bridge_lines.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import type { Message } from "./fakes.ts";

const url = "http://127.0.0.1:1/mcp";
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const client = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };

type Json = Readonly<Record<string, unknown>>;
type Handle = (request: Request) => Promise<Response> | Response;

/** A client that exchanges newline-delimited JSON with a bridge. */
class LineClient implements AsyncDisposable {
  readonly received: Json[] = [];
  readonly warnings: string[] = [];
  readonly ended: Promise<void>;
  /** The client reads no message until this promise resolves. */
  gate: Promise<void> | undefined;
  isBroken = false;
  readonly #stop = new AbortController();
  readonly #input = new TransformStream<Uint8Array, Uint8Array>();
  readonly #writer = this.#input.writable.getWriter();

  constructor(fetch: Handle) {
    const output = async (bytes: Uint8Array) => {
      if (this.isBroken) throw new Error("EPIPE");
      await this.gate;
      this.received.push(JSON.parse(new TextDecoder().decode(bytes)));
    };
    const lines = { input: this.#input.readable, output, signal: this.#stop.signal };
    const onWarning = (text: string) => void this.warnings.push(text);
    this.ended = bridgeLines(lines, { url, fetch: async (request) => await fetch(request), onWarning });
  }

  async write(...messages: readonly Json[]): Promise<void> {
    const text = messages.map((message) => JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n").join("");
    await this.#writer.write(new TextEncoder().encode(text));
  }

  /** Sends a request, and returns its response. */
  async request(id: number, method: string, params: Json = {}): Promise<Json> {
    await this.write({ id, method, params });
    return await this.find((message) => message.id === id && message.method === undefined);
  }

  async find(isIt: (message: Json) => boolean): Promise<Json> {
    await until(() => this.received.some(isIt), "the message arrives");
    return this.received.find(isIt)!; // The assertion is safe, because `until` has found the message.
  }

  async open(): Promise<void> {
    await this.request(0, "initialize", client);
    await this.write({ method: "notifications/initialized" });
  }

  stop(): void {
    this.#stop.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    await this.ended;
  }
}

const stream = (...messages: readonly unknown[]) =>
  new Response(messages.map((message) => `data: ${JSON.stringify(message)}\n\n`).join(""), {
    headers: { "content-type": "text/event-stream" },
  });
const json = (message: unknown) => Response.json(message);

/** Handles requests with a function that returns a response, or the result of the request. */
function answer(toResult: (message: Message) => unknown): Handle {
  return async (request) => {
    const message = await request.json();
    const result = await toResult(message);
    return result instanceof Response ? result : json({ jsonrpc: "2.0", id: message.id, result });
  };
}

Deno.test("bridge: responses that match no request of the client are dropped", async () => {
  const foreign = { jsonrpc: "2.0", id: 99, result: { stolen: true } };
  const own = { jsonrpc: "2.0", id: 1, result: { own: true } };
  await using bridged = new LineClient(() => stream(foreign, { ...foreign, id: null }, own));
  assertEquals(await bridged.request(1, "ping", { _meta }), own);
  assertEquals(bridged.received, [own]);
});

Deno.test("bridge: a request fails if the HTTP response contains a message other than its response", async () => {
  const right = { jsonrpc: "2.0", id: 1, result: {} };
  for (
    const wrong of [
      { ...right, id: 2 },
      { ...right, id: "1" },
      { ...right, id: null },
      { jsonrpc: "2.0", id: 1, method: "sampling/createMessage", params: {} },
    ]
  ) {
    await using bridged = new LineClient(() => json(wrong));
    const { error } = await bridged.request(1, "ping", { _meta });
    assertEquals(Object(error).message, sentence());
    assertEquals(bridged.received.length, 1);
  }
  const unread = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "Invalid" } };
  await using bridged = new LineClient(() => Response.json(unread, { status: 400 }));
  assertEquals(await bridged.request(1, "ping", { _meta }), { ...unread, id: 1 });
});

Deno.test("bridge: a tool with arguments in headers can be called before the tools were listed", async () => {
  const region = z.string().meta({ "x-mcp-header": "Region" });
  const pages = Array.from({ length: 600 }, (_, at) => tool({ name: `t${at}`, run: () => "" }));
  const look = tool({ name: "zz_look", input: { region }, run: ({ region }) => region });
  await using server = createServer({ name: "s", version: "1", handlers: [...pages, look] });
  const methods: (string | null)[] = [];
  await using bridged = new LineClient((request) => {
    methods.push(request.headers.get("mcp-method"));
    return server.fetch(request);
  });
  for (const id of [1, 2]) {
    const { result } = await bridged.request(id, "tools/call", {
      name: "zz_look",
      arguments: { region: "north" },
      _meta,
    });
    assertStringIncludes(JSON.stringify(result), "north");
  }
  const lists = ["tools/list", "tools/list", "tools/list"];
  assertEquals(methods, ["tools/call", ...lists, "tools/call", "tools/call"]);
});

Deno.test("bridge: a refusal because of headers is forwarded if the list of tools never ends", async () => {
  let count = 0;
  const error = { code: -32020, message: "Header mismatch" };
  await using bridged = new LineClient(async (request) => {
    count++;
    const { id, method } = await request.json();
    const isCall = method === "tools/call";
    // The list of tools never ends.
    return json({ jsonrpc: "2.0", id, ...isCall ? { error } : { result: { tools: [], nextCursor: `${count}` } } });
  });
  const reply = await bridged.request(1, "tools/call", { name: "a", arguments: {}, _meta });
  assertEquals([reply.error, count], [error, 1001]);
});

Deno.test("bridge: the bridge stops reading a stream while the client does not read", async () => {
  let sent = 0;
  const note = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "a".repeat(10_000) } };
  const encoder = new TextEncoder();
  const isWaiting: boolean[] = [];
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        sent++;
        if (sent < 2000) controller.enqueue(encoder.encode(`data: ${JSON.stringify(note)}\n\n`));
        else {
          controller.enqueue(encoder.encode(`data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} })}\n\n`));
          controller.close();
        }
      },
    }, { highWaterMark: 0 });
  await using bridged = new LineClient(() =>
    new Response(endless(), { headers: { "content-type": "text/event-stream" } })
  );
  const gate = Promise.withResolvers<void>();
  bridged.gate = gate.promise;
  await bridged.write({ id: 1, method: "ping", params: { _meta } });
  // Wait until the bridge has read nothing for many turns of the event loop.
  for (let before = -1; isWaiting.length < 20;) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (sent > 0 && sent === before) isWaiting.push(true);
    before = sent;
  }
  assert(sent < 20, `${sent} messages were taken`);
  bridged.gate = undefined;
  gate.resolve();
  await bridged.find(({ id }) => id === 1);
  assertEquals(bridged.received.length, 2000);
});

Deno.test("bridge: while waiting for the client to read, the bridge ends if the client closes its end or the signal aborts", async () => {
  for (const how of ["broken", "signal"]) {
    const methods: string[] = [];
    await using server = createServer({ name: "s", version: "1", handlers: [tool({ name: "a", run: () => "" })] });
    const bridged = new LineClient((request) => {
      methods.push(request.method);
      return server.fetch(request);
    });
    await bridged.open();
    if (how === "broken") bridged.isBroken = true;
    else bridged.gate = new Promise(() => {});
    await bridged.write({ id: 1, method: "ping" }, { id: 2, method: "tools/list" });
    if (how === "signal") bridged.stop();
    await bridged.ended;
    assert(methods.includes("DELETE"), "the session is ended");
  }
});

/** A server that has lost all sessions after a restart. */
class Restarting {
  server!: Server;
  readonly methods: string[] = [];
  isDown = false;

  constructor() {
    this.restart();
  }

  restart(): void {
    const note = resource({ uri: "note://a", name: "a", read: () => "text" });
    const secret = crypto.randomUUID();
    const log = tool({ name: "log", run: (_, ctx) => (ctx.log.info("heard"), "") });
    this.server = createServer({
      name: "s",
      version: "1",
      secret,
      handlers: [note, log],
      capabilities: { logging: true },
    });
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    if (this.isDown) return new Response("Bad gateway", { status: 502 });
    const { method = request.method } = request.method === "POST" ? await request.clone().json() : {};
    const response = await this.server.fetch(request);
    this.methods.push(`${method} ${response.status}`);
    return response;
  };
}

Deno.test("bridge: the bridge replaces a lost session by a session with the same log level, subscriptions and stream", async () => {
  const restarting = new Restarting();
  await using bridged = new LineClient(restarting.fetch);
  await bridged.open();
  await bridged.request(1, "logging/setLevel", { level: "info" });
  await bridged.request(2, "resources/subscribe", { uri: "note://a" });
  await bridged.request(3, "resources/subscribe", { uri: "note://gone" });
  await bridged.request(4, "resources/unsubscribe", { uri: "note://gone" });
  await until(() => restarting.methods.includes("GET 200"), "the stream is open");
  const before = restarting.server;
  restarting.restart();
  restarting.methods.length = 0;
  await before.close();
  // The client sends no request here, so the bridge detects the lost session when the stream ends.
  const done = ["GET 200", "resources/subscribe 200"];
  await until(() => done.every((each) => restarting.methods.includes(each)), "the session and its stream are back");
  assertEquals(restarting.methods.filter((each) => !each.startsWith("GET")), [
    "initialize 200",
    "notifications/initialized 202",
    "logging/setLevel 200",
    "resources/subscribe 200",
  ]);
  await restarting.server.resourceUpdated("note://a");
  await bridged.find(({ method }) => method === "notifications/resources/updated");
  await bridged.request(5, "tools/call", { name: "log" });
  await bridged.find(({ method }) => method === "notifications/message");
  assertEquals(bridged.received.filter(({ id }) => id !== undefined).map(({ id }) => id), [0, 1, 2, 3, 4, 5]);
  await restarting.server.close();
});

Deno.test("bridge: an unknown method does not end the session", async () => {
  const restarting = new Restarting();
  await using bridged = new LineClient(restarting.fetch);
  await bridged.open();
  const { error } = await bridged.request(1, "no/such");
  assertStringIncludes(JSON.stringify(error), "-32601");
  assertEquals(restarting.methods.filter((each) => each.startsWith("initialize")).length, 1);
  await restarting.server.close();
});

Deno.test("bridge: two requests with the same id both get a response", async () => {
  const gate = Promise.withResolvers<void>();
  await using bridged = new LineClient(answer(async ({ method }) => {
    if (method === "slow") await gate.promise;
    return { method };
  }));
  await bridged.write({ id: 1, method: "slow", params: { _meta } }, { id: 1, method: "fast", params: { _meta } });
  await bridged.find(({ result }) => JSON.stringify(result).includes("fast"));
  // The slow request can still be cancelled.
  await bridged.write({ method: "notifications/cancelled", params: { requestId: 1, _meta } });
  gate.resolve();
  await bridged.request(2, "ping", { _meta });
  assert(bridged.received.length <= 3);
});

Deno.test("bridge: a server with revision 2024-11-05 is used over HTTP+SSE, and a lost event stream is reopened", async () => {
  const hello = tool({ name: "hello", run: () => "Hello!" });
  await using server = createServer({ name: "s", version: "1", hosts: ["127.0.0.1"], handlers: [hello] });
  const old = httpSse(server, { path: "/mcp", messages: "/messages" });
  let cut: (() => void) | undefined;
  await using bridged = new LineClient(async (request) => {
    const { pathname } = new URL(request.url);
    if (request.method === "POST" && pathname === "/mcp") return new Response("Method not allowed", { status: 405 });
    const response = await old.fetch(request);
    if (request.method !== "GET" || !response.body) return response;
    const through = new TransformStream<Uint8Array, Uint8Array>();
    const stop = new AbortController();
    cut = () => stop.abort();
    response.body.pipeTo(through.writable, { signal: stop.signal }).catch(() => {});
    return new Response(through.readable, response);
  });
  await bridged.request(0, "initialize", { ...client, protocolVersion: "2024-11-05" });
  await bridged.write({ method: "notifications/initialized" });
  assertStringIncludes(JSON.stringify(await bridged.request(1, "tools/call", { name: "hello" })), "Hello!");
  cut?.();
  await until(async () => {
    const id = 10 + bridged.received.length;
    return JSON.stringify(await bridged.request(id, "tools/call", { name: "hello" })).includes("Hello!");
  }, "the session is renewed");
});

Deno.test("bridge: a server cannot ask a session's client without end", async () => {
  const ask = (id: string) => ({ jsonrpc: "2.0", id, method: "sampling/createMessage", params: { messages: [] } });
  const refusals: unknown[] = [];
  await using bridged = new LineClient(async (request) => {
    if (request.method === "GET") return new Response(null, { status: 405 });
    const { id, method, error } = await request.json();
    if (method === "initialize") return json({ jsonrpc: "2.0", id, result: { ...client, serverInfo: {} } });
    if (method === undefined && error) refusals.push(error.message);
    if (method !== "tools/call") return new Response(null, { status: 202 });
    const questions = Array.from({ length: 50 }, (_, at) => ask(`${id} ${at}`));
    return stream(...questions, { jsonrpc: "2.0", id, result: { content: [] } });
  });
  await bridged.open();
  for (const id of [1, 2]) {
    await bridged.request(id, "tools/call", { name: "ask" });
    assertEquals(bridged.received.filter(({ method }) => method === "sampling/createMessage").length, 32 * id);
    assertEquals(refusals.length, 18 * id);
  }
  assertEquals(refusals[0], sentence("sampling/createMessage", 32));
});

Deno.test("bridge: the questions of all rounds of a call and of all states of a task are limited", async () => {
  const inputRequests = (count: number, start = 0) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`q${start + at}`, { method: "roots/list" }]));
  let round = 0;
  await using bridged = new LineClient(answer(({ method, params }) => {
    if (method === "tools/call") {
      const state = params.name === "stateless" ? undefined : `${round++}`;
      const asked = { resultType: "input_required", inputRequests: inputRequests(10), requestState: state };
      return asked;
    }
    const open = params.taskId === "many"
      ? inputRequests(40)
      : inputRequests(10, params.taskId === "same" ? 0 : 10 * round++);
    return { taskId: params.taskId, status: "input_required", inputRequests: open };
  }));
  let id = 0;
  for (const name of ["ask", "stateless", "ask"]) {
    let params: Json = {};
    for (let rounds = 0;; rounds++) {
      const { result, error } = await bridged.request(++id, "tools/call", { name, arguments: {}, _meta, ...params });
      if (error) {
        assertEquals([rounds, Object(error).message], [3, sentence("tools/call", 32)]);
        break;
      }
      params = { requestState: Object(result).requestState, inputResponses: { q0: {} } };
    }
  }
  const poll = async (taskId: string) => (await bridged.request(++id, "tasks/get", { taskId, _meta })).error;
  for (let polls = 0; polls < 5; polls++) assertEquals(await poll("same"), undefined);
  for (let polls = 0; polls < 3; polls++) assertEquals(await poll("new"), undefined);
  assertEquals(Object(await poll("new")).message, sentence("tasks/get", 32));
  assertEquals(Object(await poll("many")).message, sentence("tasks/get", 32));
  assertEquals(await poll("same"), undefined);
});

Deno.test("bridge: questions whose id or state a client may read differently are not forwarded", async () => {
  const inputRequests = { q: { method: "roots/list" } };
  const states: Readonly<Record<string, unknown>> = { surrogate: "\ud800", number: 5, null: null, list: ["a"] };
  await using bridged = new LineClient(answer(({ id, params }) => {
    const requestState = states[params.name];
    if (params.name in states) return { resultType: "input_required", inputRequests, requestState };
    const odd = ["null", "1.5", "9007199254740993"].map((odd) =>
      `data: {"jsonrpc":"2.0","id":${odd},"method":"sampling/createMessage","params":{}}\n\n`
    );
    const done = `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", content: [] } })}\n\n`;
    return new Response([...odd, done].join(""), { headers: { "content-type": "text/event-stream" } });
  }));
  let id = 0;
  for (const name of Object.keys(states)) {
    const { error } = await bridged.request(++id, "tools/call", { name, arguments: {}, _meta });
    assertEquals(Object(error).message, sentence("tools/call", "requestState"), name);
  }
  await bridged.request(++id, "tools/call", { name: "odd", arguments: {}, _meta });
  assertEquals(bridged.received.filter(({ method }) => method === "sampling/createMessage"), []);
});

Deno.test("bridge: all calls that continue with a state of no earlier result share the questions of one call, until the client begins a call", async () => {
  let round = 0;
  await using bridged = new LineClient(answer(({ params }) => {
    if (params.name === "plain") return { content: [] };
    const inputRequests = Object.fromEntries(
      Array.from({ length: 10 }, (_, at) => [`q${at}`, { method: "roots/list" }]),
    );
    return { resultType: "input_required", inputRequests, requestState: `state ${round++}` };
  }));
  let id = 0;
  const call = (params: Json) => bridged.request(++id, "tools/call", { arguments: {}, _meta, ...params });
  const failed: unknown[] = [];
  const resume = async () => {
    for (let count = 0; count < 5; count++) {
      const { error } = await call({ name: "ask", requestState: `other ${id}`, inputResponses: { q0: {} } });
      if (error) failed.push(Object(error).message);
    }
  };
  await resume();
  await resume();
  assertEquals(failed, Array(7).fill(sentence("tools/call", 32)));
  await call({ name: "plain" });
  failed.length = 0;
  await resume();
  assertEquals(failed, Array(2).fill(sentence("tools/call", 32)));
  // A known call keeps its count.
  failed.length = 0;
  let state = "state " + round;
  await call({ name: "ask" });
  for (let count = 0; count < 5; count++) {
    const { error } = await call({ name: "ask", requestState: state, inputResponses: { q0: {} } });
    if (error) failed.push(Object(error).message);
    else state = "state " + (round - 1);
    await call({ name: "plain" });
  }
  assertEquals(failed, Array(3).fill(sentence("tools/call", 32)));
});

Deno.test("bridge: the questions of a task are limited over its notifications and its results", async () => {
  const open = (start: number, count = 10) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`q${start + at}`, { method: "roots/list" }]));
  await using bridged = new LineClient(answer(({ id, method, params }) => {
    const notify = (taskId: string, inputRequests: Json) => ({
      jsonrpc: "2.0",
      method: "notifications/tasks",
      params: { taskId, status: "input_required", inputRequests },
    });
    if (method !== "subscriptions/listen") {
      return { taskId: params.taskId, status: "input_required", inputRequests: open(30) };
    }
    const states = [notify("a", open(0)), notify("a", open(0)), notify("a", open(10)), notify("a", open(20))];
    const late = [notify("a", open(30)), notify("b", open(0, 33)), {
      ...notify("c", {}),
      method: "notifications/other",
    }];
    return stream(...states, ...late, { jsonrpc: "2.0", id, result: {} });
  }));
  await bridged.request(1, "subscriptions/listen", { notifications: { taskIds: ["a", "b"] }, _meta });
  const passed = bridged.received.filter(({ method }) => method === "notifications/tasks");
  assertEquals(passed.map(({ params }) => Object.keys(Object(params).inputRequests)[0]), ["q0", "q0", "q10", "q20"]);
  assertEquals(bridged.received.length, passed.length + 2);
  assertEquals(bridged.warnings, Array(2).fill(sentence("notifications/tasks", 32)));
  const { error } = await bridged.request(2, "tasks/get", { taskId: "a", _meta });
  assertEquals(Object(error).message, sentence("tasks/get", 32));
});

const ask = (key: string, ...names: readonly (string | number)[]) =>
  Object.fromEntries(
    names.map((name) => [`${key}${name}`, { method: "sampling/createMessage", params: { messages: [], about: name } }]),
  );
const many = (count: number, from = 0) => Array.from({ length: count }, (_, at) => from + at);
const notifyTask = (taskId: unknown, inputRequests: Json) => ({
  jsonrpc: "2.0",
  method: "notifications/tasks",
  params: { taskId, status: "input_required", inputRequests },
});

for (const inputRequests of [[{ method: "roots/list" }], "roots/list", 1]) {
  Deno.test(`bridge: requests that cannot be counted are not forwarded: ${JSON.stringify(inputRequests)}`, async () => {
    await using bridged = new LineClient(answer(({ id, method, params }) => {
      const notified = { jsonrpc: "2.0", method: "notifications/tasks", params: { taskId: "a", inputRequests } };
      if (method === "subscriptions/listen") return stream(notified, { jsonrpc: "2.0", id, result: {} });
      const task = { taskId: params.taskId ?? "new", status: "input_required", inputRequests };
      const results: Json = {
        ask: { resultType: "input_required", inputRequests },
        start: { ...task, resultType: "task" },
      };
      return results[params.name] ?? task;
    }));
    let last = 1;
    await bridged.request(last, "subscriptions/listen", { notifications: { taskIds: ["a"] }, _meta });
    assertEquals(bridged.warnings, [sentence("notifications/tasks", "inputRequests")]);
    assertEquals(bridged.received.filter(({ method }) => method), []);
    for (
      const [method, params] of [
        ["tools/call", { name: "ask", arguments: {} }],
        ["tools/call", { name: "start", arguments: {} }],
        ["tasks/get", { taskId: "a" }],
      ] as const
    ) {
      const { error } = await bridged.request(++last, method, { ...params, _meta });
      assertEquals(Object(error).message, sentence(method, "inputRequests"));
    }
  });
}

for (const taskId of [5, null, ["a"], { id: "a" }]) {
  Deno.test(`bridge: questions of a task with the id ${JSON.stringify(taskId)} are not forwarded`, async () => {
    await using bridged = new LineClient(answer(({ id, method, params }) => {
      const asking = notifyTask(taskId, ask("q", 1));
      if (method === "subscriptions/listen") return stream(asking, { jsonrpc: "2.0", id, result: {} });
      const task = { status: "input_required", inputRequests: ask("q", 1) };
      if (method === "tools/call") return { resultType: "task", taskId };
      return { ...task, taskId: params.taskId === "a" ? taskId : "a" };
    }));
    let last = 1;
    // The bridge knows a task whose id is the text of the other id.
    await bridged.request(last, "subscriptions/listen", { notifications: { taskIds: [`${taskId}`] }, _meta });
    assertEquals(bridged.warnings, [sentence("notifications/tasks")]);
    for (
      const [method, params] of [
        ["tools/call", { name: "start", arguments: {} }],
        ["tasks/get", { taskId }],
        ["tasks/get", { taskId: "a" }],
      ] as const
    ) {
      const { error } = await bridged.request(++last, method, { ...params, _meta });
      assertEquals(Object(error).message, sentence(method, "taskId"));
    }
    assertEquals(bridged.received.filter(({ method }) => method), []);
  });
}

Deno.test("bridge: the questions of a task are limited if each state has another task id", async () => {
  for (const resultType of ["complete", "task", "input_required"]) {
    let polls = 0;
    await using bridged = new LineClient(answer(() => {
      const inputRequests = ask("q", ...many(10, 10 * polls++));
      return { resultType, taskId: `t${polls}`, status: "input_required", inputRequests };
    }));
    let error: unknown;
    for (let taskId = "t0"; !error && polls < 9; taskId = `t${polls}`) {
      ({ error } = await bridged.request(polls, "tasks/get", { taskId, _meta }));
    }
    assertEquals([polls, Object(error).message], [4, sentence("tasks/get", 32)]);
  }
});

Deno.test("bridge: notifications about tasks that the client does not know are not counted, and bring no questions", async () => {
  let round = 0;
  await using bridged = new LineClient(answer(({ id }) => {
    const forged = many(300).map((at) => notifyTask(`forged ${round} ${at}`, {}));
    const asking = [notifyTask(`forged ${round}`, ask("q", 1)), notifyTask(undefined, ask("q", 1))];
    const result = { resultType: "input_required", inputRequests: ask("q", ...many(10)), requestState: `${++round}` };
    return stream(...forged, ...asking, { jsonrpc: "2.0", id, result });
  }));
  let params: Json = {};
  for (let rounds = 0; rounds < 4; rounds++) {
    const { result, error } = await bridged.request(rounds, "tools/call", {
      name: "t",
      arguments: {},
      _meta,
      ...params,
    });
    assertEquals(error === undefined, rounds < 3);
    if (error) assertEquals(Object(error).message, sentence("tools/call", 32));
    params = { requestState: Object(result).requestState, inputResponses: { q1: {} } };
  }
  const passed = bridged.received.filter(({ method }) => method === "notifications/tasks");
  assertEquals(passed.length, 4 * 300);
  assertEquals(passed.filter(({ params }) => Object.keys(Object(params).inputRequests).length), []);
  assertEquals(bridged.warnings, Array(8).fill(sentence("notifications/tasks")));
});

Deno.test("bridge: the questions of the rounds of a call count for the task that the call becomes", async () => {
  for (const [first, last] of [[11, true], [12, false]] as const) {
    await using bridged = new LineClient(answer(({ method, params }) => {
      const task = { taskId: "report", status: "input_required" };
      return method === "tasks/get"
        ? { ...task, inputRequests: ask("later", 1) }
        : params.requestState === undefined
        ? { resultType: "input_required", inputRequests: ask("round", ...many(20)), requestState: "s" }
        : params.inputResponses
        // A round without questions.
        ? { resultType: "input_required", requestState: "t" }
        : { resultType: "task", ...task, inputRequests: ask("first", ...many(first)) };
    }));
    const call = { name: "report", arguments: {}, _meta };
    await bridged.request(1, "tools/call", call);
    await bridged.request(2, "tools/call", { ...call, requestState: "s", inputResponses: { round1: {} } });
    const { result } = await bridged.request(3, "tools/call", { ...call, requestState: "t" });
    assertEquals(Object.keys(Object(result).inputRequests).length, first);
    const { error } = await bridged.request(4, "tasks/get", { taskId: "report", _meta });
    assertEquals(error === undefined, last);
    if (error) assertEquals(Object(error).message, sentence("tasks/get", 32));
    const { error: late } = await bridged.request(5, "tasks/get", { taskId: "report", _meta });
    assertEquals(late === undefined, last);
  }
});

Deno.test("bridge: the first state of a task is counted", async () => {
  await using bridged = new LineClient(answer(() => {
    const inputRequests = ask("q", ...many(33));
    return { resultType: "task", taskId: "a", status: "input_required", inputRequests };
  }));
  const { error } = await bridged.request(1, "tools/call", { name: "a", arguments: {}, _meta });
  assertEquals(Object(error).message, sentence("tools/call", 32));
});

Deno.test("bridge: a question of a task counts again if it is another question or was not open in between", async () => {
  const states: Readonly<Record<string, (poll: number) => Json>> = {
    "the same question stays open": () => ask("k", ...many(4)),
    "another question with the same key": (poll) => ({
      ...ask("k", 0),
      k0: { method: "roots/list", params: { poll } },
    }),
    "the same question is asked again": (poll) => poll % 2 ? {} : ask("k", 1),
  };
  for (const [name, toState] of Object.entries(states)) {
    let polls = 0;
    await using bridged = new LineClient(answer(({ method, params: { taskId } }) => {
      if (method === "tasks/update") return { resultType: "complete" };
      return { taskId, status: "input_required", inputRequests: toState(polls++) };
    }));
    let refused = 0;
    for (let id = 0; id < 80 && !refused; id++) {
      const { error } = await bridged.request(2 * id, "tasks/get", { taskId: "t", _meta });
      if (error) refused = id;
      await bridged.request(2 * id + 1, "tasks/update", { taskId: "t", inputResponses: {}, _meta });
    }
    const expected = { "the same question stays open": 0, "another question with the same key": 32 }[name] ?? 64;
    assertEquals(refused, expected, name);
  }
});

Deno.test("bridge: other calls do not restart the count of a call or a subscribed task while its request runs", async () => {
  const gate = Promise.withResolvers<void>();
  let last: ReadableStreamDefaultController<Uint8Array> | undefined;
  await using bridged = new LineClient(answer(async ({ id, method, params }) => {
    if (method === "subscriptions/listen") {
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void (last = controller) });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (params.requestState === "slow") await gate.promise;
    const count = params.name === "slow" ? 20 : 1;
    const requestState = params.name === "slow" ? "slow" : `${id}`;
    return { resultType: "input_required", inputRequests: ask("q", ...many(count)), requestState };
  }));
  const encoder = new TextEncoder();
  const notify = (...keys: readonly number[]) => {
    const message = JSON.stringify(notifyTask("watched", ask("q", ...keys)));
    last?.enqueue(encoder.encode(`data: ${message}\n\n`));
  };
  const countPassed = () => bridged.received.filter(({ method }) => method === "notifications/tasks").length;
  await bridged.write({
    id: 1,
    method: "subscriptions/listen",
    params: { notifications: { taskIds: ["watched"] }, _meta },
  });
  await until(() => last !== undefined, "the subscription is open");
  notify(...many(30));
  await until(() => countPassed() === 1, "the first state arrives");
  const slow = { name: "slow", arguments: {}, _meta };
  await bridged.request(2, "tools/call", slow);
  await bridged.write({ id: 3, method: "tools/call", params: { ...slow, requestState: "slow", inputResponses: {} } });
  for (let id = 10; id < 260; id++) await bridged.request(id, "tools/call", { name: "other", arguments: {}, _meta });
  gate.resolve();
  const { error } = await bridged.find((message) => message.id === 3);
  assertEquals(Object(error).message, sentence("tools/call", 32));
  notify(...many(30, 30));
  await until(() => bridged.warnings.length > 0, "the second state is refused");
  assertEquals([bridged.warnings, countPassed()], [[sentence("notifications/tasks", 32)], 1]);
  last?.close();
});
