// An author who believes that an extension is disabled.
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, extension } from "../../mod.ts";
import { connect, RpcError } from "../../src/testing/testing.ts";

Deno.test("a rule about an extension is reported, because it would change nothing", async () => {
  const faults: string[] = [];
  const audit = extension({ id: "com.example/audit", methods: { "audit/get": { run: () => ({ calls: 3 }) } } });
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(String(error)) };
  const server = createServer({ name: "audited", version: "1.0.0", handlers: [audit], observer });
  server.handlers.disable(audit);
  await using client = await connect(server, { capabilities: { extensions: { [audit.id]: {} } } });
  assertEquals((await client.request("audit/get", {})).calls, 3);
  const state = 'Cannot enable or disable extension "com.example/audit": it is an extension; add or remove it';
  assertEquals(faults, [`TypeError: ${state}`]);
  server.handlers.remove(audit);
  await assertRejects(() => client.request("audit/get", {}), RpcError, "no such method");
  await server.close();
});
