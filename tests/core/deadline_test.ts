// The default timeout of calls, which is checked at intervals, and timeouts of handlers, which are exact.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, tool } from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { testClient, testServer } from "../support/test_server.ts";

function hanging(options: Parameters<typeof quota>[0] = {}) {
  const state = { runs: false, aborted: false };
  const hang = tool({
    name: "hang",
    use: [quota(options)],
    run: (_, { signal }) =>
      new Promise<string>((resolve) => {
        state.runs = true;
        signal.addEventListener("abort", () => {
          state.aborted = true;
          resolve("late");
        });
      }),
  });
  return { hang, state };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`by default, a handler can run for two minutes (${era})`, async () => {
    const clock = fakeClock();
    const { hang, state } = hanging();
    await using client = await testClient({ clock, handlers: [hang] }, { era });
    const call = client.callTool("hang");
    call.catch(() => {});
    await until(() => state.runs, "the handler runs");
    await clock.advance(119_000);
    assert(!state.aborted);
    await clock.advance(31_000);
    assert(state.aborted);
    await assertRejects(() => call, Error, sentence(120_000, "calls.timeoutMs"));
  });

  Deno.test(`a handler can have no timeout (${era})`, async () => {
    const clock = fakeClock();
    const { hang, state } = hanging({ timeoutMs: Infinity });
    const server = testServer({ clock, handlers: [hang] });
    // Use a pipe, because advancing the clock would also trigger the timeout for reading an HTTP stream.
    await using client = await connectTest(server, { era, transport: "pipe" });
    const call = client.callTool("hang");
    call.catch(() => {});
    await until(() => state.runs, "the handler runs");
    await clock.advance(3_600_000);
    assert(!state.aborted);
    const closing = server.close();
    await turn();
    await clock.advance(10_000);
    await closing;
    await assertRejects(() => call);
  });
}

Deno.test("the timeout does not count the time of three answers that take five minutes each", async () => {
  const clock = fakeClock();
  const ask = tool({
    name: "ask",
    async run(_, ctx) {
      const schema = z.object({ ok: z.boolean() });
      for (const key of ["a", "b", "c"]) await ctx.elicit(key, { message: key, schema });
      return "done";
    },
  });
  const calls = { answerMs: 600_000 };
  const server = testServer({ clock, handlers: [ask], limits: { calls } });
  await using client = await connectTest(server, {
    era: "legacy",
    async onElicit() {
      await clock.advance(300_000);
      return { action: "accept", content: { ok: true } };
    },
  });
  const { content } = await client.callTool("ask");
  assertEquals(content, [{ type: "text", text: "done" }]);
});

Deno.test("the timeout counts the time of the handler after an answer", async () => {
  const clock = fakeClock();
  const { hang, state } = hanging();
  const ask = tool({
    name: "ask",
    async run(_, ctx) {
      await ctx.elicit("a", { message: "a", schema: z.object({ ok: z.boolean() }) });
      return String(await hang.run({} as never, ctx as never)); // The cast is safe, because the tool uses neither input nor services.
    },
  });
  const server = testServer({ clock, handlers: [ask] });
  await using client = await connectTest(server, {
    era: "legacy",
    onElicit: () => ({ action: "accept", content: { ok: true } }),
  });
  const call = client.callTool("ask");
  call.catch(() => {});
  await until(() => state.runs, "the handler runs");
  await clock.advance(165_000);
  assert(state.aborted);
  await assertRejects(() => call, Error, "calls.timeoutMs");
});

// A call does not run if its client disconnects while the server is preparing the call.

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a call does not run if its client disconnects while allow decides (${era})`, async () => {
    const { pass, open } = gate();
    const log: string[] = [];
    const slow = tool({
      name: "slow",
      async allow(ctx) {
        if (ctx.method !== "tools/call") return true;
        log.push("asked");
        await pass;
        return true;
      },
      run: () => void log.push("runs"),
    });
    await using server = createServer({ name: "left", version: "1.0.0", handlers: [slow] });
    const client = await connectTest(server, { transport: "pipe", era });
    const call = client.callTool("slow").catch((error) => error);
    await until(() => log.includes("asked"), "allow is called");
    await client.close();
    open();
    await turn(20);
    assertEquals(log, ["asked"]);
    await call;
  });
}
