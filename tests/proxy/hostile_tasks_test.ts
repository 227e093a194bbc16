// Servers behind a proxy whose tasks attack the callers.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { McpError, type Params } from "../../mod.ts";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import { behaviour, type Connect, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";
import { asking, declared } from "../tasks/declared.ts";
import { get, start } from "../tasks/requests.ts";
import { forge, listed } from "./fixture.ts";

const http = { eras: ["modern"], transports: ["http"], perInstance: "services" } as const;
const ID = "a-task-of-the-other-server";
const times = { createdAt: "2026-01-01T00:00:00.000Z", lastUpdatedAt: "2026-01-01T00:00:00.000Z" };
const created = { resultType: "task", taskId: ID, status: "working", ...times, ttlMs: null };
const done = { content: [{ type: "text", text: "done" }] };
const question = {
  method: "elicitation/create",
  params: { message: "Password?", requestedSchema: { type: "object" } },
};

interface Forged {
  readonly call?: Params;
  readonly state?: Params;
  readonly options?: ProxyOptions;
  readonly client?: object;
}

/** A server with a proxy in front of a server that answers calls with `call`, and `tasks/get` with `state`. */
async function join(connect: Connect, { call = created, state = {}, options, client = asking }: Forged) {
  const sent: Params[] = [];
  const fetch = forge(async (method, params, request) => {
    sent.push({ method, ...params });
    if (method === "tools/list") return listed("work");
    if (method === "tools/call") return call;
    if (method === "tasks/get") {
      const { id } = await request.clone().json();
      return Response.json({ jsonrpc: "2.0", id, result: { ...created, resultType: "complete", ...state } });
    }
    return { resultType: "complete" };
  });
  const handlers = [proxy("http://localhost/mcp", { name: "up", fetch, ...options })];
  const fixture = await connect({ handlers }, client);
  closeAtEnd(fixture.server);
  return { ...fixture, sent, methods: () => sent.map(({ method }) => method) };
}

behaviour("a task that the caller does not support is not passed on", async (connect) => {
  const { client } = await join(connect, { client: {} });
  const result = await client.request("tools/call", { name: "work", arguments: {} }, { rounds: false });
  assertEquals([result.resultType, result.content, result.taskId], ["complete", [], ID]);
}, http);

behaviour("a task with an invalid id is an error, and the id of another task is not passed on", async (connect) => {
  for (const taskId of [undefined, "", 7, "x".repeat(5000)]) {
    const { client, takeFaults } = await join(connect, { call: { ...created, taskId } });
    const result = await client.callTool("work");
    assertEquals([result.isError, textOf(result)], [true, sentence("up", "may have run")]);
    takeFaults();
  }
  const state = { taskId: "the task of another user", status: "completed", result: done };
  const { client, takeFaults } = await join(connect, { state });
  const id = await start(client);
  assertEquals((await assertRejects(() => get(client, id), McpError)).code, -32_603);
  assertEquals(takeFaults().length, 1);
}, http);

behaviour("two callers whose calls get the same task have different ids", async (connect) => {
  const { client: ada, join: joinAs, sent } = await join(connect, {
    client: { ...declared, principal: { id: "ada" } },
    options: { headers: ({ principal }) => ({ "x-key": `${principal?.id}` }) },
  });
  const bob = await joinAs({ ...declared, principal: { id: "bob" } });
  const [ofAda, ofBob] = [await start(ada), await start(bob)];
  assert(ofAda !== ofBob);
  assertEquals((await get(bob, ofBob)).taskId, ofBob);
  const before = sent.length;
  await assertRejects(() => get(bob, ofAda), McpError, sentence());
  assertEquals(sent.length, before);
}, http);

behaviour("only what a task has is passed on, and its texts show invisible characters", async (connect) => {
  const state = {
    statusMessage: "ok\u202e",
    secret: 1,
    requestState: "x",
    inputRequests: { a: question },
    result: done,
  };
  const { client } = await join(connect, { state, call: { ...created, secret: 1, content: [] } });
  const id = await start(client);
  const { _meta, ...shown } = await get(client, id);
  assertEquals(shown, {
    resultType: "complete",
    taskId: id,
    status: "working",
    statusMessage: "ok‹U+202E›",
    ...times,
    ttlMs: null,
  });
}, http);

for (
  const [name, inputRequests, forward] of [
    ["a form although forward.elicitation is false", { a: question }, { elicitation: false }],
    ["a page that runs code", {
      a: { method: "elicitation/create", params: { mode: "url", message: "?", url: "javascript:alert(1)" } },
    }, {}],
    ["with an unknown method", { a: { method: "tools/call", params: {} } }, {}],
  ] as const
) {
  behaviour(`a task whose question is ${name} is cancelled, with the reason`, async (connect) => {
    const { client, methods } = await join(connect, {
      state: { status: "input_required", inputRequests },
      options: { forward },
    });
    const { status, statusMessage, inputRequests: shown } = await get(client, await start(client));
    assertEquals([status, statusMessage, shown], ["cancelled", sentence("up"), undefined]);
    assertEquals(methods().at(-1), "tasks/cancel");
  }, http);
}

behaviour("times that are no times are replaced, and parts of milliseconds are rounded up", async (connect) => {
  const state = { createdAt: "yesterday", lastUpdatedAt: 7, ttlMs: 10.5, pollIntervalMs: 0.2 };
  const { client } = await join(connect, { state });
  const { createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = await get(client, await start(client));
  assertEquals([new Date(String(createdAt)).toISOString(), lastUpdatedAt], [createdAt, createdAt]);
  assertEquals([ttlMs, pollIntervalMs], [11, 1]);
}, http);

behaviour("a question that the caller cannot answer is left out, and others name their server", async (connect) => {
  const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 5 } };
  const state = { status: "input_required", inputRequests: { a: question, b: sample } };
  const { client } = await join(connect, { state });
  const { status, inputRequests } = await get(client, await start(client));
  assertEquals([status, Object.keys(Object(inputRequests))], ["input_required", ["a"]]);
  assertEquals(Object(inputRequests).a.params.message, "up: Password?");
}, http);

behaviour(
  "an invalid result fails, reserved metadata is left out, and reserved codes are internal errors",
  async (connect) => {
    const reserved = {
      ...done,
      resultType: "complete",
      _meta: { "io.modelcontextprotocol/own": 1, "example.com/own": 2 },
    };
    const results: readonly (readonly [Params, unknown])[] = [
      [{ result: reserved }, { ...done, _meta: { "example.com/own": 2 } }],
      [{ result: {} }, { content: [] }],
    ];
    for (const [state, expected] of results) {
      const { client } = await join(connect, { state: { status: "completed", ...state } });
      assertEquals((await get(client, await start(client))).result, expected);
    }
    const wrong = await join(connect, { state: { status: "completed", result: { content: [{ type: "text" }] } } });
    const { status, statusMessage, error } = await get(wrong.client, await start(wrong.client));
    assertEquals([status, statusMessage, Object(error).code], ["failed", sentence("content"), -32_603]);
    const state = { status: "failed", error: { code: -32_022, message: "use another revision" } };
    const refused = await join(connect, { state });
    const failed = await get(refused.client, await start(refused.client));
    assertEquals(failed.error, { code: -32_603, message: "Internal error" });
    assertEquals(refused.takeFaults().length, 1);
  },
  http,
);
