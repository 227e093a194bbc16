// Tasks of a server behind a proxy are tasks of this server, for callers that have tasks.
import { assertEquals, assertRejects } from "@std/assert";
import {
  type Context,
  group,
  isQuestion,
  McpError,
  type Params,
  type Server,
  tool,
  type ToolReturn,
} from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { guard, type Layer, layer, quota } from "../../src/layers/layers.ts";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { behaviour, type Connect, gate, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";
import { openServer } from "../support/servers.ts";
import { asking, declared } from "../tasks/declared.ts";
import { get, reach, start, untilAborted, update } from "../tasks/requests.ts";
import { createUpstream, pairs, proxyOf } from "./fixture.ts";

const both = { behind: ["modern"], eras: ["modern"] } as const;
const http = { eras: ["modern"], transports: ["http"], perInstance: "services" } as const;
const form = { type: "object", properties: { by: { type: "string" } } } as const;
const answer = { who: { action: "accept", content: { by: "Ada" } } };
const UNKNOWN = "x".repeat(32);

/** The handlers of a server whose tool is a task. */
function work(run: (ctx: Context, input: Params) => unknown) {
  const made = tool({
    name: "work",
    input: { type: "object" },
    use: [task({ pollIntervalMs: 50 })],
    run: async (input, ctx) => await run(ctx, Object(input)) as ToolReturn,
  });
  return [tasks(), made];
}

const ask = async (ctx: Context) =>
  `by ${(await ctx.elicit("who", { message: "Who?", schema: form })).content?.by ?? "nobody"}`;

const messageOf = async (run: () => Promise<unknown>) => (await assertRejects(run, McpError)).message;

/** The functions with which a client uses a task. */
const uses = {
  get,
  update: (client: Connection, id: unknown) => update(client, id, answer),
  cancel: (client: Connection, taskId: unknown) => client.request("tasks/cancel", { taskId }),
};

/** Checks that a task does not exist for a client. */
async function refuseAll(client: Connection, id: unknown, message = ""): Promise<void> {
  const unknown = message || await messageOf(() => get(client, UNKNOWN));
  for (const [name, use] of Object.entries(uses)) assertEquals(await messageOf(() => use(client, id)), unknown, name);
  const { granted } = await client.subscribe({ extensions: { taskIds: [id] } });
  assertEquals(granted.extensions?.taskIds ?? [], []);
}

pairs("a task of the other server is a task, with its questions, messages, result and notifications", async (join) => {
  const { pass, open } = gate();
  const { client } = await join({
    upstream: {
      handlers: work(async (ctx) => {
        await ctx.progress(1, { message: "half\u200b" });
        const by = await ask(ctx);
        await pass;
        return { content: [{ type: "text", text: by }], _meta: { "example.com/own": 1 } };
      }),
    },
    proxy: { name: "press", prefix: "press_" },
    client: asking,
  });
  const created = await client.request("tools/call", { name: "press_work", arguments: {} }, { finish: false });
  const { taskId, _meta: _, ...shown } = created;
  assertEquals(Object.keys(shown).toSorted(), [
    "createdAt",
    "lastUpdatedAt",
    "pollIntervalMs",
    "resultType",
    "status",
    "ttlMs",
  ]);
  assertEquals([shown.resultType, shown.status, shown.pollIntervalMs], ["task", "working", 50]);
  const asked = await reach(client, taskId, "input_required", "who");
  assertEquals(asked.statusMessage, "half‹U+200B›");
  const { method, params } = Object(Object(asked.inputRequests).who);
  assertEquals([method, params.message], ["elicitation/create", "press: Who?"]);
  const subscription = await client.subscribe({ extensions: { taskIds: [taskId] } });
  assertEquals(subscription.granted.extensions?.taskIds, [taskId]);
  await until(() => subscription.received.length, "the first notification");
  await update(client, taskId, answer);
  open();
  const { result, taskId: own } = await reach(client, taskId, "completed");
  assertEquals([textOf(Object(result)), Object(result)._meta, own], ["by Ada", { "example.com/own": 1 }, taskId]);
  await until(
    () => subscription.received.some(({ params }) => params.status === "completed" && params.taskId === taskId),
    "the notification of the end",
  );
  await subscription.close();
}, both);

pairs("the client of this library finishes a task through a proxy", async (join) => {
  const { client, upstream } = await join({
    upstream: { handlers: work(ask) },
    client: { extensions: [taskClient()], onElicit: () => ({ action: "accept", content: { by: "Bo" } }) },
  });
  assertEquals(textOf(await client.callTool("work")), "by Bo");
  assertEquals(upstream.stats().detached, 0);
}, both);

pairs("callers without tasks, and inner calls, get the result", async (join) => {
  let runs = 0;
  const outer = tool({ name: "outer", run: async (_input, ctx) => textOf((await ctx.callTool("work")) as never) });
  const { client } = await join({
    upstream: { handlers: work(() => `done ${++runs}`) },
    server: { handlers: [outer] },
  });
  assertEquals(textOf(await client.callTool("work")), "done 1");
  assertEquals(textOf(await client.callTool("outer")), "done 2");
}, { behind: ["modern"] });

behaviour("an inner call of a caller with tasks gets the result", async (connect) => {
  const outer = tool({ name: "outer", run: async (_input, ctx) => textOf((await ctx.callTool("work")) as never) });
  const upstream = createUpstream("modern", { handlers: work(() => "done") });
  const { client, server } = await connect({ handlers: [outer, toolSearch(), proxyOf(upstream, "http")] }, declared);
  assertEquals(textOf(await client.callTool("outer")), "done");
  // A search passes the call on for the caller, so it is a task.
  const params = { name: "call_tool", arguments: { name: "work" } };
  const { taskId } = await client.request("tools/call", params, { finish: false });
  assertEquals(textOf(Object((await reach(client, taskId, "completed")).result)), "done");
  await server.close();
  await upstream.close();
}, http);

pairs("a cancelled task is cancelled on the other server, and failures and errors pass", async (join) => {
  const stopped: string[] = [];
  const { client } = await join({
    upstream: {
      handlers: work(async (ctx, { fails }) => {
        if (fails) throw new McpError(-31_000, "The press is closed", { page: 9 });
        await untilAborted(ctx).catch(() => stopped.push("stopped"));
      }),
    },
    client: declared,
  });
  const id = await start(client);
  await client.request("tasks/cancel", { taskId: id });
  await reach(client, id, "cancelled");
  await until(() => stopped.length, "the handler was cancelled");
  const failed = await reach(client, await start(client, { fails: true }), "failed");
  assertEquals(failed.error, { code: -31_000, message: "The press is closed", data: { page: 9 } });
}, both);

pairs("a question before the task is asked in the call, and the last round returns the task", async (join) => {
  const { pass, open } = gate();
  const pay = tool({
    name: "work",
    use: [task({ after: 100 })],
    async run(_input, ctx) {
      const by = await ask(ctx);
      await pass;
      return by;
    },
  });
  const { client } = await join({ upstream: { handlers: [tasks(), pay] }, client: asking });
  const params = { name: "work", arguments: {} };
  const first = await client.request("tools/call", params, { rounds: false });
  assertEquals([first.resultType, Object.keys(Object(first.inputRequests))], ["input_required", ["who"]]);
  const retry = { ...params, inputResponses: answer, requestState: first.requestState };
  const { resultType, taskId, requestState } = await client.request("tools/call", retry, { rounds: false });
  assertEquals([resultType, requestState], ["task", undefined]);
  open();
  assertEquals(textOf(Object((await reach(client, taskId, "completed")).result)), "by Ada");
}, both);

/** Two clients with different principals of a server in front of `upstream`. */
async function joinBoth(connect: Connect, upstream: Server, options: ProxyOptions = {}, given: object = {}) {
  const handlers = [proxyOf(closeAtEnd(upstream), "http", options)];
  const { client: ada, join, server, takeFaults } = await connect(
    { handlers, ...given },
    { ...asking, principal: { id: "ada", scopes: ["press"] } },
  );
  closeAtEnd(server);
  return { ada, join, server, takeFaults, bob: await join({ ...asking, principal: { id: "bob", scopes: ["press"] } }) };
}

behaviour("a task belongs to its caller", async (connect) => {
  const { ada, bob, join } = await joinBoth(connect, createUpstream("modern", { handlers: work(ask) }));
  const id = await start(ada);
  await reach(ada, id, "input_required");
  for (const client of [bob, await join(asking)]) await refuseAll(client, id);
  for (const wrong of [`${id.slice(0, -3)}${id.endsWith("AAA") ? "BBB" : "AAA"}`, "x".repeat(9000), `${id}A`]) {
    await refuseAll(ada, wrong);
  }
  await update(ada, id, answer);
  await reach(ada, id, "completed");
}, http);

Deno.test("a task of another proxy, path or server, and an id of the other server, are unknown", async () => {
  const ids = new Set<string>();
  const upstream = closeAtEnd(createUpstream("modern", {
    handlers: work(ask),
    use: [async (_ctx, next) => {
      const result = await next();
      if (typeof result.taskId === "string") ids.add(result.taskId);
      return result;
    }],
  }));
  const serve = (name: string, ...names: readonly string[]) => {
    const handlers = names.map((name) => proxyOf(upstream, "http", { name, prefix: `${name}_` }));
    return openServer({ name, path: "/:tenant/mcp", secret: "s".repeat(32), handlers });
  };
  const join = async (server: Server, tenant = "acme") =>
    closeAtEnd(await connectTest(server, { ...asking, path: `/${tenant}/mcp`, principal: { id: "ada" } }));
  const gateway = serve("gateway", "a", "b");
  const client = await join(gateway);
  const id = await start(client, {}, "a_work");
  await reach(client, id, "input_required");
  const others = [serve("gateway", "b"), serve("elsewhere", "a", "b")];
  for (const other of [...await Promise.all(others.map((each) => join(each))), await join(gateway, "other")]) {
    await refuseAll(other, id);
  }
  assertEquals([ids.size, ids.has(id)], [1, false]);
  for (const known of ids) await refuseAll(client, known);
  // An instance with the same secret knows the id, also before any other request.
  await update(await join(serve("gateway", "a", "b")), id, answer);
  assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "by Ada");
});

behaviour("a task needs the scopes of its tool, and the right to see it, at each use", async (connect) => {
  const upstream = createUpstream("modern", { handlers: work(ask) });
  const options: ProxyOptions = { allow: ({ principal }) => principal?.away !== true, scopes: ["press"] };
  const { ada, join, server } = await joinBoth(connect, upstream, options);
  const id = await start(ada);
  await reach(ada, id, "input_required");
  const few = await join({ ...asking, principal: { id: "ada", scopes: ["other"] } });
  for (const [name, use] of Object.entries(uses)) {
    assertEquals((await assertRejects(() => use(few, id), McpError)).code, -31_403, name);
  }
  assertEquals((await few.subscribe({ extensions: { taskIds: [id] } })).granted.extensions?.taskIds ?? [], []);
  await refuseAll(await join({ ...asking, principal: { id: "ada", scopes: ["press"], away: true } }), id);
  const subscription = await ada.subscribe({ extensions: { taskIds: [id] } });
  await until(() => subscription.received.length, "the first notification");
  server.handlers.disable({ tool: "work" });
  await refuseAll(ada, id);
  server.handlers.enable({ tool: "work" });
  await update(ada, id, answer);
  await reach(ada, id, "completed");
}, http);

behaviour("a subscriber is not notified while the tool is disabled", async (connect) => {
  const [first, second] = [gate(), gate()];
  let reads = 0;
  const upstream = createUpstream("modern", {
    handlers: work(async (ctx) => {
      await first.pass;
      await ctx.progress(1, { message: "secret" });
      await second.pass;
      return "done";
    }),
    use: [async (ctx, next) => {
      if (ctx.method === "tasks/get") reads++;
      return await next();
    }],
  });
  const { ada, server } = await joinBoth(connect, upstream);
  const id = await start(ada);
  const { received, close } = await ada.subscribe({ extensions: { taskIds: [id] } });
  await until(() => received.length === 1, "the first notification");
  server.handlers.disable({ tool: "work" });
  first.open();
  const before = reads;
  await until(() => reads > before + 1, "the change was read");
  assertEquals(received.length, 1);
  server.handlers.enable({ tool: "work" });
  second.open();
  await until(() => received.at(-1)?.params.status === "completed", "the last notification");
  await close();
}, http);

behaviour("a tool that the other server has removed hides its tasks", async (connect) => {
  const [extension, made] = work(ask);
  const upstream = createUpstream("modern", { handlers: [extension, made] });
  const { ada } = await joinBoth(connect, upstream);
  const id = await start(ada);
  await reach(ada, id, "input_required");
  upstream.handlers.remove(made);
  const unknown = await messageOf(() => get(ada, UNKNOWN));
  await until(
    async () => await get(ada, id).then(() => "", ({ message }) => message) === unknown,
    "the task is hidden",
  );
  await refuseAll(ada, id);
}, http);

behaviour("each caller's own connection and headers are used for its tasks", async (connect) => {
  const keys: string[] = [];
  const upstream = closeAtEnd(createUpstream("modern", { handlers: work(ask) }));
  const fetch = async (request: Request) => {
    const { method } = await request.clone().json();
    if (/^tasks/.test(method)) keys.push(`${method} ${request.headers.get("x-key")}`);
    return await upstream.fetch(request);
  };
  const headers = ({ principal }: Context) => ({ "x-key": principal?.id ?? "nobody" });
  const handlers = [proxy("http://localhost/mcp", { name: "up", fetch, headers })];
  const { client: ada, join, server } = await connect({ handlers }, { ...asking, principal: { id: "ada" } });
  closeAtEnd(server);
  const bob = await join({ ...asking, principal: { id: "bob" } });
  const id = await start(ada);
  await refuseAll(bob, id);
  assertEquals(keys, []);
  await reach(ada, id, "input_required");
  await update(ada, id, answer);
  await reach(ada, id, "completed");
  await uses.cancel(ada, id);
  assertEquals(new Set(keys), new Set(["tasks/get ada", "tasks/update ada", "tasks/cancel ada"]));
}, http);

behaviour(
  "a task that the other server has forgotten has failed, and a server that is down is busy",
  async (connect) => {
    const first = createUpstream("modern", { handlers: work(ask) });
    let current: Pick<Server, "fetch"> = first;
    const { ada, takeFaults } = await joinBoth(
      connect,
      Object.assign(createUpstream("modern"), {
        fetch: async (request: Request) => await current.fetch(request),
      }) as Server,
    );
    const id = await start(ada);
    await reach(ada, id, "input_required");
    current = { fetch: () => Promise.reject(new TypeError("connection refused")) };
    const busy = await assertRejects(() => get(ada, id), McpError);
    assertEquals([busy.code, busy.message], [-31_503, sentence("up", "try again")]);
    current = closeAtEnd(createUpstream("modern", { handlers: work(ask) }));
    const { status, statusMessage, error, taskId } = await reach(ada, id, "failed");
    assertEquals([status, taskId], ["failed", id]);
    assertEquals([statusMessage, Object(error).code], [sentence("up", "call the tool again"), -32_603]);
    await first.close();
    takeFaults();
  },
  http,
);

/** The type of the result of a call of a caller with tasks, and what the client reads at last. */
async function finish(client: Connection, name = "work"): Promise<readonly [unknown, string]> {
  const called = await client.request("tools/call", { name, arguments: {} }, { finish: false });
  if (called.resultType !== "task") return [called.resultType, textOf(called as never)];
  return ["task", textOf(Object((await reach(client, called.taskId, "completed")).result))];
}

behaviour("layers that see the results of calls get the result instead of a task", async (connect) => {
  const redact = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll("secret", "***"));
  const upstream = closeAtEnd(createUpstream("modern", { handlers: work(() => "secret") }));
  const wrap = async (_ctx: Context, next: () => Promise<Params>): Promise<Params> => redact(await next());
  const run = async (_run: unknown, next: () => unknown) => redact(await next());
  const cases: readonly (readonly [name: string, options: ProxyOptions, server?: object])[] = [
    ["an output guard", { use: [guard({ output: [redact] })] }],
    ["a guard of the server", {}, { use: [guard({ output: [redact] })] }],
    ["middleware", { use: [wrap] }],
    ["a layer with inside", { use: [layer(() => ({ name: "redact", inside: wrap }))] }],
    ["a layer with run", { use: [layer(({ kind }) => ({ name: "redact", ...kind === "tool" && { run } }))] }],
    ["a layer with result", { use: [layer(() => ({ name: "redact", result: redact }))] }],
    ["a layer of the server with result", {}, { use: [layer(() => ({ name: "redact", result: redact }))] }],
    ["a layer with around", { use: [layer(() => ({ name: "redact", around: wrap }))] }],
    ["a change", { tools: { change: { work: { run: async (_input, _ctx, next) => redact(await next()) } } } }],
  ];
  for (const [name, options, given] of cases) {
    const { client, server } = await connect({ handlers: [proxyOf(upstream, "http", options)], ...given }, declared);
    assertEquals(await finish(client), ["complete", "***"], name);
    await server.close();
  }
  const grouped = group("g", [proxyOf(upstream, "http")], { use: [wrap] });
  const { client, server } = await connect({ handlers: [grouped] }, declared);
  assertEquals(await finish(client, "g_work"), ["complete", "***"]);
  await server.close();
}, http);

behaviour("a limit for results, and a key, apply to a proxy whose tool can be a task", async (connect) => {
  let runs = 0;
  const upstream = closeAtEnd(createUpstream("modern", { handlers: work(() => `secret ${++runs}`.repeat(20)) }));
  const limit = quota({ resultBytes: 64, onLarge: "refuse" });
  const keys = layer(({ kind }) => ({ name: "keys", ...kind === "tool" && { key: () => "one" } }));
  for (const isOfServer of [false, true]) {
    const open = async (use: readonly Layer[]) => {
      const handlers = [proxyOf(upstream, "http", isOfServer ? {} : { use })];
      return await connect({ handlers, ...isOfServer && { use } }, { ...declared, principal: { id: "ada" } });
    };
    const limited = await open([limit]);
    assertEquals(String(await finish(limited.client).catch(String)).includes("secret"), false);
    await limited.server.close();
    const keyed = await open([keys]);
    const first = await finish(keyed.client);
    assertEquals(first[0], "complete");
    const before = runs;
    assertEquals(await finish(keyed.client), first);
    assertEquals(runs, before);
    await keyed.server.close();
  }
}, http);

behaviour("quotas, groups and middleware of the server do not prevent tasks", async (connect) => {
  const upstream = closeAtEnd(createUpstream("modern", { handlers: work(() => "done") }));
  const handlers = [group("g", [proxyOf(upstream, "http", { use: [quota({ concurrency: 1 })] })])];
  const seen: string[] = [];
  const see = async (ctx: Context, next: () => Promise<Params>) => {
    try {
      const result = await next();
      if (result.status === "completed") seen.push(`${ctx.method}: ${textOf(Object(result.result))}`);
      return result;
    } catch (error) {
      seen.push(`${ctx.method}: ${isQuestion(error) ? "a question" : error}`);
      throw error;
    }
  };
  const { client, server } = await connect({ handlers, use: [see] }, declared);
  for (let i = 0; i < 3; i++) assertEquals(await finish(client, "g_work"), ["task", "done"]);
  assertEquals(seen.slice(0, 2), ["tools/call: a question", "tasks/get: done"]);
  await server.close();
}, http);

for (const extensions of [[], [taskClient()]]) {
  behaviour(`a connected client with ${extensions.length} extensions serves a proxy`, async (connect) => {
    const upstream = closeAtEnd(createUpstream("modern", { handlers: work(() => "done") }));
    const fetch = async (request: Request) => await upstream.fetch(request);
    await using connected = await connectClient("http://localhost/mcp", { fetch, extensions });
    const { client, server } = await connect({ handlers: [proxy(connected)] }, declared);
    assertEquals(await finish(client), [extensions.length ? "task" : "complete", "done"]);
    await server.close();
  }, http);
}

behaviour("the questions of a task do not depend on what a connected client declares", async (connect) => {
  const upstream = closeAtEnd(createUpstream("modern", { handlers: work(ask) }));
  const fetch = async (request: Request) => await upstream.fetch(request);
  await using connected = await connectClient("http://localhost/mcp", { fetch, extensions: [taskClient()] });
  const { client, server } = await connect({ handlers: [proxy(connected)] }, asking);
  const id = await start(client);
  await reach(client, id, "input_required", "who");
  await update(client, id, answer);
  assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "by Ada");
  await server.close();
}, http);

Deno.test("a task passes several proxies", async () => {
  const upstream = closeAtEnd(createUpstream("modern", { handlers: work(ask) }));
  const inner = openServer({ name: "inner", handlers: [proxyOf(upstream, "http", { name: "in" })] });
  const outer = openServer({ name: "outer", handlers: [proxyOf(inner, "http", { name: "out" })] });
  await using client = await connectTest(outer, asking);
  const id = await start(client);
  const { inputRequests } = await reach(client, id, "input_required");
  assertEquals(Object(inputRequests).who.params.message, "out: in: Who?");
  await update(client, id, answer);
  assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "by Ada");
});
