// The example with tools that users create: each user sees only the tools of its own saved queries.
import { assertEquals, assertRejects } from "@std/assert";
import server from "../../examples/own_tools.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`own tools: a saved query becomes a tool of its user (${era})`, async () => {
    await using ada = await connectTest(server, { era, principal: { id: "ada" } });
    await using bob = await connectTest(server, { era, principal: { id: "bob" } });
    const name = `drinks_${era}`;
    await ada.callTool("save_query", { name, words: "tea" });
    assertEquals(JSON.parse(textOf(await ada.callTool(name))).map(({ id }: { id: string }) => id), ["A-17"]);
    await assertRejects(() => bob.callTool(name), McpError, "Unknown tool");
    const names = async (client: typeof ada) => (await client.listTools()).map((each) => each.name);
    assertEquals((await names(ada)).includes(name), true);
    assertEquals(await names(bob), ["find_orders", "orders", "save_query"]);
    assertEquals(JSON.parse(textOf(await bob.callTool("orders", { q: "tea" }))).length, 1);
    assertEquals((await bob.callTool("find_orders", { q: "tea", owner: "ada" })).isError, true);
  });
}
