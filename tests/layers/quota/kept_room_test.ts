// Stored large results of several clients.
import { assert } from "@std/assert";
import { z } from "zod";
import { createServer, tool } from "../../../mod.ts";
import { quota } from "../../../src/layers/layers.ts";
import { connectTest } from "../../../src/testing/testing.ts";

Deno.test("a result that exceeds its client's share evicts no other client's result", async () => {
  const long = tool({
    name: "long",
    input: z.object({ n: z.number() }),
    use: [quota({ resultBytes: 2000, onLarge: "link", keepBytes: 150_000 })],
    run: ({ n }) => "x".repeat(n),
  });
  const memory = { bytesPerClient: 100_000 };
  const server = createServer({ name: "x", version: "1.0.0", handlers: [long], limits: { memory } });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  await using eve = await connectTest(server, { principal: { id: "eve" } });
  const kept = await ada.callTool("long", { n: 18_000 });
  await eve.callTool("long", { n: 36_000 });
  const { isError } = await eve.callTool("long", { n: 28_000 });
  assert(isError, "there was room");
  await ada.readResource(String(Object(kept.content[1]).uri));
  await server.close();
});
