// Tests the example with an app and its OpenAPI document.
import { assertEquals } from "@std/assert";
import server from "../../examples/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";

Deno.test("the operations of an app are tools and a resource template, and the app gets the caller", async () => {
  await using client = await connectTest(server, { principal: { id: "ada" } });
  assertEquals((await client.listTools()).map(({ name }) => name), ["listNotes", "add_note"]);
  const added = await client.callTool("add_note", { body: { text: "Feed the cat" } });
  assertEquals(added.structuredContent, { id: "3", by: "ada" });
  const { contents: [note] } = await client.readResource("api://notes/notes/3");
  assertEquals("text" in note && note.text, '{"text":"Feed the cat"}');
  const { content } = await client.callTool("listNotes", { text: "cat" });
  assertEquals(content, [{ type: "text", text: '[{"id":"3","text":"Feed the cat"}]' }]);
  assertEquals((await client.callTool("add_note", { body: {} })).isError, true);
});
