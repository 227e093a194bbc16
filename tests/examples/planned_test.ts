// The example of plans, in both eras.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { connectTest } from "../../src/testing/testing.ts";
import server from "../../examples/planned.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`planned: the model plans, and applies the plan after the user has read it (${era})`, async () => {
    const asked: string[] = [];
    await using client = await connectTest(server, {
      era,
      onElicit: ({ message }) => (asked.push(message), { action: "accept", content: {} }),
    });
    const plan = async () =>
      Object((await client.callTool("plan_delete_notes", { tag: "shopping" })).structuredContent);
    const apply = async (plan: string) => await client.callTool("delete_notes", { tag: "shopping", plan });
    for (const title of ["Milk", "Bread"]) await client.callTool("add_note", { title, tag: "shopping" });
    const old = await plan();
    assertEquals(old.changes, ["Milk", "Bread"]);
    await client.callTool("add_note", { title: "Salt", tag: "shopping" });
    assertStringIncludes(textOf(await apply(old.plan)), '"Salt"');
    const { plan: id } = await plan();
    const done = await apply(id);
    assertEquals(done.structuredContent, { deleted: ["Milk", "Bread", "Salt"] });
    assertEquals((await apply(id)).structuredContent, done.structuredContent);
    assertStringIncludes(asked[1], '"Salt"');
    assertEquals((await plan()).changes, []);
  });
}
