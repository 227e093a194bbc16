// The example of inner calls.
import { assert, assertEquals } from "@std/assert";
import server from "../../examples/inner_calls.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`inner calls: a tool calls other tools as its caller (${era})`, async () => {
    const asked: string[] = [];
    await using client = await connectTest(server, {
      era,
      onElicit: ({ message }) => {
        asked.push(message);
        return asked.length === 1 ? { action: "accept", content: {} } : { action: "decline" };
      },
    });
    const texts = async () => {
      const { content } = await client.callTool("plan_trip", { city: "Oslo" });
      return content.map((block) => "text" in block ? block.text : block.type);
    };
    const summary = "Summarize a trip to Oslo for 94 euros in one sentence.";
    assertEquals(await texts(), ["XM 104, Hotel Oslo. Hand luggage only.", "Booked.", summary]);
    assertEquals(await texts(), ["XM 104, Hotel Oslo. Hand luggage only.", "Not booked.", summary]);
    assertEquals(asked, ["Book XM 104?", "Book XM 104?"]);
    const failed = await client.callTool("plan_trip", { city: "Atlantis" });
    assert(failed.isError);
    assertEquals(textOf(failed), "There is no hotel in Atlantis.");
    assertEquals(textOf(await client.callTool("help")).split("\n").length, 5);
  });
}
