// The app example, for clients with and without support for apps.
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import server from "../../examples/clock/server.ts";
import { clientExtension } from "../../src/client/client.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

Deno.test("the clock is an app for clients that can show apps, and text for other clients", async () => {
  await using stack = new AsyncDisposableStack();
  stack.defer(() => server.close());
  const settings = { mimeTypes: ["text/html;profile=mcp-app"] };
  for (const era of ["modern", "legacy"] as const) {
    const plain = stack.use(await connectTest(server, { era }));
    const text = await plain.callTool("show_time", { zone: "Asia/Tokyo" });
    assertMatch(textOf(text), /^It is \d\d:\d\d:\d\d \(Asia\/Tokyo\)\.$/);
    assertEquals(text.structuredContent, undefined);
    const extensions = [clientExtension({ id: "io.modelcontextprotocol/ui", settings })];
    const host = stack.use(await connectTest(server, { era, extensions }));
    const shown = await host.callTool("show_time");
    assertMatch(textOf(shown), /\(UTC\)\.$/);
    assertEquals(Object(shown.structuredContent).zone, "UTC");
    const [tool] = await host.listTools();
    const [page] = (await host.readResource(Object(tool._meta).ui.resourceUri)).contents;
    assertStringIncludes(page.text ?? "", "mcpApp.on(");
  }
});
