// The rights that a task's tool asks for apply to the task too: a caller who may not call the tool any more cannot read
// the task, answer its questions or be notified of it.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, McpError, type Principal, resource, tool, toolProvider, type ToolReturn } from "../../mod.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, textOf, turn, until } from "../support/behaviour.ts";
import { readAnswer, toRequest } from "../support/requests.ts";
import { asking, ID } from "./declared.ts";
import { openServer } from "../support/servers.ts";
import { get, reach, start, update } from "./requests.ts";
import { guard } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { sentence } from "../support/messages.ts";
import { hide } from "../layers/salary_guard.ts";

const modern = { eras: ["modern"] } as const;
const form = z.object({ name: z.string() });
const answer = { who: { action: "accept", content: { name: "Ada" } } };

const INSUFFICIENT_SCOPE = -31_403;
const INVALID_PARAMS = -32_602;

/** A tool that asks who is paid, and then waits. */
function pay(options: object = {}, wait?: (ctx: Context) => Promise<unknown>) {
  return tool({
    name: "pay",
    use: [task()],
    ...options,
    async run(_input: unknown, ctx: Context): Promise<ToolReturn> {
      const { content } = await ctx.elicit("who", { message: "Who?", schema: form });
      await wait?.(ctx);
      return `paid ${content?.name}`;
    },
  });
}

const codeOf = async (run: () => Promise<unknown>) => (await assertRejects(run, McpError)).code;
const messageOf = async (run: () => Promise<unknown>) => (await assertRejects(run, McpError)).message;

behaviour("a task needs the scopes of its tool, except for its cancellation", async (connect) => {
  const { client, join } = await connect(
    { handlers: [tasks(), pay({ scopes: ["pay", "eu"] })] },
    { ...asking, principal: { id: "ada", scopes: ["pay", "eu"] } },
  );
  const few = await join({ ...asking, principal: { id: "ada", scopes: ["pay"] } });
  const [first, second] = [await start(client, {}, "pay"), await start(client, {}, "pay")];
  for (const id of [first, second]) await reach(client, id, "input_required");
  for (const run of [get, update]) {
    assertEquals(await codeOf(() => run(few, first, answer)), INSUFFICIENT_SCOPE, `${run}`);
  }
  const { granted } = await few.subscribe({ extensions: { taskIds: [first] } });
  assertEquals(granted.extensions?.taskIds ?? [], []);
  await few.request("tasks/cancel", { taskId: second });
  await reach(client, second, "cancelled");
  await update(client, first, answer);
  assertEquals(textOf(Object((await reach(client, first, "completed")).result)), "paid Ada");
  assertEquals(await codeOf(() => get(few, first)), INSUFFICIENT_SCOPE, "the result of an ended task");
}, modern);

behaviour(
  "a task can run a tool that a provider finds, and is unknown while the provider does not find it",
  async (connect) => {
    let isFound = true;
    const found = toolProvider({
      use: [task()],
      find: (name) => isFound && name === "pay" ? pay({ use: [] }) : undefined,
    });
    const { client, server } = await connect(
      { handlers: [tasks(), found] },
      { ...asking, principal: { id: "ada" } },
    );
    const [first, second] = [await start(client, {}, "pay"), await start(client, {}, "pay")];
    for (const id of [first, second]) await reach(client, id, "input_required");
    isFound = false;
    const unknown = await messageOf(() => get(client, "x".repeat(32)));
    for (const run of [get, update]) assertEquals(await messageOf(() => run(client, first, answer)), unknown);
    isFound = true;
    // Another handler does not cancel the task.
    server.handlers.add(tool({ name: "other", run: () => "" }));
    await turn();
    await update(client, first, answer);
    assertEquals(textOf(Object((await reach(client, first, "completed")).result)), "paid Ada");
    isFound = false;
    await client.request("tasks/cancel", { taskId: second });
    isFound = true;
    await reach(client, second, "cancelled");
  },
  modern,
);

behaviour("for a caller who cannot see a task's tool, the task is unknown", async (connect) => {
  const hidden = { allow: ({ principal }: Context) => principal?.staff === true };
  const { client, join } = await connect(
    { handlers: [tasks(), pay(hidden)] },
    { ...asking, principal: { id: "ada", staff: true } },
  );
  const id = await start(client, {}, "pay");
  await reach(client, id, "input_required");
  const left = await join({ ...asking, principal: { id: "ada", staff: false } });
  const unknown = await messageOf(() => get(left, "x".repeat(32)));
  for (const run of [get, update]) assertEquals(await messageOf(() => run(left, id, answer)), unknown);
  const { granted } = await left.subscribe({ extensions: { taskIds: [id] } });
  assertEquals(granted.extensions?.taskIds ?? [], []);
  await update(client, id, answer);
  await reach(client, id, "completed");
  assertEquals(await messageOf(() => get(left, id)), unknown, "the result of an ended task");
}, modern);

behaviour("a tool that `forCaller` fails for hides its tasks", async (connect) => {
  const varied = {
    forCaller({ principal }: Context) {
      if (principal?.staff !== true) throw new Error("not for you");
      return {};
    },
  };
  const { client, join, takeFaults } = await connect(
    { handlers: [tasks(), pay(varied)] },
    { ...asking, principal: { id: "ada", staff: true } },
  );
  const id = await start(client, {}, "pay");
  const left = await join({ ...asking, principal: { id: "ada" } });
  assertEquals(await codeOf(() => get(left, id)), INVALID_PARAMS);
  assertEquals(takeFaults().length, 1);
  await reach(client, id, "input_required");
  await client.request("tasks/cancel", { taskId: id });
}, modern);

behaviour(
  "while a tool is disabled, its tasks are unknown, and continue",
  async (connect) => {
    const { pass, open } = gate();
    const { server, client } = await connect(
      { handlers: [tasks(), pay({}, () => pass)] },
      { ...asking, principal: { id: "ada" } },
    );
    const id = await start(client, {}, "pay");
    await reach(client, id, "input_required");
    server.handlers.disable({ tool: "pay" });
    assertEquals(await codeOf(() => get(client, id)), INVALID_PARAMS);
    assertEquals(await codeOf(() => update(client, id, answer)), INVALID_PARAMS);
    server.handlers.enable({ tool: "pay" });
    await update(client, id, answer);
    open();
    await reach(client, id, "completed");
  },
  modern,
);

behaviour(
  "subscribers who cannot see the tool any more are not notified of its tasks",
  async (connect) => {
    const { pass, open } = gate();
    let isStaff = true;
    const hidden = { allow: ({ client: { info } }: Context) => isStaff || info?.name === "auditor" };
    const { client, join } = await connect(
      { handlers: [tasks(), pay(hidden, () => pass)] },
      { ...asking, principal: { id: "ada" } },
    );
    const auditor = await join({ ...asking, principal: { id: "ada" }, info: { name: "auditor", version: "1" } });
    const id = await start(client, {}, "pay");
    await reach(client, id, "input_required");
    const wanted = { extensions: { taskIds: [id] } };
    const [lost, kept] = [await client.subscribe(wanted), await auditor.subscribe(wanted)];
    isStaff = false;
    await update(auditor, id, answer);
    open();
    await until(() => kept.received.some(({ params }) => params.status === "completed"), "the end");
    await turn(3);
    assertEquals(lost.received.filter(({ params }) => params.status !== "input_required"), []);
  },
  modern,
);

behaviour("notifications of a task arrive in order, even if `allow` takes its time", async (connect) => {
  let delays = 0;
  const slow = {
    allow: async () => {
      await turn(delays++ % 3);
      return true;
    },
  };
  const { client } = await connect({ handlers: [tasks(), pay(slow)] }, { ...asking, principal: { id: "ada" } });
  const id = await start(client, {}, "pay");
  await reach(client, id, "input_required");
  const { received } = await client.subscribe({ extensions: { taskIds: [id] } });
  await update(client, id, answer);
  await until(() => received.some(({ params }) => params.status === "completed"), "the end");
  assertEquals(received.at(-1)?.params.status, "completed");
}, modern);

behaviour(
  "when a tool is removed, its tasks are unknown and their runs are cancelled",
  async (connect) => {
    const aborted: unknown[] = [];
    const jobs = tasks();
    const removed = pay({}, ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted.push(signal.aborted);
          reject(signal.reason);
        });
      }));
    const { server, client } = await connect({ handlers: [jobs, removed] }, { ...asking, principal: { id: "ada" } });
    const [running, waiting] = [await start(client, {}, "pay"), await start(client, {}, "pay")];
    for (const id of [running, waiting]) await reach(client, id, "input_required");
    await update(client, running, answer);
    await reach(client, running, "working");
    server.handlers.remove(removed);
    await until(() => aborted.length === 1, "the run is cancelled");
    for (const id of [running, waiting]) {
      await until(async () => (await jobs.get(id))?.status === "cancelled", "cancelled");
      assertEquals(await codeOf(() => get(client, id)), INVALID_PARAMS);
      await client.request("tasks/cancel", { taskId: id });
    }
  },
  modern,
);

behaviour(
  "the tasks of a tool that is replaced continue",
  async (connect) => {
    const { pass, open } = gate();
    const { server, client } = await connect(
      { handlers: [tasks(), pay({ description: "before" }, () => pass)] },
      { ...asking, principal: { id: "ada" } },
    );
    const id = await start(client, {}, "pay");
    await reach(client, id, "input_required");
    server.handlers.remove(server.handlers.get("tool", "pay"));
    server.handlers.add(pay({ description: "after" }));
    await turn();
    await update(client, id, answer);
    open();
    assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "paid Ada");
  },
  modern,
);

Deno.test("a call whose tool is removed before it becomes a task is refused", async () => {
  const { pass, open } = gate();
  const slow = tool({
    name: "pay",
    use: [task({ after: 20 })],
    run: async () => {
      await pass;
      return "paid";
    },
  });
  const server = openServer({ handlers: [tasks(), slow], limits: { calls: { closeMs: 20 } } });
  await using client = await connectTest(server, asking);
  const calling = start(client, {}, "pay");
  await until(() => server.stats().running === 1, "the call runs");
  server.handlers.remove(slow);
  assertEquals(await codeOf(() => calling), INVALID_PARAMS);
  open();
});

Deno.test("over HTTP, a request for a task without the scopes of its tool gets 403", async () => {
  const server = openServer({
    handlers: [tasks(), pay({ scopes: ["pay"] })],
    auth: (request: Request): Principal => ({
      id: "ada",
      scopes: (request.headers.get("x-scopes") ?? "").split(" ").filter(Boolean),
    }),
    limits: { calls: { closeMs: 20 } },
  });
  const capabilities = { elicitation: {}, extensions: { [ID]: {} } };
  const _meta = { "io.modelcontextprotocol/clientCapabilities": capabilities };
  const send = async (scopes: string, method: string, params: { readonly [key: string]: unknown }) => {
    const named: Record<string, string> = typeof params.taskId === "string" ? { "mcp-name": params.taskId } : {};
    return await server.fetch(toRequest(method, { ...params, _meta }, { "x-scopes": scopes, ...named }));
  };
  const { result } = await readAnswer(await send("pay", "tools/call", { name: "pay", arguments: {} }));
  const { taskId } = result;
  for (const [method, more] of [["tasks/get", {}], ["tasks/update", { inputResponses: answer }]] as const) {
    const { status, error } = await readAnswer(await send("mail", method, { taskId, ...more }));
    assertEquals([status, error?.code, error?.data], [403, INSUFFICIENT_SCOPE, { scopes: ["pay"] }]);
  }
  assertEquals((await send("mail", "tasks/cancel", { taskId })).status, 200);
});

Deno.test("an instance that does not run a task asks for the scopes of its tool too", async () => {
  const store = memoryStore();
  const serve = () =>
    openServer({ handlers: [tasks(), pay({ scopes: ["pay"] })], store, limits: { calls: { closeMs: 20 } } });
  const [here, there] = [serve(), serve()];
  await using client = await connectTest(here, { ...asking, principal: { id: "ada", scopes: ["pay"] } });
  await using same = await connectTest(there, { ...asking, principal: { id: "ada", scopes: ["pay"] } });
  await using few = await connectTest(there, { ...asking, principal: { id: "ada", scopes: [] } });
  const id = await start(client, {}, "pay");
  await reach(same, id, "input_required");
  const { received } = await few.subscribe({ extensions: { taskIds: [id] } });
  for (const run of [get, update]) assertEquals(await codeOf(() => run(few, id, answer)), INSUFFICIENT_SCOPE);
  await update(same, id, answer);
  assertEquals(textOf(Object((await reach(same, id, "completed")).result)), "paid Ada");
  assertEquals(await codeOf(() => get(few, id)), INSUFFICIENT_SCOPE);
  assertEquals(received, []);
});

// The output of a task has passed the output guards for the caller that started the task. Another token of the same
// principal, with other scopes or facts, cannot read the task.

const claims = { sub: "ada", iat: 1, exp: 2 };
const hr = { ...asking, principal: { id: "ada", scopes: ["hr"], staff: true, claims } };
const renewed = {
  ...asking,
  principal: { id: "ada", scopes: ["hr"], staff: true, claims: { ...claims, iat: 3, exp: 4 }, expiresAt: 1e15 },
};
const others = {
  scopes: { ...asking, principal: { ...hr.principal, scopes: [] } },
  facts: { ...asking, principal: { ...hr.principal, staff: false } },
} as const;

/** A tool that asks, reports progress, and returns something that a guard hides from some callers. */
function person(use: Parameters<typeof tool>[0]["use"] = []) {
  return tool({
    name: "person",
    use: [task({ resume: true }), ...use],
    async run(_input, ctx) {
      const { content } = await ctx.elicit("who", { message: "Who, at salary 9?", schema: form });
      await ctx.progress(1, { message: "read salary 9" });
      return `${content?.name}: salary 9`;
    },
  });
}

for (const place of ["tool", "server"] as const) {
  for (const [what, other] of Object.entries(others)) {
    behaviour(`a guarded task is unknown to a token with other ${what} (guard of the ${place})`, async (connect) => {
      const own = place === "tool" ? [hide] : [];
      const use = place === "server" ? [hide] : [];
      const { client, join } = await connect({ handlers: [tasks(), person(own)], use }, hr);
      const low = await join(other);
      const id = await start(client, {}, "person");
      await reach(client, id, "input_required");
      const unknown = await messageOf(() => get(low, "x".repeat(32)));
      for (const run of [get, update]) assertEquals(await messageOf(() => run(low, id, answer)), unknown);
      const wanted = { extensions: { taskIds: [id] } };
      const [mine, theirs] = [await client.subscribe(wanted), await low.subscribe(wanted)];
      assertEquals([mine, theirs].map(({ granted }) => granted.extensions?.taskIds ?? []), [[id], []]);
      const again = await join(renewed);
      await update(again, id, answer);
      for (const each of [client, again]) {
        assertEquals(textOf(Object((await reach(each, id, "completed")).result)), "Ada: salary 9");
      }
      await until(() => mine.received.some(({ params }) => params.status === "completed"), "the notification");
      assertEquals(await messageOf(() => get(low, id)), unknown);
      assertEquals(theirs.received, []);
      const second = await start(client, {}, "person");
      await low.request("tasks/cancel", { taskId: second });
      await reach(client, second, "cancelled");
    }, modern);
  }
}

behaviour("a task without output guards belongs to all tokens of its principal", async (connect) => {
  const { client, join } = await connect({ handlers: [tasks(), person([guard({ input: [() => {}] })])] }, hr);
  const id = await start(client, {}, "person");
  await reach(client, id, "input_required");
  const low = await join(others.scopes);
  await update(low, id, answer);
  assertEquals(textOf(Object((await reach(low, id, "completed")).result)), "Ada: salary 9");
}, modern);

behaviour("a task whose tool reads a guarded resource is unknown to a token with other scopes", async (connect) => {
  const { pass, open } = gate();
  const { client, join } = await connect({
    handlers: [
      tasks(),
      resource({ uri: "salary://ada", name: "salary", use: [hide], read: () => "salary 9" }),
      tool({
        name: "person",
        use: [task()],
        async run(_input: unknown, ctx: Context) {
          await pass;
          const [content] = await ctx.readResource("salary://ada");
          await ctx.progress(1, { message: "read" });
          return "text" in content ? content.text : "";
        },
      }),
    ],
  }, hr);
  const low = await join(others.scopes);
  const id = await start(client, {}, "person");
  const early = await low.subscribe({ extensions: { taskIds: [id] } });
  open();
  assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "salary 9");
  const unknown = await messageOf(() => get(low, "x".repeat(32)));
  assertEquals(await messageOf(() => get(low, id)), unknown);
  await turn(3);
  assertEquals(early.received.filter(({ params }) => params.status === "completed"), []);
}, modern);

Deno.test("a guarded task is unknown to another token on another instance too", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const make = () => openServer({ store: customStore(connect), handlers: [tasks(), person([hide])] });
  const [first, last] = [make(), make()];
  const [client, there, low] = [
    await connectTest(first, hr),
    await connectTest(last, renewed),
    await connectTest(last, others.scopes),
  ];
  const id = await start(client, {}, "person");
  await reach(there, id, "input_required");
  const unknown = await messageOf(() => get(low, "x".repeat(32)));
  for (const run of [get, update]) assertEquals(await messageOf(() => run(low, id, answer)), unknown);
  await update(there, id, answer);
  assertEquals(textOf(Object((await reach(there, id, "completed")).result)), "Ada: salary 9");
  assertEquals(await messageOf(() => get(low, id)), unknown);
  const { granted } = await low.subscribe({ extensions: { taskIds: [id] } });
  assertEquals(granted.extensions?.taskIds ?? [], []);
  for (const each of [client, there, low]) await each.close();
  for (const server of [first, last]) await server.close();
});

behaviour("a call with output guards becomes no task if its principal cannot be compared", async (connect) => {
  class Role {
    readonly name = "clerk";
  }
  const handlers = [tasks(), tool({ name: "person", use: [task(), hide], run: () => "salary 9" })];
  const principal = { id: "ada", scopes: ["hr"], role: new Role() };
  const { client, takeFaults } = await connect({ handlers }, { ...asking, principal });
  for (let at = 0; at < 2; at++) {
    const result = await client.request("tools/call", { name: "person", arguments: {} }, { finish: false });
    assertEquals(textOf(Object(result)), "salary 9");
  }
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("principal")]);
}, { ...modern, perInstance: "observer" });
