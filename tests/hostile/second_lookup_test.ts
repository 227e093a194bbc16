// The server looks up the handler of a queued call again before the call starts. An `allow` that never settles in this
// second lookup must not occupy a slot forever.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { quota as handlerLimits } from "../../src/layers/layers.ts";
import { advanceUntil, gate, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { ask } from "../support/requests.ts";
import { fakeClock } from "../../src/testing/testing.ts";

for (const place of ["server", "handler"] as const) {
  Deno.test(`the slot of a ${place} is released if the second lookup never settles`, async () => {
    let hangs = false;
    const { promise: never } = Promise.withResolvers<boolean>();
    const { pass, open } = gate();
    let running = 0;
    let looked = 0;
    const held = tool({
      name: "held",
      allow: () => (looked++, hangs ? never : true),
      use: place === "handler" ? [handlerLimits({ concurrency: { calls: 1 } })] : [],
      run: async () => {
        running++;
        await pass;
        return "";
      },
    });
    const limits = { calls: { timeoutMs: 200, running: place === "server" ? 1 : 100 } };
    const clock = fakeClock();
    const server = createServer({ name: "slots", version: "1.0.0", handlers: [held], limits, clock });
    const call = () => ask(server, "tools/call", { name: "held" });
    const first = call();
    await until(() => running === 1, "the first call runs");
    const queued = call();
    // Wait until the first lookup of the queued call has ended.
    await until(() => looked === 2, "the queued call is looked up");
    await turn();
    hangs = true;
    open();
    assertEquals((await first).error, undefined);
    assertEquals((await advanceUntil(clock, 200, queued)).error?.message, sentence(200, "calls.timeoutMs"));
    hangs = false;
    assertEquals((await call()).error, undefined);
    await server.close();
  });
}
