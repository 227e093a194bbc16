// The `use` option of the client: middleware functions run around requests.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, resource, tool } from "../../mod.ts";
import { type ClientMiddleware, connect } from "../../src/client/client.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

function createEcho() {
  const meta = tool({ name: "meta", run: (_input, { meta }) => JSON.stringify(meta.traceparent ?? null) });
  const book = resource({ uri: "book://1", name: "book", read: () => "text" });
  return createServer({ name: "echo", version: "1.0.0", handlers: [meta, book] });
}

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "memory"] as const) {
    const join = async (stack: AsyncDisposableStack, use: readonly ClientMiddleware[]) => {
      const server = createEcho();
      stack.defer(() => server.close());
      const client = transport === "http"
        ? await connect("http://localhost/mcp", { era, use, fetch: (request) => server.fetch(request) })
        : await connect(server, { era, use });
      return stack.use(client);
    };

    Deno.test(`middleware functions run around every request, in order (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const steps: string[] = [];
      const log = (name: string): ClientMiddleware => async (request, next) => {
        steps.push(`${name} ${request.method}`);
        const result = await next();
        steps.push(`${name} end`);
        return result;
      };
      const client = await join(stack, [log("outer"), log("inner")]);
      const handshake = era === "modern" ? "server/discover" : "initialize";
      assertEquals(steps.splice(0), [`outer ${handshake}`, `inner ${handshake}`, "inner end", "outer end"]);
      await client.callTool("meta");
      await client.readResource("book://1");
      await client.listTools();
      assertEquals(steps.filter((step) => step.startsWith("outer ") && step !== "outer end"), [
        "outer tools/call",
        "outer resources/read",
        "outer tools/list",
      ]);
    });

    Deno.test(`a middleware function can change and repeat requests, and return results of its own (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      let sent = 0;
      const trace: ClientMiddleware = (request, next) => {
        const { params } = request;
        return next({ ...request, params: { ...params, _meta: { traceparent: "00-1" } } });
      };
      const twice: ClientMiddleware = async (request, next) => {
        if (request.method !== "tools/call") return await next();
        await next();
        sent++;
        return await next();
      };
      const cached: ClientMiddleware = (request, next) =>
        request.method === "resources/read" ? { contents: [{ uri: "book://1", text: "cached" }] } : next();
      const client = await join(stack, [cached, twice, trace]);
      assertEquals([textOf(await client.callTool("meta")), sent], ['"00-1"', 1]);
      assertEquals((await client.readResource("book://1")).contents[0].text, "cached");
    });

    Deno.test(`a request fails with the error that a middleware function throws (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const client = await join(stack, [(request, next) => {
        if (request.method === "resources/read") throw new Error("not today");
        return request.method === "tools/call" ? Object(undefined)[1] : next();
      }]);
      await assertRejects(() => client.readResource("book://1"), Error, "not today");
      await assertRejects(() => client.callTool("meta"), TypeError, sentence("tools/call", "use"));
      assert((await client.listTools()).length);
    });
  }
}
