// Attempts to disable an extension with a rule.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, extension } from "../../mod.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";

Deno.test("disable() throws for an extension, because the rule would have no effect", async () => {
  const audit = extension({ id: "com.example/audit", methods: { "audit/get": { run: () => ({ calls: 3 }) } } });
  const server = createServer({ name: "audited", version: "1.0.0", handlers: [audit] });
  assertThrows(() => server.handlers.disable(audit), TypeError, sentence(audit.id));
  assertThrows(() => server.handlers.enable(audit), TypeError, sentence(audit.id));
  await using client = await connectTest(server, { capabilities: { extensions: { [audit.id]: {} } } });
  assertEquals((await client.request("audit/get", {})).calls, 3);
  server.handlers.remove(audit);
  await assertRejects(() => client.request("audit/get", {}), McpError, sentence("audit/get"));
  await server.close();
});
