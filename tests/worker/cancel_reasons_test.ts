// Cancellation reasons that are not strings.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { worker } from "../../src/ready/worker/worker.ts";
import type heavy from "./heavy.ts";
import { textOf } from "../support/behaviour.ts";

Deno.test("a cancellation reason that is not a string ends the thread of a blocked handler, but not the process", async () => {
  const run = worker<typeof heavy>(new URL("./heavy.ts", import.meta.url), { size: 2, idleMs: 0, stopMs: 20 });
  const input = { type: "object", properties: { job: { type: "string" }, value: {} } } as const;
  const blocked = tool({ name: "blocked", input, run: async (input, ctx) => await run(input as never, ctx) as string });
  await using server = createServer({ name: "threads", version: "1.0.0", handlers: [blocked] });
  await using client = await connectTest(server, { era: "legacy", transport: "pipe" });
  const echo = async () => textOf(await client.callTool("blocked", { job: "echo", value: "again" }));
  await echo();
  void client.callTool("blocked", { job: "spin" }).catch(() => {});
  // Wait until the other thread responds, because it starts while this thread is blocked.
  await echo();
  for (let requestId = 0; requestId < 10; requestId++) {
    await client.notify("notifications/cancelled", { requestId, reason: { toString: null, valueOf: null } });
  }
  for (let i = 0; i < 2; i++) assertEquals(await echo(), "again");
});
