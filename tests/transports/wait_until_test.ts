// `waitUntil` in the second argument of `fetch` gets the work of `ctx.defer`.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { serve } from "../peers/runtime.ts";
import { until } from "../support/behaviour.ts";

for (const revision of ["2026-07-28", "2025-11-25"] as const) {
  Deno.test(`waitUntil gets a promise that settles when the deferred functions have ended (${revision})`, async () => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    const later = tool({
      name: "later",
      run: async (_input, ctx) => {
        await ctx.progress(1);
        ctx.defer(() => opened);
        return "later";
      },
    });
    const server = createServer({ name: "later", version: "1.0.0", handlers: [later] });
    const works: string[] = [];
    const waitUntil = (work: Promise<unknown>) => {
      works.push("waits");
      work.then(() => works.push("settled"));
    };
    await using port = serve({ fetch: (request, info) => server.fetch(request, { info, waitUntil }) });
    await using client = await connect(`http://${port.host}/mcp`, { revisions: [revision] });
    assertEquals((await client.callTool("later")).content, [{ type: "text", text: "later" }]);
    assertEquals(works, ["waits"]);
    open();
    await until(() => works.length === 2, "the promise has settled");
    await server.close();
  });
}
