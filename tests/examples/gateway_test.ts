// The example of a gateway, in both eras.
import { assert, assertEquals } from "@std/assert";
import server from "../../examples/gateway.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a client of the gateway uses the servers behind it (${era})`, async () => {
    await using client = await connectTest(server, {
      era,
      onElicit: ({ message }) => ({
        action: message.startsWith("notes: ") ? "accept" : "cancel",
        content: { overwrite: true },
      }),
    });
    const names = (await client.listTools()).map(({ name }) => name);
    assertEquals(names[0], "hello");
    assert(["notes_write", "calc_add"].every((name) => names.includes(name)), names.join());
    assertEquals(textOf(await client.callTool("calc_add", { a: 2, b: 3 })), "5");
    const { isError } = await client.callTool("notes_write", { title: "ideas", text: "A gateway" });
    assert(!isError);
    const { contents: [{ text }] } = await client.readResource("note://ideas");
    assertEquals(text, "A gateway");
  });
}
