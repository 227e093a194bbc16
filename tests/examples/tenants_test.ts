// The tenants example, in every era and over every transport.
import { assertEquals, assertRejects } from "@std/assert";
import server from "../../examples/tenants.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["memory", "http", "pipe"] as const) {
    Deno.test(`tenants have separate notes and tools (${era} over ${transport})`, async () => {
      const other = `${era}-${transport}`;
      await using acme = await connectTest(server, { era, transport, pathParams: { tenant: "acme" } });
      await using bee = await connectTest(server, { era, transport, pathParams: { tenant: other } });
      assertEquals(textOf(await acme.callTool("whoami")), "acme");
      assertEquals(textOf(await bee.callTool("whoami")), other);
      const added = textOf(await acme.callTool("add_note", { text: "Buy milk" }));
      const id = Number(/\d+/.exec(added)?.[0]);
      assertEquals(textOf(await acme.callTool("list_notes")), `${id}: Buy milk`);
      assertEquals(textOf(await bee.callTool("list_notes")), "There are no notes.");
      assertEquals((await acme.readResource(`note://${id}`)).contents[0].text, "Buy milk");
      for (const uri of [`note://${id}`, "note://x"]) {
        await assertRejects(() => bee.readResource(uri), McpError, sentence());
      }
      await assertRejects(() => bee.callTool("clear_notes"), McpError, sentence("clear_notes"));
      assertEquals(textOf(await acme.callTool("clear_notes")), "Removed 1 notes.");
    });
  }
}

Deno.test("a tenant name that is invalid gets 404", async () => {
  const response = await server.fetch(new Request("http://localhost/tenants/ACME/mcp", { method: "POST" }));
  assertEquals(response.status, 404);
});
