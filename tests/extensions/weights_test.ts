import { assertEquals } from "@std/assert";
import { createServer, extension, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";

Deno.test("calls of a tool with a layer of an extension leave no bytes counted", async () => {
  const wire = extension({ id: "com.example/wire" });
  const slow = tool({
    name: "slow",
    use: [wire.layer({ around: async (_call, next) => await next() })],
    run: () => "done",
  });
  await using server = createServer({ name: "weights", version: "1.0.0", handlers: [slow, wire] });
  await using client = await connect(server, { capabilities: { extensions: { "com.example/wire": {} } } });
  for (let i = 0; i < 20; i++) await client.callTool("slow");
  assertEquals(server.stats().bytes, 0);
});
