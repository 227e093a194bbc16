// The demo server: a tool that elicits, a task, an app, a resource and a prompt.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { demo } from "../../src/cli/demo.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`the demo server elicits, draws and counts (${era})`, async () => {
    const server = demo();
    const onElicit = () => ({ action: "accept", content: { flavor: "plum" } }) as const;
    await using client = await connectTest(server, { era, onElicit });
    assertEquals(textOf(await client.callTool("bake")), sentence("plum"));
    assertEquals(textOf(await client.callTool("roll")).replaceAll(/[1-6]/g, "N"), sentence("N"));
    assertStringIncludes(JSON.stringify(await client.readResource("ui://dice")), "mcpApp.on");
    assertEquals(textOf(await client.callTool("countdown", { from: 1 })), sentence());
    await using plain = await connectTest(server, { era });
    assertEquals((await plain.callTool("bake").catch((error) => error)).name, "McpError");
    await server.close();
  });
}

Deno.test("the demo server offers a task to clients that support tasks", async () => {
  const server = demo();
  await using client = await connectTest(server, { extensions: [taskClient()] });
  const { resultType } = await client.request("tools/call", { name: "countdown", arguments: { from: 6 } }, {
    finish: false,
  });
  assertEquals(resultType, "task");
  await server.close();
});
