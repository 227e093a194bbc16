// The example with a search, in both eras.
import { assert, assertEquals } from "@std/assert";
import server from "../../examples/many_tools.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a client of the example finds and calls tools, and confirms what it deletes (${era})`, async () => {
    await using client = await connectTest(server, {
      era,
      principal: { id: "bob" },
      onElicit: () => ({ action: "accept", content: {} }),
    });
    assertEquals((await client.listTools()).map(({ name }) => name), [
      "search_tools",
      "call_tool",
      "call_read_only_tool",
      "whoami",
    ]);
    const search = async (query: string) => textOf(await client.callTool("search_tools", { query })).split("\n");
    const [, ticket] = await search("file a ticket");
    assertEquals(JSON.parse(ticket).name, "create_issue");
    assert(!(await search("delete a secret")).join().includes("delete_secret"), "only Ada can delete secrets");
    const given = { name: "delete_label", arguments: { repository: "acme/shop", name: "old" } };
    assertEquals(textOf(await client.callTool("call_tool", given)), "Deleted the label old of acme/shop.");
  });
}
