// `waitUntil` in the second argument of `fetch` gets the work of `ctx.defer`.
import { assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { serve } from "../peers/runtime.ts";
import { plainTool, raise, until } from "../support/behaviour.ts";
import { readAnswer, toRequest } from "../support/requests.ts";

for (const revision of ["2026-07-28", "2025-11-25"] as const) {
  Deno.test(`waitUntil gets a promise that settles when the deferred functions have ended (${revision})`, async () => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    const later = plainTool("later", async (ctx) => {
      await ctx.progress(1);
      ctx.defer(() => opened);
      return "later";
    });
    await using server = createServer({ name: "later", version: "1.0.0", handlers: [later] });
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
  });
}

for (const isAsync of [false, true]) {
  const name = `a waitUntil that fails is reported, and a tool that ${isAsync ? "waits" : "returns"} keeps its result`;
  Deno.test(name, async () => {
    const faults: unknown[] = [];
    const later = plainTool("later", (ctx) => {
      ctx.defer(() => {});
      return isAsync ? Promise.resolve().then(() => "later") : "later";
    });
    const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
    await using server = createServer({ name: "later", version: "1.0.0", handlers: [later], observer });
    // Such as `{ waitUntil: context.waitUntil }` on Workers, which throws without its context.
    const fails: readonly unknown[] = [
      () => raise(new TypeError("Illegal invocation")),
      () => Promise.reject(new Error("late")),
      "a variable with this name",
    ];
    for (const waitUntil of fails) {
      const given = { waitUntil: waitUntil as () => void }; // The cast allows a wrong value.
      const { result } = await readAnswer(await server.fetch(toRequest("tools/call", { name: "later" }), given));
      assertEquals(result?.content, [{ type: "text", text: "later" }]);
    }
    await until(() => faults.length === 2, "both failures are reported");
    await until(() => server.stats().running === 0, "the calls give back their slots");
  });
}
