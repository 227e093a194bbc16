// The example with resources and a prompt that are also tools.
import { assertEquals } from "@std/assert";
import server from "../../examples/as_tools.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`as tools: a model reads pages and gets a prompt that asks the user (${era})`, async () => {
    const onElicit = () => ({ action: "accept", content: { days: 5 } }) as const;
    await using member = await connectTest(server, { era, principal: { id: "member" }, onElicit });
    await using lead = await connectTest(server, { era, principal: { id: "lead" } });
    const names = async (client: typeof lead) => (await client.listTools()).map(({ name }) => name);
    assertEquals((await names(lead)).filter((name) => name === "salaries").length, 1);
    assertEquals((await names(member)).filter((name) => name === "salaries").length, 0);
    assertEquals(
      textOf(await member.callTool("handbook_page", { title: "travel" })),
      "Second class. Keep the receipts.",
    );
    const text = textOf(await member.callTool("holiday_request", { from: "May 2" }));
    assertEquals(text.startsWith("user: Write a request to my lead for 5 days"), true);
    const listed = async (client: typeof lead) => textOf(await client.callTool("list_resources"));
    assertEquals((await listed(lead)).includes("lead://salaries"), true);
    assertEquals((await listed(member)).includes("lead://salaries"), false);
    assertEquals((await member.callTool("read_resource", { uri: "lead://salaries" })).isError, true);
    assertEquals(textOf(await lead.callTool("read_resource", { uri: "lead://salaries" })).slice(0, 3), "A: ");
  });
}
