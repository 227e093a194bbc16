// Using many other paths must not end the work at a path.
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, extension, type Server, tool } from "../../mod.ts";
import { toReply, toRequest } from "../support/requests.ts";
import { turn } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

function call(server: Server, tenant: string, name: string): Promise<Response> {
  return server.fetch(new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name })));
}

Deno.test("a path is not evicted while a handler continues after its response", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const own = extension({ id: "com.example/later" });
  const later = own.layer({
    around(call, next) {
      call.detach();
      next();
      return { content: [] };
    },
  });
  const made: string[] = [];
  const work = tool({
    name: "work",
    use: [later],
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
    limits: testLimits({ endpoints: { open: 2 } }),
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

Deno.test("handlers that were disabled or removed at a path stay disabled or removed, however many other paths are used", async () => {
  const secret = tool({ name: "secret", run: () => "the secret" });
  const ping = tool({ name: "ping", run: () => "pong" });
  const changes = {
    disable: tool({ name: "disable", run: (_, { server: { handlers } }) => handlers.disable({ tool: "secret" }) }),
    remove: tool({
      name: "remove",
      run: (_, { server: { handlers } }) => handlers.remove(handlers.get("tool", "secret")),
    }),
  };
  for (const [name, change] of Object.entries(changes)) {
    const server = createServer({
      name: "tenants",
      version: "1.0.0",
      path: "/:tenant/mcp",
      limits: testLimits({ endpoints: { open: 2 } }),
      handlers: () => [secret, ping, change],
    });
    const run = async (tenant: string, name: string) => await (await call(server, tenant, name)).text();
    const toError = (body: string) => JSON.parse(toReply(body)).error.message;
    await run("shut", name);
    for (const tenant of ["a", "b", "c", "d"]) assertStringIncludes(await run(tenant, "ping"), "pong");
    assertEquals(toError(await run("shut", "secret")), sentence("secret"), name);
    assertStringIncludes(await run("a", "secret"), "the secret");
    // Rules of the whole server apply at all paths, and do not keep any path in memory.
    server.handlers.disable({ tool: "ping" });
    for (const tenant of ["shut", "a", "b"]) assertEquals(toError(await run(tenant, "ping")), sentence("ping"));
    server.handlers.enable({ tool: "ping" });
    for (const tenant of ["c", "d", "e"]) assertStringIncludes(await run(tenant, "ping"), "pong");
    await server.close();
  }
});

Deno.test("createServer() throws if a path parameter has the name of an inherited object property", () => {
  const options = { name: "tenants", version: "1.0.0" };
  assertThrows(() => createServer({ ...options, path: "/:__proto__/mcp" }), TypeError, sentence("/:__proto__/mcp"));
  createServer({ ...options, path: "/:constructor/mcp" });
});
