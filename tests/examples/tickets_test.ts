// The example with an extension: a client with the extension gets a ticket first, and every client gets the result.
import { assertEquals } from "@std/assert";
import { tickets } from "../../examples/tickets/client.ts";
import server from "../../examples/tickets/server.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`tickets: a client gets the result with and without the extension (${era})`, async () => {
    for (const extensions of [[tickets], []]) {
      await using client = await connectTest(server, { era, extensions });
      assertEquals(textOf(await client.callTool("report")), "The report");
    }
  });
}

Deno.test("tickets: with finish: false, a client gets the ticket, which belongs to its caller", async () => {
  await using ada = await connectTest(server, { extensions: [tickets], principal: { id: "ada" } });
  await using bob = await connectTest(server, { extensions: [tickets], principal: { id: "bob" } });
  const { resultType, ticket } = await ada.request("tools/call", { name: "report" }, { finish: false });
  assertEquals(resultType, "ticket");
  const refused = await bob.request("tickets/redeem", { ticket }).catch((error) => error.message);
  assertEquals(refused, "Unknown ticket");
  const { value } = await ada.request("tickets/redeem", { ticket });
  assertEquals(JSON.stringify(value).includes("The report"), true);
});
