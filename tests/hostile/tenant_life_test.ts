// What runs at a path must not end because many other paths are used.
import { assertEquals, assertThrows } from "@std/assert";
import { createServer, extension, type Server, tool } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";
import { turn } from "../support/behaviour.ts";

function call(server: Server, tenant: string, name: string): Promise<Response> {
  return server.fetch(new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name })));
}

Deno.test("a path with a handler that goes on after its response is not dropped", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const own = extension({ id: "com.example/later" });
  const later = own.attribute({
    wrap(call, next) {
      call.redirect({});
      call.detach();
      next();
      return { content: [] };
    },
  });
  const made: string[] = [];
  const work = tool({
    name: "work",
    extensions: [later],
    async run() {
      await promise;
      return "done";
    },
  });
  const ping = tool({ name: "ping", run: () => "pong" });
  const server = createServer({
    name: "tenants",
    version: "1.0.0",
    path: "/:tenant/mcp",
    limits: { endpoints: { open: 2 } },
    handlers: ({ tenant }) => {
      made.push(tenant);
      return [own, work, ping];
    },
  });
  await (await call(server, "busy", "work")).text();
  for (const tenant of ["a", "b", "c", "busy"]) await (await call(server, tenant, "ping")).text();
  resolve();
  await turn(10);
  await server.close();
  assertEquals(made, ["busy", "a", "b", "c"]);
});

Deno.test("no parameter has a name that objects treat as their prototype", () => {
  const options = { name: "tenants", version: "1.0.0" };
  assertThrows(() => createServer({ ...options, path: "/:__proto__/mcp" }), TypeError, "a path like");
  createServer({ ...options, path: "/:constructor/mcp" });
});
