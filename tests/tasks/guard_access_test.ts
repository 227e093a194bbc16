// The output of a task has passed the output guards for the caller that started the task. Another token of the same
// principal, with other scopes or facts, cannot read the task.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, McpError, resource, tool } from "../../mod.ts";
import { guard } from "../../src/layers/layers.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { z } from "zod";
import { behaviour, gate, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";

const modern = { eras: ["modern"] } as const;
const form = z.object({ name: z.string() });

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

/** Shows salaries only to callers with the scope. */
const hide = guard({
  output: [
    (output, { principal }) =>
      principal?.scopes?.includes("hr")
        ? undefined
        : JSON.parse(JSON.stringify(output).replaceAll("salary 9", "hidden")),
  ],
});

const start = async (client: Connection, name = "person") =>
  String((await client.request("tools/call", { name, arguments: {} }, { finish: false })).taskId);
const get = async (client: Connection, taskId: string) => await client.request("tasks/get", { taskId });
const update = async (client: Connection, taskId: string) =>
  await client.request("tasks/update", {
    taskId,
    inputResponses: { who: { action: "accept", content: { name: "Ada" } } },
  });
const messageOf = async (run: () => Promise<unknown>) => (await assertRejects(run, McpError)).message;

async function reach(client: Connection, taskId: string, status: string) {
  let found = await get(client, taskId);
  await until(async () => (found = await get(client, taskId)).status === status, status);
  return found;
}

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
      const id = await start(client);
      await reach(client, id, "input_required");
      const unknown = await messageOf(() => get(low, "x".repeat(32)));
      for (const run of [get, update]) assertEquals(await messageOf(() => run(low, id)), unknown);
      const wanted = { extensions: { taskIds: [id] } };
      const [mine, theirs] = [await client.subscribe(wanted), await low.subscribe(wanted)];
      assertEquals([mine, theirs].map(({ granted }) => granted.extensions?.taskIds ?? []), [[id], []]);
      const again = await join(renewed);
      await update(again, id);
      for (const each of [client, again]) {
        assertEquals(textOf(Object((await reach(each, id, "completed")).result)), "Ada: salary 9");
      }
      await until(() => mine.received.some(({ params }) => params.status === "completed"), "the notification");
      assertEquals(await messageOf(() => get(low, id)), unknown);
      assertEquals(theirs.received, []);
      const second = await start(client);
      await low.request("tasks/cancel", { taskId: second });
      await reach(client, second, "cancelled");
    }, modern);
  }
}

behaviour("a task without output guards belongs to all tokens of its principal", async (connect) => {
  const { client, join } = await connect({ handlers: [tasks(), person([guard({ input: [() => {}] })])] }, hr);
  const id = await start(client);
  await reach(client, id, "input_required");
  const low = await join(others.scopes);
  await update(low, id);
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
  const id = await start(client);
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
  const make = () =>
    createServer({
      name: "s",
      version: "1.0.0",
      secret: "a secret of at least thirty-two characters",
      store: customStore(connect),
      handlers: [tasks(), person([hide])],
    });
  const [first, last] = [make(), make()];
  const [client, there, low] = [
    await connectTest(first, hr),
    await connectTest(last, renewed),
    await connectTest(last, others.scopes),
  ];
  const id = await start(client);
  await reach(there, id, "input_required");
  const unknown = await messageOf(() => get(low, "x".repeat(32)));
  for (const run of [get, update]) assertEquals(await messageOf(() => run(low, id)), unknown);
  await update(there, id);
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
