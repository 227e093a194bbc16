// planned() makes two tools: one shows what a call would change, and the other makes exactly this change, once.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  type Context,
  createServer,
  group,
  McpError,
  prompt,
  resource,
  tool,
  ToolError,
  type ToolReturn,
  transform,
} from "../../mod.ts";
import { confirm, guard, idempotent, intent, planned, quota, retry } from "../../src/layers/layers.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

const ada = { id: "ada" };

type Use = NonNullable<Parameters<typeof tool>[0]["use"]>;

/** Creates a tool that deletes files, and the tool that plans its calls. */
function files(
  run: (found: readonly string[], ctx: Context) => ToolReturn | Promise<ToolReturn> = (found) => ({ found }),
  use: Use = [],
) {
  const all = new Set(["a.txt", "b.txt", "c.md"]);
  const runs: (readonly string[])[] = [];
  let plans = 0;
  const find = (ending: string) => [...all].filter((name) => name.endsWith(ending));
  const pair = planned(
    tool({
      name: "remove",
      title: "Remove files",
      description: "Deletes files",
      annotations: { destructiveHint: true, openWorldHint: false },
      input: z.object({ ending: z.string().default(".txt") }),
      use,
      run: ({ ending }, ctx: Context) => {
        const found = find(ending);
        runs.push(found);
        return run(found, ctx);
      },
    }),
    { plan: ({ ending }) => (plans++, { delete: find(ending), at: new Map([["x", 1]]) }) },
  );
  return { all, runs, pair, count: () => plans };
}

async function plan(client: Connection, args: Record<string, unknown> = {}, name = "plan_remove"): Promise<string> {
  const { structuredContent, isError } = await client.callTool(name, args);
  assertEquals(isError, undefined);
  const { plan, how } = Object(structuredContent);
  assert(/^[\w-]{12}$/.test(plan), plan);
  assertStringIncludes(how, plan);
  return plan;
}

const textOfError = (error: unknown) => error instanceof ToolError ? "refused" : "failed";

/** The tests run without a store and with a store. */
const stores = { memory: () => ({}), "a store": () => ({ store: memoryStore() }) } as const;

for (const [title, options] of Object.entries(stores)) {
  behaviour(`a plan is applied once, and a repeated call gets the same result: ${title}`, async (connect) => {
    const { pair, runs } = files();
    const { client } = await connect({ handlers: [...pair], ...options() }, { principal: ada });
    const shown = await client.callTool("plan_remove", { ending: ".md" });
    const { plan: id, changes, how } = Object(shown.structuredContent);
    assertEquals(changes, { delete: ["c.md"], at: { x: 1 } });
    assertEquals(how.replace(id, "ID"), sentence("remove"));
    assertEquals(runs, []);
    const results = await Promise.all(
      Array.from({ length: 8 }, () => client.callTool("remove", { ending: ".md", plan: id })),
    );
    for (const { structuredContent } of results) assertEquals(structuredContent, { found: ["c.md"] });
    assertEquals(runs, [["c.md"]]);
  });

  behaviour(`a plan that is no longer true is not applied, and the result says why: ${title}`, async (connect) => {
    const { pair, runs, all } = files();
    const { client } = await connect({ handlers: [...pair], ...options() }, { principal: ada });
    const id = await plan(client);
    all.delete("a.txt");
    all.add("d.txt");
    const changed = await client.callTool("remove", { plan: id });
    assertEquals(changed.isError, true);
    assertEquals(textOf(changed), sentence("remove", "plan_remove", "delete[0]"));
    assertEquals(runs, []);
    all.clear();
    for (const name of ["a.txt", "b.txt"]) all.add(name);
    assertEquals((await client.callTool("remove", { plan: id })).isError, undefined, "the state is as before");
    assertEquals(runs.length, 1);
  });

  behaviour(`a plan is for one caller, one tool and the same arguments: ${title}`, async (connect) => {
    const { pair, runs } = files();
    const other = files();
    const { client, join } = await connect(
      { handlers: [...pair, group("other", other.pair)], ...options() },
      { principal: ada },
    );
    const id = await plan(client);
    const eve = await join({ principal: { id: "eve" } });
    const refusals = [
      await client.callTool("remove"),
      await client.callTool("remove", { plan: id, ending: ".md" }),
      await client.callTool("remove", { plan: "x".repeat(12) }),
      await client.callTool("remove", { plan: "short" }),
      await client.callTool("other_remove", { plan: id }),
      await eve.callTool("remove", { plan: id }),
    ];
    for (const refused of refusals) {
      assertEquals(refused.isError, true);
      assertEquals(textOf(refused).replaceAll(id, "ID"), sentence("remove", "plan_remove"));
    }
    assertEquals([...runs, ...other.runs], []);
    // Defaults make no difference.
    assertEquals((await client.callTool("remove", { plan: id, ending: ".txt" })).isError, undefined);
    const grouped = await plan(client, {}, "other_plan_remove");
    assertEquals((await client.callTool("other_remove", { plan: grouped })).isError, undefined);
    assertEquals([runs.length, other.runs.length], [1, 1]);
  });

  behaviour(`after a failure whose effects are unknown, a plan cannot be used again: ${title}`, async (connect) => {
    let run: () => ToolReturn = () => "done";
    const { pair, runs } = files(() => run());
    const { client, takeFaults } = await connect({ handlers: [...pair], ...options() }, { principal: ada });
    const apply = async (id: string) => await client.callTool("remove", { plan: id });
    const refused = await plan(client);
    run = () => {
      throw new ToolError("closed");
    };
    assertEquals(textOf(await apply(refused)), "closed");
    run = () => ({ content: [], isError: true });
    assertEquals((await apply(refused)).isError, true);
    run = () => "done";
    assertEquals(textOf(await apply(refused)), "done");
    assertEquals(runs.length, 3);
    for (const error of [new RangeError("bug"), new McpError(-32000, "upstream")]) {
      const id = await plan(client);
      run = () => {
        throw error;
      };
      if (error instanceof McpError) await assertRejects(() => apply(id), McpError);
      else assertEquals((await apply(id)).isError, true);
      run = () => "done";
      const before = runs.length;
      const spent = await assertRejects(() => apply(id), McpError);
      assertEquals([spent.code, spent.data], [-31409, { plan: id, outcome: "unknown" }]);
      assertEquals(spent.message.replaceAll(id, "ID"), sentence('tool "remove"', "plan"));
      assertEquals(runs.length, before);
    }
    assertEquals(takeFaults().map(({ error }) => Object(error).message), ["bug"]);
  });

  behaviour(`confirm shows the plan, and a refusal leaves it usable: ${title}`, async (connect) => {
    const asked: string[] = [];
    let action: "accept" | "decline" = "decline";
    const { pair, runs, all } = files(undefined, [confirm("Delete?")]);
    const { client } = await connect({ handlers: [...pair], ...options() }, {
      principal: ada,
      onElicit: ({ message }) => {
        asked.push(message);
        return action === "accept" ? { action, content: {} } : { action };
      },
    });
    const id = await plan(client);
    assertEquals(asked, [], "a plan needs no consent");
    assertEquals((await client.callTool("remove", { plan: id })).isError, true);
    action = "accept";
    assertEquals((await client.callTool("remove", { plan: id })).isError, undefined);
    assertEquals(runs, [["a.txt", "b.txt"]]);
    const whole = { delete: ["a.txt", "b.txt"], at: { x: 1 } };
    assertEquals(asked, Array(2).fill(`Delete?\n\n${JSON.stringify(whole, undefined, 2)}`));
    for (let at = 0; at < 2000; at++) all.add(`file ${at}.txt`);
    await client.callTool("remove", { plan: await plan(client) });
    assertStringIncludes(asked[2], "more characters)");
    assert(asked[2].length < 4100);
  });

  behaviour(`a tool with a plan asks questions of its own: ${title}`, async (connect) => {
    const { pair } = files(async (_found, ctx) => {
      const { action } = await ctx.elicit("why", { message: "Why?", schema: { type: "object", properties: {} } });
      return action;
    });
    const { client } = await connect({ handlers: [...pair], ...options() }, {
      principal: ada,
      onElicit: () => ({ action: "accept", content: {} }),
    });
    const id = await plan(client);
    for (let at = 0; at < 2; at++) assertEquals(textOf(await client.callTool("remove", { plan: id })), "accept");
  });
}

behaviour("without an identity, the id alone finds the plan", async (connect, { era }) => {
  const { pair, runs } = files();
  const { client, join } = await connect({ handlers: [...pair] });
  const id = await plan(client);
  const other = await join();
  const result = await other.callTool("remove", { plan: id });
  // A session or a connection is an identity.
  const isSame = era === "modern" && runs.length === 1;
  assertEquals(result.isError, isSame ? undefined : true);
  assertEquals((await client.callTool("remove", { plan: id })).isError, undefined);
  assertEquals(runs.length, 1);
});

behaviour("lists show both tools, in groups and with other layers", async (connect) => {
  const { pair } = files(undefined, [intent(), quota({ rate: { calls: 100, perMs: 1000 } }), guard({ output: [] })]);
  const { client } = await connect({ handlers: [group("disk", [group("home", pair)])] }, { principal: ada });
  const [planner, remove] = await client.listTools();
  assertEquals([planner.name, remove.name], ["disk_home_plan_remove", "disk_home_remove"]);
  assertEquals(planner.annotations, {
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  });
  assertEquals(planner.title, "Plan: Remove files");
  assertEquals(planner.description, sentence("Deletes files"));
  assertEquals(Object.keys(Object(planner.outputSchema).properties), ["plan", "changes", "how"]);
  assertEquals(Object.keys(Object(planner.inputSchema.properties)), ["ending", "task_at_hand"]);
  assertEquals(remove.annotations, { destructiveHint: true, openWorldHint: false });
  const { properties, required } = remove.inputSchema;
  assertEquals(required, ["task_at_hand", "plan"]);
  assertEquals(Object(properties).plan.description, sentence("disk_home_plan_remove"));
  const id = await plan(client, { task_at_hand: "clean" }, "disk_home_plan_remove");
  const applied = await client.callTool("disk_home_remove", { plan: id, task_at_hand: "clean up" });
  assertEquals(applied.structuredContent, { found: ["a.txt", "b.txt"] });
});

behaviour("searches and handlers call both tools, and also need a plan", async (connect) => {
  const { pair, runs } = files();
  const both = tool({
    name: "both",
    run: async (_input, { callTool }) => {
      const missing = await callTool("remove", {}).catch(textOfError);
      const { structuredContent } = await callTool("plan_remove", {});
      const done = await callTool("remove", { plan: Object(structuredContent).plan });
      return JSON.stringify([missing, done.structuredContent]);
    },
  });
  const { client } = await connect({ handlers: [...pair, both, toolSearch({ always: ["both"] })] }, { principal: ada });
  assertEquals(textOf(await client.callTool("both")), '["refused",{"found":["a.txt","b.txt"]}]');
  const call = async (name: string, args: object) => await client.callTool("call_tool", { name, arguments: args });
  assertEquals((await call("remove", {})).isError, true);
  const { structuredContent } = await call("plan_remove", { ending: ".md" });
  const { plan: id } = Object(structuredContent);
  assertEquals((await call("remove", { ending: ".md", plan: id })).structuredContent, { found: ["c.md"] });
  assertEquals(runs.length, 2);
});

behaviour("a plan that is no JSON, or that asks the client, is an error of the author", async (connect) => {
  const make = (name: string, plan: (ctx: Context) => unknown) =>
    planned(tool({ name, run: () => "ran" }), { plan: (_input, ctx) => plan(ctx as Context) });
  const { client, takeFaults } = await connect({
    handlers: [
      ...make("nothing", () => undefined),
      ...make("null", () => null),
      ...make("function", () => ({ a: () => 1 })),
      ...make("large", () => "x".repeat(70_000)),
      ...make("asking", (ctx) => ctx.elicit("k", { message: "?", schema: { type: "object", properties: {} } })),
    ],
  }, { principal: ada, onElicit: () => ({ action: "accept", content: {} }) });
  for (const name of ["nothing", "null", "function", "large", "asking"]) {
    const { isError } = await client.callTool(`plan_${name}`).catch(() => ({ isError: true }));
    assertEquals(isError, true, name);
    const [{ error }] = takeFaults();
    assertEquals(Object(error).message, sentence());
  }
});

behaviour("a foreign tool with an argument plan of its own cannot be applied", async (connect) => {
  const listed = { name: "old", inputSchema: { type: "object", properties: { plan: { type: "string" } } } } as const;
  const { client, takeFaults } = await connect({
    handlers: [...planned(tool.from(listed, () => ({ content: [] })), { plan: () => "all" })],
  }, { principal: ada });
  assertEquals((await client.callTool("old", { plan: await plan(client, {}, "plan_old") })).isError, true);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("plan"), sentence("plan")]);
});

for (const title of Object.keys(stores)) {
  Deno.test(`a plan expires after ten minutes: ${title}`, async () => {
    const { pair, runs } = files();
    const clock = fakeClock();
    const store = title === "memory" ? undefined : memoryStore({ clock });
    await using server = createServer({ name: "s", version: "1.0.0", handlers: [...pair], clock, store });
    await using client = await connectTest(server, { principal: ada });
    const id = await plan(client);
    const late = await plan(client, { ending: ".md" });
    await clock.advance(599_000);
    assertEquals((await client.callTool("remove", { plan: id })).isError, undefined);
    await clock.advance(62_000);
    assertEquals(textOf(await client.callTool("remove", { ending: ".md", plan: late })).includes("expired"), true);
    assertEquals(runs.length, 1);
  });
}

Deno.test("planned refuses what it cannot plan", () => {
  const run = () => "ran";
  const make = (use: Use = []) => tool({ name: "t", use, run });
  const options = { plan: () => "all" };
  const refusals = [
    () => planned(prompt({ name: "p", run }) as never, options),
    () => planned(undefined as never, options),
    () => planned(make(), {} as never),
    () => planned(make(), { plan: "all" } as never),
    () => planned(make(), { ...options, preview: run } as never),
    () => planned(tool({ name: "t", annotations: { readOnlyHint: true }, run }), options),
    () => planned(tool({ name: "t", input: { plan: z.string() }, run }), options),
    () => planned(make([idempotent(() => "key")]), options),
    () => planned(planned(make(), options)[1], options),
    () => transform(planned(make(), options)[1], { name: "other" }),
    () => transform(planned(make(), options)[0], { name: "other" }),
  ];
  for (const refuse of refusals) assertEquals(assertThrows(refuse, TypeError).message, sentence());
  const renamed = planned(transform(make(), { name: "other" }), options);
  assertEquals(renamed.map(({ name }) => name), ["plan_other", "other"]);
});

behaviour("plans of a client count towards its share of what the server keeps", async (connect) => {
  const { pair } = files();
  const { client, join } = await connect(
    { handlers: [...pair], limits: testLimits({ idempotency: { bytes: 32_768 } }) },
    { principal: ada },
  );
  const made: string[] = [];
  const refused = await assertRejects(async () => {
    while (made.length < 20) made.push(await plan(client));
  }, McpError);
  assertEquals([refused.code, made.length > 2], [-31503, true]);
  assertEquals(refused.message, sentence("remove", "idempotency.bytes"));
  await plan(await join({ principal: { id: "eve" } }));
}, { perInstance: "limits" });

behaviour("a tool that runs again after a failure compares its plan again", async (connect) => {
  let state = 1;
  let runs = 0;
  const pair = planned(
    tool({
      name: "add",
      use: [retry({ unsafe: true, delayMs: 1 })],
      run: () => {
        runs++;
        state++;
        throw new RangeError("bug");
      },
    }),
    { plan: () => state },
  );
  const { client } = await connect({ handlers: [...pair] }, { principal: ada });
  const id = await plan(client, {}, "plan_add");
  assertEquals(textOf(await client.callTool("add", { plan: id })).includes("1 is now 2"), true);
  // The first run may have had effects.
  state = 1;
  assertEquals((await assertRejects(() => client.callTool("add", { plan: id }), McpError)).code, -31409);
  assertEquals(runs, 1);
});

behaviour("what plan reads for one token of a caller is not shown for another", async (connect) => {
  const secret = resource({ uri: "x://secret", name: "secret", scopes: ["read"], read: () => "secret" });
  const pair = planned(tool({ name: "burn", run: () => "burnt" }), {
    plan: async (_input, ctx) => JSON.stringify(await ctx.readResource("x://secret")),
  });
  const { client, join } = await connect({ handlers: [secret, ...pair] }, { principal: { ...ada, scopes: ["read"] } });
  const id = await plan(client, {}, "plan_burn");
  const other = await join({ principal: { ...ada, scopes: [] } });
  assertEquals((await assertRejects(() => other.callTool("burn", { plan: id }), McpError)).code, -31403);
  assertEquals(textOf(await client.callTool("burn", { plan: id })), "burnt");
});

behaviour("a refusal does not show what output guards remove from a plan", async (connect) => {
  let state = { file: "a.txt", owner: "eve" };
  const hide = guard({
    output: [(output) => Object.hasOwn(Object(output), "changes") ? { ...Object(output), changes: "hidden" } : output],
  });
  const pair = planned(tool({ name: "burn", use: [hide], run: () => "burnt" }), { plan: () => state });
  const { client } = await connect({ handlers: [...pair] }, { principal: ada });
  const id = await plan(client, {}, "plan_burn");
  state = { file: "a.txt", owner: "bob" };
  const result = await client.callTool("burn", { plan: id });
  const refused = textOf(result);
  assertEquals([result.isError, refused.includes("plan_burn")], [true, true], refused);
  for (const hidden of ["owner", "eve", "bob"]) assertEquals(refused.includes(hidden), false, refused);
});

behaviour("a plan that fails is not made, and not applied", async (connect) => {
  let isError = true;
  let runs = 0;
  const pair = planned(tool({ name: "burn", run: () => `burnt ${++runs}` }), {
    plan: () => isError ? { content: [{ type: "text", text: "cannot list" }], isError } : "all",
  });
  const { client } = await connect({ handlers: [...pair] }, { principal: ada });
  const failed = await client.callTool("plan_burn");
  assertEquals([failed.isError, textOf(failed)], [true, "cannot list"]);
  isError = false;
  const id = await plan(client, {}, "plan_burn");
  isError = true;
  const refused = await client.callTool("burn", { plan: id });
  assertEquals([refused.isError, textOf(refused), runs], [true, "cannot list", 0]);
  isError = false;
  assertEquals(textOf(await client.callTool("burn", { plan: id })), "burnt 1");
});
