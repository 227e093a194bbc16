// The pages of a large result have passed the output guards of its tool for the caller. A token of the same principal
// with other scopes gets no page.
import { assertEquals, assertRejects } from "@std/assert";
import { McpError, resource, tool } from "../../../mod.ts";
import { INTERNALS } from "../../../src/core/internals.ts";
import { quota } from "../../../src/layers/layers.ts";
import { customStore, memoryStore } from "../../../src/stores/stores.ts";
import { type Connection, connectTest } from "../../../src/testing/testing.ts";
import { behaviour, textOf } from "../../support/behaviour.ts";
import { openServer } from "../../support/servers.ts";
import { hide } from "../salary_guard.ts";

const hr = { principal: { id: "ada", scopes: ["hr"], claims: { sub: "ada", exp: 2 } } };
const renewed = { principal: { id: "ada", scopes: ["hr"], claims: { sub: "ada", exp: 4 }, expiresAt: 1e15 } };
const low = { principal: { ...hr.principal, scopes: [] } };

const run = () => "Ada: salary 9\n".repeat(500);

function makeLarge() {
  return tool({ name: "large", use: [quota({ resultBytes: 2000, onLarge: "link" }), hide], run });
}

const keep = async (client: Connection, name: string) => String(Object((await client.callTool(name)).content[1]).uri);

async function read(client: Connection, uri: string): Promise<string> {
  return Object((await client.readResource(uri)).contents[0]).text;
}

const codeOf = async (run: () => Promise<unknown>) => (await assertRejects(run, McpError)).code;

behaviour("the pages of a guarded result are unknown to a token with other scopes", async (connect) => {
  const outer = tool({
    name: "outer",
    use: [quota({ resultBytes: 2000, onLarge: "link" })],
    run: async (_input, ctx) =>
      (await ctx.readResource("salary://all")).map((each) => "text" in each ? each.text : "").join(""),
  });
  const all = resource({ uri: "salary://all", name: "all", use: [hide], read: run });
  const { client, join } = await connect({ handlers: [makeLarge(), outer, all] }, hr);
  const [other, again] = [await join(low), await join(renewed)];
  const unknown = await codeOf(() => read(other, "result://large/x/1"));
  for (const name of ["large", "outer"]) {
    const uri = await keep(client, name);
    for (const each of [client, again]) assertEquals((await read(each, uri)).slice(0, 13), "Ada: salary 9", name);
    assertEquals(await codeOf(() => read(other, uri)), unknown, name);
    assertEquals((await read(other, await keep(other, name))).slice(0, 11), "Ada: hidden", name);
  }
});

behaviour("without output guards, the pages of a result belong to all tokens of its principal", async (connect) => {
  const large = tool({ name: "large", use: [quota({ resultBytes: 2000, onLarge: "link" })], run });
  const { client, join } = await connect({ handlers: [large] }, hr);
  assertEquals((await read(await join(low), await keep(client, "large"))).slice(0, 13), "Ada: salary 9");
});

behaviour("a guarded result is not kept for a principal that cannot be compared", async (connect) => {
  class Role {
    readonly name = "clerk";
  }
  const { client } = await connect({ handlers: [makeLarge()] }, { principal: { ...hr.principal, role: new Role() } });
  const result = await client.callTool("large");
  assertEquals([result.isError, textOf(result).includes("result://")], [true, false]);
});

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`the pages of a guarded result are unknown to another token on another instance too (${era})`, async () => {
    const { connect } = memoryStore()[INTERNALS];
    const make = () => openServer({ store: customStore(connect), handlers: [makeLarge()] });
    const [first, last] = [make(), make()];
    {
      await using client = await connectTest(first, { era, ...hr });
      await using again = await connectTest(last, { era, ...renewed });
      await using other = await connectTest(last, { era, ...low });
      const uri = await keep(client, "large");
      assertEquals((await read(again, uri)).slice(0, 13), "Ada: salary 9");
      assertEquals(await codeOf(() => read(other, uri)), await codeOf(() => read(other, "result://large/x/1")));
    }
    for (const server of [first, last]) await server.close();
  });
}
