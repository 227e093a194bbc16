// The client over HTTP: headers, questions in results, sessions, and streams that end too early.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  connect,
  type ConnectOptions,
  McpError,
  type Message as WireMessage,
  type Trace,
} from "../../src/client/client.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { createServer, tool } from "../../mod.ts";
import { z } from "zod";
import { advanceUntil, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import {
  agreed,
  discovered,
  type FakeHttp,
  fakeHttp,
  fault,
  type Heard,
  type Message,
  methodsOf,
  ok,
  stream,
  url,
} from "./fakes.ts";
import { createLibrary } from "./server.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { withTimersOn } from "../support/timers.ts";
import { throwing } from "../support/throwing.ts";
import { toSubscription } from "../../src/client/subscription.ts";
import type { Notification } from "../../src/client/message.ts";

/** Creates a modern server that responds to every method except `server/discover` with the result of `answer`. */
function modern(answer: (heard: Heard) => Response | Promise<Response> | undefined): FakeHttp {
  return fakeHttp((heard) => heard.method === "server/discover" ? discovered(heard) : answer(heard));
}

/** Creates a server with sessions that responds to every method except the handshake with the result of `answer`. */
function legacy(answer: (heard: Heard) => Response | Promise<Response> | undefined): FakeHttp {
  let sessions = 0;
  return fakeHttp((heard) => {
    if (heard.method !== "initialize") return answer(heard);
    const body = { jsonrpc: "2.0", id: heard.id, result: agreed };
    return Response.json(body, { headers: { "mcp-session-id": `session-${++sessions}` } });
  });
}

const text = (content: string) => ({ resultType: "complete", content: [{ type: "text", text: content }] });
const message = (id: Message["id"], content: string) => ({ jsonrpc: "2.0", id, result: text(content) });

// Headers and `_meta` of modern requests.

Deno.test("the body of every request contains the client's info and capabilities, and the headers repeat method and name", async () => {
  const server = modern((heard) => ok(heard, text("")));
  const options = {
    fetch: server.fetch,
    info: { name: "me", version: "2" },
    headers: { authorization: "Bearer 1" },
    capabilities: { extensions: { "a/b": {} } },
    onElicit: () => ({ action: "cancel" as const }),
  };
  await using client = await connect(url, options);
  await client.callTool("naïve");
  const [, { headers, params }] = server.heard;
  assertEquals(params._meta, {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "me", version: "2" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} }, extensions: { "a/b": {} } },
  });
  const names = ["authorization", "accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"];
  assertEquals(names.map((name) => headers.get(name)), [
    "Bearer 1",
    "application/json, text/event-stream",
    "application/json",
    "2026-07-28",
    "tools/call",
    "=?base64?bmHDr3Zl?=",
  ]);
});

Deno.test("the client sends the arguments of a call in the headers that the tool declares, unless an argument is absent", async () => {
  const inputSchema = {
    type: "object",
    properties: {
      a: { type: "string", "x-mcp-header": "A" },
      b: { type: "integer", "x-mcp-header": "B" },
      c: { type: "boolean", "x-mcp-header": "C" },
      d: { type: "string", "x-mcp-header": "D" },
      e: { type: "object", properties: { f: { type: "string", "x-mcp-header": "F" } } },
    },
  };
  const server = modern((heard) =>
    ok(heard, heard.method === "tools/list" ? { tools: [{ name: "t", inputSchema }] } : text(""))
  );
  await using client = await connect(url, { fetch: server.fetch });
  await client.listTools();
  await client.callTool("t", { a: "x\ny", b: -7, c: false, d: null, e: { f: " f" } });
  await client.callTool("t", {});
  const [first, second] = server.heard.slice(2).map(({ headers }) =>
    [..."abcdf"].map((name) => headers.get(`mcp-param-${name}`))
  );
  assertEquals(first, ["=?base64?eAp5?=", "-7", "false", null, "=?base64?IGY=?="]);
  assertEquals(second, [null, null, null, null, null]);
});

Deno.test("over HTTP, the client omits a tool with invalid header declarations from the list, and reports a warning", async () => {
  const tools = ["Region", "no way", ""].map((header, i) => ({
    name: `t${i}`,
    inputSchema: { type: "object", properties: { a: { type: "string", "x-mcp-header": header } } },
  }));
  const warnings: string[] = [];
  const onWarning = (text: string) => void warnings.push(text);
  const server = fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    return ok(heard, heard.method === "initialize" ? agreed : { tools });
  });
  await using client = await connect(url, { fetch: server.fetch, onWarning });
  assertEquals((await client.listTools()).map(({ name }) => name), ["t0"]);
  assertEquals(warnings, [sentence("t1"), sentence("t2")]);
  // Legacy revisions have no headers for arguments, so no tool is omitted.
  await using older = await connect(url, { fetch: server.fetch, era: "legacy" });
  assertEquals((await older.listTools()).length, 3);
});

Deno.test("before calling a tool that was not listed yet, the client loads its header declarations", async () => {
  await using server = createLibrary();
  const host = startHttpServer(server.fetch);
  const client = await connect(`${host.origin}/mcp`);
  assertEquals(textOf(await client.callTool("echo", { text: "ab", times: 2 })), "abab");
  await client.close();
  // The tool is on the last page of the list.
  const other = await connect(`${host.origin}/mcp`);
  assertEquals(textOf(await other.callTool("lend", { member: "Ada" })), "1");
  await other.close();
  await host.stop();
});

// Results that ask questions.

Deno.test("requestState is sent back unchanged in a request with a new id, and in no other request", async () => {
  const state = '{"a": 1.0, "b":"\\u0000é"}';
  const server = modern((heard) => {
    const { name, inputResponses } = heard.params;
    if (name === "other" || inputResponses) return ok(heard, text(name));
    const inputRequests = { q: { method: "elicitation/create", params: { message: "?", requestedSchema: {} } } };
    const result = { resultType: "input_required", inputRequests };
    return ok(heard, name === "stateless" ? result : { ...result, requestState: state });
  });
  const onElicit = async () => {
    await client.callTool("other");
    return { action: "accept" as const, content: { yes: true } };
  };
  await using client = await connect(url, { fetch: server.fetch, onElicit });
  await client.callTool("ask", { x: 1 });
  await client.callTool("stateless");
  const calls = server.heard.slice(1).map(({ id, params: { name, inputResponses, requestState } }) => ({
    id,
    seen: [name, inputResponses?.q.content, requestState],
  }));
  assertEquals(calls.map(({ seen }) => seen), [
    ["ask", undefined, undefined],
    ["other", undefined, undefined],
    ["ask", { yes: true }, state],
    ["stateless", undefined, undefined],
    ["other", undefined, undefined],
    ["stateless", { yes: true }, undefined],
  ]);
  assertEquals(server.heard[3].params.arguments, { x: 1 });
  assertEquals(new Set(calls.map(({ id }) => id)).size, calls.length);
});

Deno.test("an input_required result without questions is retried, and the number of rounds is limited", async () => {
  let rounds = 0;
  const server = modern((heard) => {
    if (heard.params.name === "later") {
      const { requestState, inputResponses } = heard.params;
      assertEquals(inputResponses, undefined);
      return ok(heard, requestState ? text("now") : { resultType: "input_required", requestState: "1" });
    }
    rounds++;
    const inputRequests = { roots: { method: "roots/list" } };
    return ok(heard, { resultType: "input_required", inputRequests });
  });
  await using client = await connect(url, { fetch: server.fetch, roots: [], maxAnswers: Infinity });
  assertEquals(textOf(await client.callTool("later")), "now");
  await assertRejects(() => client.callTool("never"), Error, sentence("tools/call", 64));
  assertEquals(rounds, 65);
});

Deno.test("a call fails if the client cannot answer a question", async () => {
  const ask = (method: string, params?: object) =>
    modern((heard) => ok(heard, { resultType: "input_required", inputRequests: { q: { method, params } } }));
  const options: ConnectOptions = {
    onElicitUrl: () => ({ action: "accept" }),
    onElicit: () => Promise.reject(new Error("tired")),
  };
  const form = { message: "?", requestedSchema: {} };
  const cases: readonly [string, object, ...names: string[]][] = [
    ["sampling/createMessage", { messages: [] }, "sampling/createMessage"],
    ["tools/call", {}, "tools/call"],
    ["elicitation/create", { mode: "url", message: "?", url: "javascript:alert(1)" }, "url"],
    ["elicitation/create", { mode: "url", message: "?", url: "file:///etc/passwd" }, "url"],
    ["elicitation/create", { mode: "url", url: "https://a.test" }, "message", "url"],
    ["elicitation/create", { message: "?" }, "requestedSchema"],
    ["elicitation/create", form, "tired"],
  ];
  for (const [method, params, ...names] of cases) {
    await using client = await connect(url, { ...options, fetch: ask(method, params).fetch });
    await assertRejects(() => client.callTool("t"), Error, sentence(...names));
  }
});

Deno.test("onElicit does not handle URL elicitation, and onElicitUrl does not handle forms", async () => {
  const ask = (params: object) =>
    modern((heard) => {
      const inputRequests = { q: { method: "elicitation/create", params: { message: "?", ...params } } };
      return ok(heard, { resultType: "input_required", inputRequests });
    });
  const accept = () => ({ action: "accept" as const });
  await using one = await connect(url, { onElicit: accept, fetch: ask({ mode: "url", url: "https://a.test" }).fetch });
  await assertRejects(() => one.callTool("t"), Error, sentence("elicitation/create"));
  await using two = await connect(url, { onElicitUrl: accept, fetch: ask({ requestedSchema: {} }).fetch });
  await assertRejects(() => two.callTool("t"), Error, sentence("elicitation/create"));
  const sampling = { q: { method: "sampling/createMessage", params: { maxTokens: 1 } } };
  const server = modern((heard) => ok(heard, { resultType: "input_required", inputRequests: sampling }));
  await using three = await connect(url, { onSample: () => Promise.reject(new Error("asked")), fetch: server.fetch });
  await assertRejects(() => three.callTool("t"), Error, sentence("messages"));
});

Deno.test("a call fails if a question is invalid", async () => {
  for (const question of [5, {}, { method: 1 }]) {
    const server = modern((heard) => ok(heard, { resultType: "input_required", inputRequests: { q: question } }));
    await using client = await connect(url, { fetch: server.fetch, roots: [] });
    await assertRejects(() => client.callTool("t"), Error, sentence("q"));
  }
});

Deno.test("a result is refused if no extension declares its resultType", async () => {
  const server = modern((heard) => ok(heard, { resultType: "task", taskId: "1" }));
  await using client = await connect(url, { fetch: server.fetch });
  await assertRejects(() => client.callTool("t"), Error, sentence("task"));
  const extensions = { "io.modelcontextprotocol/tasks": {} };
  await using knowing = await connect(url, { fetch: server.fetch, capabilities: { extensions } });
  assertEquals((await knowing.callTool("t")).taskId, "1");
  await knowing.request("tasks/get", { taskId: "1" });
  assertEquals(server.heard.at(-1)?.headers.get("mcp-name"), "1");
});

// Responses.

Deno.test("the error for an invalid response quotes the response", async () => {
  const html = { "content-type": "text/html" };
  const news = { jsonrpc: "2.0", method: "notifications/x" };
  const answers: readonly (readonly [answer: (heard: Heard) => Response, ...names: (string | number)[]])[] = [
    [
      () => new Response("<html><title> Bad Gateway\n</title><p>x", { status: 502, headers: html }),
      502,
      "text/html",
      "Bad Gateway",
    ],
    [() => new Response(null, { status: 202 }), 202],
    [() => Response.json({ busy: true }, { status: 503 }), 503, "application/json", '{"busy":true}'],
    [() => Response.json({ result: {} }), "JSON-RPC 2.0"],
    [() => ok({ id: 99 }), 99],
    [(heard) => ok(heard, { content: "text" }), "content"],
    [() => stream([news])],
    [() => stream([news], "break")],
  ];
  for (const [answer, ...names] of answers) {
    const server = modern(answer);
    await using client = await connect(url, { fetch: server.fetch });
    await assertRejects(() => client.callTool("t"), Error, sentence(...names));
    assertEquals(server.heard.length, 2, "a modern stream is not resumed");
  }
});

Deno.test("listing fails if the pages of a list never end", async () => {
  const turning = modern((heard) => ok(heard, { tools: [], nextCursor: "same" }));
  await using client = await connect(url, { fetch: turning.fetch });
  await assertRejects(() => client.listTools(), Error, sentence(1000));
  assertEquals(turning.heard.length, 1001);
  let page = 0;
  const endless = modern((heard) => ok(heard, { tools: [], nextCursor: String(page++) }));
  await using patient = await connect(url, { fetch: endless.fetch });
  await assertRejects(() => patient.listTools(), Error, sentence(1000));
});

Deno.test("listing returns an empty list if the server does not support the feature, unless the server has declared the feature", async () => {
  const server = modern((heard) => fault(heard, -32601, 404));
  await using client = await connect(url, { fetch: server.fetch });
  assertEquals(await client.listPrompts(), []);
  assertEquals(await client.listResourceTemplates(), []);
  assertEquals((await assertRejects(() => client.listTools(), McpError)).status, 404);
});

Deno.test("the client reads the response from a stream that stays open, and closes the stream", async () => {
  let isCancelled = false;
  const server = modern(({ id }) => {
    const { body } = stream([{ jsonrpc: "2.0", method: "notifications/x" }, message(id, "done")], "open");
    const watched = new ReadableStream({
      async start(controller) {
        for await (const bytes of body ?? []) controller.enqueue(bytes);
      },
      cancel() {
        isCancelled = true;
      },
    });
    return new Response(watched, { headers: { "content-type": "text/event-stream" } });
  });
  const heard: string[] = [];
  const client = await connect(url, { fetch: server.fetch, onNotification: ({ method }) => void heard.push(method) });
  assertEquals(textOf(await client.callTool("t")), "done");
  assertEquals(heard, ["notifications/x"]);
  await client.close();
  assert(isCancelled);
});

Deno.test("the message with the request's id is the response, wherever it is in the stream", async () => {
  const server = modern(({ id }) => stream([message(99, "not this"), message(id, "this")]));
  await using client = await connect(url, { fetch: server.fetch });
  assertEquals(textOf(await client.callTool("t")), "this");
});

Deno.test("the content of a tool result is empty if the server leaves it out, and the omission is reported", async () => {
  const results = [{ structuredContent: { n: 1 } }, { structuredContent: [1], isError: true }, {}, { _meta: { a: 1 } }];
  for (const result of results) {
    const texts: string[] = [];
    const server = modern((heard) => ok(heard, result));
    await using client = await connect(url, { fetch: server.fetch, onWarning: (text) => void texts.push(text) });
    assertEquals<unknown>(await client.callTool("t"), { ...result, content: [] });
    assertEquals(texts, [sentence("content")]);
    // `request` returns the result as the server sent it.
    assertEquals(await client.request("tools/call", { name: "t" }), result);
  }
  for (const content of [null, {}, "text"]) {
    const server = modern((heard) => ok(heard, { content, structuredContent: {} }));
    await using client = await connect(url, { fetch: server.fetch });
    await assertRejects(() => client.callTool("t"), McpError, sentence("content"));
  }
});

Deno.test("a notification succeeds with any success status, and fails with any other status", async () => {
  let status = 202;
  const server = modern((heard) =>
    status === 400
      ? fault(heard, -32600, 400)
      : new Response(status === 503 ? "busy" : null, { status, headers: { "content-type": "text/plain" } })
  );
  await using client = await connect(url, { fetch: server.fetch });
  for (status of [202, 200, 204]) await client.notify("notifications/x", { a: 1 });
  assertEquals(server.heard.at(-1)?.params, { a: 1 });
  status = 503;
  await assertRejects(() => client.notify("notifications/x"), McpError, sentence(503, "text/plain", "busy"));
  status = 400;
  assertEquals((await assertRejects(() => client.notify("notifications/x"), McpError)).code, -32600);
});

Deno.test("the result of a completion contains total if the server sends total", async () => {
  const answers: unknown[] = [
    { values: ["a", "b"], total: 9, hasMore: true },
    { values: [], total: "9", hasMore: 1 },
    { values: ["a", 1] },
    { values: "a" },
    undefined,
  ];
  const server = modern((heard) => ok(heard, { completion: answers.shift() }));
  const warnings: string[] = [];
  await using client = await connect(url, { fetch: server.fetch, onWarning: (text) => warnings.push(text) });
  const complete = () => client.complete({ type: "ref/prompt", name: "p" }, { name: "a", value: "" });
  assertEquals(await complete(), { values: ["a", "b"], total: 9, hasMore: true });
  assertEquals(server.heard.at(-1)?.params.context, undefined);
  assertEquals(await complete(), { values: [] });
  assertEquals(warnings, [sentence("completion.total", '"9"', "completion.hasMore", 1)]);
  await assertRejects(complete, McpError, sentence("completion.values[1]"));
  await assertRejects(complete, McpError, sentence("completion.values"));
  await assertRejects(complete, McpError, sentence("completion"));
});

Deno.test("a request from the server on a modern stream is reported as a warning, and gets no response", async () => {
  const warnings: string[] = [];
  const asked = { jsonrpc: "2.0", id: 1, method: "roots/list" };
  const server = modern(({ id }) => stream([asked, message(id, "done")]));
  await using client = await connect(url, {
    fetch: server.fetch,
    roots: [],
    onWarning: (text) => void warnings.push(text),
  });
  assertEquals(textOf(await client.callTool("t")), "done");
  assertEquals([warnings.length, server.heard.length], [1, 2]);
  assertStringIncludes(warnings[0], "roots/list");
});

// Sessions.

Deno.test("a session id is sent in every request, and the session is deleted on close", async () => {
  const server = legacy((heard) => heard.id ? ok(heard, text("")) : undefined);
  const client = await connect(url, { fetch: server.fetch, era: "legacy", onNotification() {} });
  await client.callTool("t");
  await client.close();
  assertEquals(
    server.heard.map(({ http, method, headers }) => [method ?? http, headers.get("mcp-session-id")]).sort(),
    [
      ["DELETE", "session-1"],
      ["GET", "session-1"],
      ["initialize", null],
      ["notifications/initialized", "session-1"],
      ["tools/call", "session-1"],
    ],
  );
});

Deno.test("the revision header is sent from the first revision that defines it", async () => {
  for (const [version, header] of [["2024-11-05", null], ["2025-03-26", null], ["2025-06-18", "2025-06-18"]]) {
    const server = fakeHttp((heard) => {
      if (heard.method === "initialize") return ok(heard, { ...agreed, protocolVersion: version });
      return heard.id ? ok(heard, { tools: [] }) : undefined;
    });
    await using client = await connect(url, { fetch: server.fetch, era: "legacy" });
    await client.listTools();
    assertEquals([client.server.version, server.heard.at(-1)?.headers.get("mcp-protocol-version")], [version, header]);
  }
});

Deno.test("the client retries opening a GET stream after a failure", async () => {
  let status = 500;
  const server = legacy(({ http }) => {
    if (http !== "GET") return undefined;
    return status === 200
      ? stream([], "open")
      : new Response("not now", { status, headers: { "content-type": "text/plain" } });
  });
  await using client = await connect(url, { fetch: server.fetch, era: "legacy", onNotification() {} });
  await assertRejects(
    () => client.subscribe({ toolsListChanged: true }),
    McpError,
    sentence(500, "text/plain", "not now"),
  );
  status = 200;
  await client.subscribe({ toolsListChanged: true });
});

Deno.test("the client replaces an expired session by one new session, even if several requests detect the expiry", async () => {
  let good = "session-1";
  const server = legacy((heard) => {
    const id = heard.headers.get("mcp-session-id");
    if (heard.method === "notifications/initialized") good = id ?? "";
    else if (id !== good) return fault(heard, -32600, 404);
    return heard.id ? ok(heard, text(id ?? "")) : undefined;
  });
  await using client = await connect(url, { fetch: server.fetch, era: "legacy", logLevel: "error", onWarning() {} });
  const subscription = await client.subscribe({ resourceSubscriptions: ["a:1"] });
  assertEquals(textOf(await client.callTool("t")), "session-1");
  good = "none";
  const texts = await Promise.all([1, 2, 3].map(async () => textOf(await client.callTool("t"))));
  assertEquals(texts, ["session-2", "session-2", "session-2"]);
  const again = server.heard.slice(server.heard.findLastIndex(({ method }) => method === "initialize"));
  const head = again.slice(0, 5).map(({ http, method }) => method ?? http);
  assertEquals(head, ["initialize", "notifications/initialized", "logging/setLevel", "GET", "resources/subscribe"]);
  assertEquals(again[0].headers.get("mcp-protocol-version"), null);
  // A 404 response whose error is not about the session does not replace the session.
  good = "none";
  const other = legacy((heard) => heard.id ? fault(heard, -32601, 404) : undefined);
  await using wrong = await connect(url, { fetch: other.fetch, era: "legacy" });
  await assertRejects(() => wrong.callTool("t"), McpError);
  assertEquals(methodsOf(other).filter((method) => method === "initialize").length, 1);
  await subscription.close();
});

Deno.test("a subscription continues in a new session after the server has ended the session", async () => {
  await using server = createLibrary();
  const ids: string[] = [];
  const trace = toTrace({ response: ({ headers }) => void ids.push(headers.get("mcp-session-id") ?? "") });
  const fetch = (request: Request) => server.fetch(request);
  await using client = await connect("http://localhost/mcp", { fetch, era: "legacy", trace });
  const subscription = await client.subscribe({ resourceSubscriptions: ["book://1"] });
  const [id] = ids.filter((id) => id);
  await server.fetch(new Request("http://localhost/mcp", { method: "DELETE", headers: { "mcp-session-id": id } }));
  // The stream ends, and the attempt to resume the stream after a second gets 404.
  await until(() => new Set(ids.filter((id) => id)).size === 2, "a new session");
  await until(() => count(trace.methods, "resources/subscribe") === 2, "a new subscription");
  await client.callTool("lend");
  assertEquals((await subscription[Symbol.asyncIterator]().next()).value.params.uri, "book://1");
});

Deno.test("the client answers questions outside of calls, unless the server cancels the question", async () => {
  const ask = (id: number, name: string) => ({ jsonrpc: "2.0", id, method: "elicitation/create", params: form(name) });
  const form = (name: string) => ({ message: name, requestedSchema: { properties: { a: { default: 1 } } } });
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } };
  const server = legacy(({ http }) =>
    http === "GET"
      ? stream(
        [ask(1, "quick"), ask(2, "slow"), { jsonrpc: "2.0", id: 3, method: "ping" }, ask(4, "bad"), cancel],
        "open",
      )
      : undefined
  );
  const taken: string[] = [];
  const warnings: string[] = [];
  await using client = await connect(url, {
    fetch: server.fetch,
    era: "legacy",
    onWarning: (text) => void warnings.push(text),
    async onElicit({ message }, { signal }) {
      if (message === "bad") throw new Error("out of paper");
      if (message === "slow") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      if (signal.aborted) taken.push(message);
      return { action: "accept" };
    },
  });
  const answers = () => server.heard.filter(({ result, error }) => result ?? error);
  await until(() => answers().length === 3 && taken.length === 1, "answers");
  const byId = Object.fromEntries(answers().map(({ id, result, error }) => [id, result ?? error?.code]));
  assertEquals(byId, { 1: { action: "accept", content: { a: 1 } }, 3: {}, 4: -32603 });
  assertEquals([taken, warnings], [["slow"], ["out of paper"]]);
  assertEquals(answers().every(({ headers }) => headers.get("mcp-session-id") === "session-1"), true);
  await client.close();
});

// Streams that end too early.

Deno.test("a stream with a session is resumed after the retry time that the server sent", async () => {
  let endedAt = 0;
  const waited: number[] = [];
  let visits = 0;
  const server = legacy((heard) => {
    if (heard.http === "GET") {
      waited.push(performance.now() - endedAt);
      assertEquals(heard.headers.get("last-event-id"), ["a", "b", "b"][visits]);
      visits++;
      endedAt = performance.now();
      // The first response lets the client poll, the second response breaks the stream, and the third response ends the
      // stream.
      if (visits === 1) return stream(["id: b\nretry: 20\ndata:\n\n"]);
      if (visits === 2) return stream(["event: message\n"], "break");
      return stream([message(call?.id, "late")]);
    }
    if (heard.method !== "tools/call") return undefined;
    call = heard;
    endedAt = performance.now();
    return stream([`id: a\nretry: 60\ndata:\n\n`]);
  });
  let call: Heard | undefined;
  await using client = await connect(url, { fetch: server.fetch, era: "legacy" });
  assertEquals(textOf(await client.callTool("t")), "late");
  assert(waited[0] > 55 && waited[1] > 15 && waited[2] > 15, waited.join());
});

Deno.test("a call fails if its stream cannot be resumed", async () => {
  const place = `id: a\nretry: 1\ndata:\n\n`;
  const gone = () => new Response("gone", { status: 400, headers: { "content-type": "text/plain" } });
  const unreachable = () => Promise.reject(new TypeError("no network"));
  const answers: readonly (readonly [first: string, then: () => Response | Promise<Response>, names: string[]])[] = [
    ["data:\n\n", () => stream([]), []],
    [place, gone, ["400", "text/plain", "gone"]],
    [place, unreachable, []],
  ];
  for (const [first, then, names] of answers) {
    const server = legacy(({ http, method }) => {
      if (http === "GET") return then();
      return method === "tools/call" ? stream([first]) : undefined;
    });
    const warnings: string[] = [];
    const onWarning = (text: string) => void warnings.push(text);
    await using client = await connect(url, { fetch: server.fetch, era: "legacy", onWarning });
    await assertRejects(() => client.callTool("t"), Error, sentence(...names));
    // The client reports only one warning for all attempts to resume the stream.
    assertEquals(warnings, then === unreachable ? [sentence(url, "no network")] : []);
  }
});

Deno.test("a call gets its result even if the server closes the stream before sending the result", async () => {
  const away = tool({
    name: "away",
    async run(_input, ctx) {
      ctx.closeStream(10);
      await turn(5);
      return "back";
    },
  });
  await using server = createServer({ name: "s", version: "1", handlers: [away] });
  const host = startHttpServer(server.fetch);
  for (const era of ["legacy", "modern"] as const) {
    await using client = await connect(`${host.origin}/mcp`, { era });
    assertEquals(textOf(await client.callTool("away")), "back");
  }
  await host.stop();
});

Deno.test("the client reopens a subscription after its stream broke", async () => {
  let opened = 0;
  const server = modern(({ id, method }) => {
    if (method !== "subscriptions/listen") return undefined;
    const _meta = { "io.modelcontextprotocol/subscriptionId": id };
    const acknowledged = { method: "notifications/subscriptions/acknowledged", params: { _meta, notifications: {} } };
    const news = { method: "notifications/tools/list_changed", params: { _meta, opened: ++opened } };
    const events = [acknowledged, news].map((event) => ({ jsonrpc: "2.0", ...event }));
    if (opened < 3) return stream(events, opened === 1 ? "break" : "end");
    return stream([...events, { jsonrpc: "2.0", id, result: { resultType: "complete", last: true } }]);
  });
  await using client = await connect(url, { fetch: server.fetch });
  const subscription = await client.subscribe({ toolsListChanged: true });
  const seen: unknown[] = [];
  for await (const { params } of subscription) seen.push(params.opened);
  assertEquals(seen, [1, 2, 3]);
  assertEquals((await subscription.ended)?.last, true);
});

Deno.test("subscribing fails if the server refuses or never acknowledges the subscription", async () => {
  const refusing = modern((heard) => fault(heard, -32601, 404));
  await using client = await connect(url, { fetch: refusing.fetch });
  await assertRejects(() => client.subscribe({ toolsListChanged: true }), McpError);
  const silent = modern(() => stream([], "open"));
  const clock = fakeClock();
  await withTimersOn(clock, 50, async () => {
    await using waiting = await connect(url, { fetch: silent.fetch, timeoutMs: 50 });
    const subscribing = assertRejects(() => waiting.subscribe({ toolsListChanged: true }), DOMException);
    assertEquals((await advanceUntil(clock, 50, subscribing)).name, "TimeoutError");
  });
  const ending = modern((heard) => ok(heard, { resultType: "complete" }));
  await using over = await connect(url, { fetch: ending.fetch });
  await assertRejects(() => over.subscribe({ toolsListChanged: true }), Error, sentence());
});

Deno.test("a subscription works on a server without a GET stream", async () => {
  const warnings: string[] = [];
  const news = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
  const server = legacy(({ id, method }) => method === "tools/call" ? stream([news, message(id, "")]) : undefined);
  await using client = await connect(url, {
    fetch: server.fetch,
    era: "legacy",
    onWarning: (text) => void warnings.push(text),
  });
  const subscription = await client.subscribe({ toolsListChanged: true, promptsListChanged: true });
  assertEquals(subscription.granted, { toolsListChanged: true });
  assertEquals(warnings.length, 1);
  await client.callTool("t");
  assertEquals((await subscription[Symbol.asyncIterator]().next()).value.method, news.method);
});

Deno.test("the client sends no log level to a server without logging", async () => {
  const server = fakeHttp((heard) => {
    if (heard.method === "initialize") return ok(heard, { ...agreed, capabilities: {} });
    return heard.id ? fault(heard, -32601, 200) : undefined;
  });
  await using client = await connect(url, { fetch: server.fetch, era: "legacy", logLevel: "error" });
  assertEquals(methodsOf(server), ["initialize", "notifications/initialized"]);
  assertEquals((await assertRejects(() => client.setLogLevel("info"), McpError)).code, -32601);
});

Deno.test("a closed client sends no further requests", async () => {
  for (const make of [modern, legacy]) {
    const server = make((heard) => {
      if (heard.method === "subscriptions/listen") {
        const _meta = { "io.modelcontextprotocol/subscriptionId": heard.id };
        const method = "notifications/subscriptions/acknowledged";
        return stream([{ jsonrpc: "2.0", method, params: { _meta } }], "open");
      }
      if (heard.http === "GET") return stream([], "open");
      return heard.id ? ok(heard) : undefined;
    });
    const era = make === modern ? "modern" : "legacy";
    // An infinite timeout must not expire immediately, although timers treat an infinite delay as zero.
    const client = await connect(url, { fetch: server.fetch, era, timeoutMs: Infinity });
    const subscription = await client.subscribe({ resourceSubscriptions: ["a:1"] });
    await client.close();
    const { length } = server.heard;
    assertEquals(await subscription.ended, undefined);
    await subscription.close();
    await assertRejects(() => client.listTools(), DOMException, sentence());
    assertEquals(server.heard.length, length);
  }
});

Deno.test("subscribing fails if the server refuses to watch one of the resources", async () => {
  const server = legacy((heard) => {
    if (heard.method === "resources/subscribe" && heard.params.uri === "a:2") return fault(heard, -32602, 200);
    return heard.id ? ok(heard) : undefined;
  });
  await using client = await connect(url, { fetch: server.fetch, era: "legacy", onWarning() {} });
  await assertRejects(() => client.subscribe({ resourceSubscriptions: ["a:1", "a:2"] }), McpError);
  // After the refusal, the client unsubscribes from both resources.
  assertEquals(methodsOf(server).filter((method) => method === "resources/unsubscribe").length, 2);
});

Deno.test("the client unsubscribes from a resource when the last subscription to the resource ends", async () => {
  const server = legacy((heard) => heard.id ? ok(heard) : heard.http === "GET" ? stream([], "open") : undefined);
  await using client = await connect(url, { fetch: server.fetch, era: "legacy" });
  const [one, two] = [
    await client.subscribe({ resourceSubscriptions: ["a:1"] }),
    await client.subscribe({ resourceSubscriptions: ["a:1"] }),
  ];
  await one.close();
  assertEquals(methodsOf(server).includes("resources/unsubscribe"), false);
  await two.close();
  assertEquals(count(methodsOf(server), "resources/unsubscribe"), 1);
  assertEquals(count(methodsOf(server), "GET"), 1);
});

Deno.test("a lost GET stream is resumed, or opened anew if the server refuses to resume the stream", async () => {
  const places: (string | null)[] = [];
  const news = (name: string) => ({ jsonrpc: "2.0", method: `notifications/${name}/list_changed` });
  const server = legacy(({ http, headers }) => {
    if (http !== "GET") return undefined;
    places.push(headers.get("last-event-id"));
    if (places.length === 1) return stream(["id: a\nretry: 5\ndata:\n\n", news("tools")]);
    if (places.length === 2) return Promise.reject(new TypeError("no network"));
    if (places.length === 3) return new Response("gone", { status: 400, headers: { "content-type": "text/plain" } });
    return stream([news("prompts")], "open");
  });
  const seen: string[] = [];
  const onNotification = ({ method }: { method: string }) => void seen.push(method);
  await using client = await connect(url, { fetch: server.fetch, era: "legacy", onNotification });
  await until(() => seen.length === 2, "both");
  assertEquals(seen, ["notifications/tools/list_changed", "notifications/prompts/list_changed"]);
  assertEquals(places, [null, "a", "a", null]);
  // The client has not started a new session.
  assertEquals(count(methodsOf(server), "initialize"), 1);
  await client.close();
});

Deno.test("a callback that throws causes only a warning", async () => {
  const warnings: string[] = [];
  const progress = (token: unknown) => ({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: { progressToken: token, progress: 1 },
  });
  const server = modern(({ id, params }) => stream([progress(params._meta.progressToken), message(id, "done")]));
  await using client = await connect(url, {
    fetch: server.fetch,
    onWarning: (text) => void warnings.push(text),
    onNotification() {
      throw new Error("first");
    },
  });
  const onProgress = throwing(new Error("second"));
  assertEquals(textOf(await client.callTool("t", {}, { onProgress })), "done");
  assertEquals(warnings, ["first", "second"]);
});

Deno.test("the client ignores progress of another request, and progress that is not a number", async () => {
  const steps: unknown[] = [];
  const server = modern(({ id, params: { _meta } }) => {
    const given = [["other", 1], [_meta.progressToken, "2"], [_meta.progressToken, 3]];
    const events = given.map(([progressToken, progress]) => ({
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken, progress },
    }));
    return stream([...events, message(id, "")]);
  });
  await using client = await connect(url, { fetch: server.fetch });
  await client.callTool("t", {}, { onProgress: ({ progress }) => void steps.push(progress) });
  assertEquals(steps, [3]);
  // Without `onProgress`, the client sends no progress token.
  await client.callTool("t");
  assertEquals(server.heard.at(-1)?.params._meta.progressToken, undefined);
});

Deno.test("closing the client waits for a limited time until cancellations are sent", async () => {
  for (const answers of [true, false]) {
    let isNotified = false;
    const server = fakeHttp((heard) => {
      if (heard.method === "initialize") return ok(heard, agreed);
      if (heard.method === "tools/call") return stream([], "open");
      if (heard.method !== "notifications/cancelled") return;
      if (!answers) return new Promise(() => {});
      return turn(10).then(() => {
        isNotified = true;
        return new Response(null, { status: 202 });
      });
    });
    const client = await connect(url, { fetch: server.fetch, era: "legacy" });
    const stop = new AbortController();
    const calling = client.callTool("wait", {}, { signal: stop.signal }).catch((error) => error);
    await until(() => methodsOf(server).includes("tools/call"), "the call");
    stop.abort(new Error("enough"));
    assertEquals((await calling).message, "enough");
    await client.close();
    assertEquals(isNotified, answers);
  }
});

Deno.test("a call is cancelled with the mechanism of its era", async () => {
  for (const era of ["modern", "legacy"] as const) {
    const stop = new AbortController();
    let isClosed = false;
    const body = new ReadableStream({ cancel: () => void (isClosed = true) });
    const make = era === "modern" ? modern : legacy;
    const server = make(({ method }) => {
      if (method !== "tools/call") return undefined;
      queueMicrotask(() => stop.abort(new Error("enough")));
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    });
    await using client = await connect(url, { fetch: server.fetch, era });
    await assertRejects(() => client.callTool("t", {}, { signal: stop.signal }), Error, "enough");
    await until(() => isClosed, "the stream to close");
    const call = server.heard.find(({ method }) => method === "tools/call");
    const cancelled = server.heard.find(({ method }) => method === "notifications/cancelled");
    const expected = { requestId: call?.id, reason: "enough" };
    assertEquals(cancelled?.params, era === "legacy" ? expected : undefined);
  }
});

function count<T>(items: readonly T[], item: T): number {
  return items.filter((each) => each === item).length;
}

Deno.test("client: trace may have some of its methods, and is refused if it is a function", async () => {
  const messages: string[] = [];
  const server = createServer({ name: "traced", version: "1.0.0", handlers: [tool({ name: "hi", run: () => "hi" })] });
  for (const target of [server, "http://localhost/mcp"] as const) {
    messages.length = 0;
    const trace = { received: (message: unknown) => void messages.push(JSON.stringify(message)) };
    const options = typeof target === "string" ? { trace, fetch: server.fetch } : { trace };
    await using client = await connect(target, options);
    await client.callTool("hi");
    assertStringIncludes(messages.at(-1) ?? "", '"text":"hi"');
  }
  await assertRejects(() => connect(server, { trace: (() => {}) as never }), TypeError, sentence("trace"));
});

/** Creates a trace that records the method of each request. */
function toTrace(given: Partial<Trace>): Trace & { readonly methods: readonly (string | undefined)[] } {
  const methods: (string | undefined)[] = [];
  return {
    methods,
    request() {},
    response() {},
    received() {},
    other() {},
    sent: ({ method }: WireMessage) => void methods.push(method),
    ...given,
  };
}

Deno.test("the client sends an answer again if a busy server refused it, and sends no answers after the call has ended", async () => {
  const name = z.object({ name: z.string() });
  const greet = tool({
    name: "greet",
    run: async (_, ctx) => `Hello, ${(await ctx.elicit("who", { message: "Who?", schema: name })).content?.name}`,
  });
  await using server = createServer({ name: "greeter", version: "1.0.0", handlers: [greet] });
  const refusals = [
    () => new Response("busy", { status: 503 }),
    throwing(new TypeError("connection refused")),
    () => new Response("slow down", { status: 429 }),
  ];
  let sent = 0;
  const fetch = async (request: Request) => {
    if (request.method !== "POST" || !(await request.clone().text()).includes('"result"')) return server.fetch(request);
    return refusals[sent++]?.() ?? server.fetch(request);
  };
  const onElicit = () => ({ action: "accept", content: { name: "Ada" } }) as const;
  await using client = await connect("http://localhost/mcp", { era: "legacy", fetch, onElicit });
  assertEquals(textOf(await client.callTool("greet")), "Hello, Ada");
  assertEquals(sent, refusals.length + 1);
  refusals.push(...Array.from({ length: 100 }, () => refusals[0]));
  await assertRejects(
    () => client.callTool("greet", {}, { timeoutMs: 600 }),
    DOMException,
    sentence("tools/call", 600),
  );
  const before = sent;
  await client.listTools();
  assertEquals(sent, before);
});

// The buffer of a subscription for unread notifications.

async function open() {
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  let send: (notification: Notification) => void = () => {};
  const subscription = await toSubscription(async (onChange) => {
    send = onChange;
    return await Promise.resolve({ granted: {}, ended, close: () => Promise.resolve() });
  });
  return { subscription, end: () => end(undefined), send: (n: number) => send({ method: "changed", params: { n } }) };
}

Deno.test("a subscription keeps at most the newest 1,000 unread notifications", async () => {
  const { subscription, end, send } = await open();
  for (let n = 0; n < 100_000; n++) send(n);
  end();
  const taken = await Array.fromAsync(subscription, ({ params }) => Object(params).n);
  assertEquals([taken.length, taken[0], taken.at(-1)], [1000, 99_000, 99_999]);
});

Deno.test("all loops over a subscription end when the subscription ends", async () => {
  const { subscription, end, send } = await open();
  const loops = Array.from({ length: 4 }, () => Array.fromAsync(subscription, ({ params }) => Object(params).n));
  await turn();
  send(1);
  await turn();
  end();
  assertEquals((await Promise.all(loops)).flat(), [1]);
});
