// Work before a question. In development, the server warns about this work, because the handler repeats it for clients
// without a session.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, prompt, resource, tool } from "../../mod.ts";
import { listEndpoints } from "../../src/host.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour } from "../support/behaviour.ts";
import { collectWarnings } from "../support/warnings.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";

const schema = z.object({ ok: z.boolean() });
const ask = (ctx: Context, key: string) => ctx.elicit(key, { message: "?", schema });
const client = { onElicit: () => ({ action: "accept", content: { ok: true } }) as const, logLevel: "debug" } as const;

const noisy = tool({
  name: "noisy",
  async run(_input, ctx) {
    await ctx.log.info("begin");
    await ctx.progress(1);
    await ask(ctx, "first");
    await ctx.log.info("middle");
    await ask(ctx, "second");
    await ctx.log.info("end");
    return "done";
  },
});

behaviour("work before a question is reported once for each question, in every revision", async (join) => {
  const { client: connected } = await join({ handlers: [noisy], clock: fakeClock() }, client);
  const call = () => connected.callTool("noisy", {}, { meta: { progressToken: 1 } });
  const warnings = await collectWarnings(async () => void [await call(), await call()]);
  assertEquals(warnings, [
    sentence('tools/call "noisy"', '"first"', "ctx.once("),
    sentence('tools/call "noisy"', '"second"', "ctx.once("),
  ]);
}, { perInstance: "observer" });

behaviour("a slow await before a question is reported, but work in ctx.once is not", async (join) => {
  const clock = fakeClock();
  const slow = tool({
    name: "slow",
    async run(_input, ctx) {
      await clock.advance(150);
      await ask(ctx, "sure");
      return "done";
    },
  });
  const kept = tool({
    name: "kept",
    async run(_input, ctx) {
      await clock.advance(99);
      await ctx.once("work", async () => {
        await ctx.log.info("once");
        await clock.advance(500);
        return 1;
      });
      await Promise.all([ask(ctx, "a"), ask(ctx, "b")]);
      return "done";
    },
  });
  const { client: connected } = await join({ handlers: [slow, kept], clock }, client);
  const warnings = await collectWarnings(
    async () => void [await connected.callTool("slow"), await connected.callTool("kept")],
    { timed: true },
  );
  assertEquals(warnings, [sentence('tools/call "slow"', 150, '"sure"')]);
}, { perInstance: "observer" });

behaviour(
  "a notification before a question is reported, but a notification after the question is not",
  async (join) => {
    const announcing = tool({
      name: "announcing",
      async run(_input, ctx) {
        const { listChanged, resourceUpdated } = ctx.server;
        listChanged("tools");
        await ask(ctx, "first");
        await ctx.once("told", () => resourceUpdated("note://1"));
        await ask(ctx, "second");
        resourceUpdated("note://1");
        return "done";
      },
    });
    const quiet = tool({ name: "quiet", run: async (_input, ctx) => (await ask(ctx, "sure")).action });
    const { client: connected } = await join({ handlers: [announcing, quiet] }, client);
    await using subscription = await connected.subscribe({ toolsListChanged: true });
    const warnings = await collectWarnings(async () => {
      await connected.callTool("announcing");
      await connected.callTool("quiet");
    });
    assertEquals(warnings, [sentence('tools/call "announcing"', '"first"')]);
    assertEquals((await subscription.take(1)).length, 1);
  },
  { perInstance: "observer" },
);

behaviour("prompts and resources are checked like tools", async (join) => {
  const work = async (ctx: Context) => {
    await ctx.log.warning("begin");
    await ask(ctx, "sure");
    return "done";
  };
  const { client: connected } = await join({
    handlers: [
      prompt({ name: "words", run: (_input, ctx) => work(ctx) }),
      resource({ uri: "note://1", name: "note", read: (_uri, ctx) => work(ctx) }),
    ],
  }, client);
  const warnings = await collectWarnings(async () => {
    await connected.getPrompt("words");
    await connected.readResource("note://1");
  });
  assertEquals(warnings, [sentence('prompts/get "words"'), sentence('resources/read "note://1"')]);
}, { perInstance: "observer" });

Deno.test("development: true enables the warnings without a test kit, and development: false disables them in the test kit", async () => {
  const warnOf = async (development: boolean) => {
    const server = closeAtEnd(createServer({ name: "s", version: "1.0.0", handlers: [noisy], development }));
    if (development) listEndpoints(server)[0].develop();
    return await collectWarnings(async () => {
      await using connected = await connectTest(server, client);
      await connected.callTool("noisy");
    });
  };
  assertEquals((await warnOf(true)).length, 2);
  assertEquals(await warnOf(false), []);
});
