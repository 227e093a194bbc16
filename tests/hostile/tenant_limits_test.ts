// A client that spreads its calls over many paths, and an author that enables and disables handlers all the time.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { limits } from "../../src/limits/limits.ts";
import { toRequest } from "../support/requests.ts";

function open(options: Parameters<typeof limits>[0], run: () => Promise<string> | string = () => "done") {
  const work = tool({ name: "work", limits: limits(options), run });
  const server = createServer({ name: "tenants", version: "1.0.0", path: "/:tenant/mcp", handlers: [work] });
  const call = async (tenant: string) => {
    const request = new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name: "work" }));
    const { result, error } = await (await server.fetch(request)).json();
    return result ? "done" : error.code;
  };
  return { server, call };
}

Deno.test("a client has one rate at all paths of a server", async () => {
  const { server, call } = open({ rate: { calls: 2, perMs: 600_000 } });
  const codes = [];
  for (const tenant of ["a", "b", "c", "a"]) codes.push(await call(tenant));
  await server.close();
  assertEquals(codes, ["done", "done", -31429, -31429]);
});

Deno.test("a handler has one concurrency at all paths of a server", async () => {
  const held = Promise.withResolvers<string>();
  const { server, call } = open({ concurrency: { calls: 1, waiting: 0 } }, () => held.promise);
  const first = call("a");
  const second = await call("b");
  held.resolve("done");
  assertEquals([await first, second], ["done", -31503]);
  await server.close();
});
