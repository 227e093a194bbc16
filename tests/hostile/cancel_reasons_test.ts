// Clients can send any JSON as the reason for a cancellation.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { start } from "./attack.ts";

Deno.test("a cancellation does not free the slot of a handler that keeps running, whatever the reason", async () => {
  let running = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = tool({
    name: "slow",
    use: [quota({ concurrency: { calls: 1, waiting: 4 }, timeoutMs: 60_000 })],
    async run() {
      running++;
      await promise;
      return "done";
    },
  });
  const reached: string[] = [];
  const server = start({ handlers: [slow], observer: { limit: ({ limit }) => void reached.push(limit) } });
  await using client = await connectTest(server, { era: "legacy", transport: "pipe" });
  client.callTool("slow").catch(() => {});
  await until(() => running === 1, "the first call");
  for (let requestId = 0; requestId < 10; requestId++) {
    await client.notify("notifications/cancelled", { requestId, reason: { name: "TimeoutError" } });
  }
  client.callTool("slow").catch(() => {});
  await until(() => reached.length === 1 || running > 1, "the second call waits");
  assertEquals(running, 1);
  resolve();
  await until(() => running === 2, "the second call");
  await server.close();
});

for (const reason of ["", 0, null, { toString: null, valueOf: null }]) {
  Deno.test(`a handler's signal aborts for the cancellation reason ${JSON.stringify(reason)}`, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const seen: unknown[] = [];
    let isRunning = false;
    const slow = tool({
      name: "slow",
      async run(_input, ctx) {
        isRunning = true;
        await promise;
        // The server creates the signal when the handler first reads `ctx.signal`.
        seen.push(ctx.signal.aborted, `${ctx.signal.reason}` !== "");
      },
    });
    const server = start({ handlers: [slow] });
    await using client = await connectTest(server, { era: "legacy", transport: "pipe" });
    void client.callTool("slow").catch(() => {});
    await until(() => isRunning, "the call");
    for (let requestId = 0; requestId < 10; requestId++) {
      await client.notify("notifications/cancelled", { requestId, reason });
    }
    await client.request("ping");
    resolve();
    await until(() => seen.length > 0, "the end of the handler");
    await server.close();
    assertEquals(seen, [true, true]);
  });
}
