// The first call in a process. This file must not contain other tests, because they would load the code beforehand.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";

Deno.test("advancing a fake clock finds the first call running", async () => {
  const clock = fakeClock();
  let started = Promise.withResolvers<void>();
  const run = () => {
    started.resolve();
    return new Promise<string>(() => {});
  };
  const hang = tool({ name: "hang", run });
  const limits = { calls: { timeoutMs: 60_000 } };
  for (const transport of ["memory", "http", "pipe"] as const) {
    for (const era of ["modern", "legacy"] as const) {
      const server = createServer({ name: "slow", version: "1.0.0", handlers: [hang], clock, limits });
      await using client = await connectTest(server, { era, transport, timeoutMs: 3000 });
      started = Promise.withResolvers();
      const call = client.callTool("hang").catch((error) => error.message);
      // Over a real connection, wait until the request has arrived.
      if (transport === "http") await started.promise;
      await clock.advance(60_000);
      assertEquals(await call, sentence(60_000, "calls.timeoutMs"));
      await server.close();
    }
  }
});
