// The example of a gateway with a lock, in both eras.
import { assert, assertEquals } from "@std/assert";
import server from "../../examples/locked.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a client of the gateway uses the reviewed tools (${era})`, async () => {
    await using client = await connectTest(server, { era });
    const names = (await client.listTools()).map(({ name }) => name);
    assert(names.includes("calc_add"), names.join());
    assertEquals(textOf(await client.callTool("calc_add", { a: 2, b: 3 })), "5");
  });
}
