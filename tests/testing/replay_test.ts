// Replaying a handler: running it again after each question.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { type Context, prompt, resource, tool, ToolError } from "../../mod.ts";
import { replay } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { plainTool } from "../support/behaviour.ts";

const yes = { action: "accept", content: { ok: true } };
const ask = (ctx: Context, key: string, message = "?") =>
  ctx.elicit(key, { message, schema: z.object({ ok: z.boolean() }) });

Deno.test("a handler runs once more after each round of questions, and its work in ctx.once runs once", async () => {
  const done: string[] = [];
  const order = tool({
    name: "order",
    input: z.object({ item: z.string() }),
    async run({ item }, ctx) {
      const id = await ctx.once("id", () => done.push("id"));
      await Promise.all([ask(ctx, "a"), ask(ctx, "b")]);
      const roots = await ctx.roots();
      done.push(item);
      await ctx.log.info("ordered");
      return `${id} ${roots.length}`;
    },
  });
  const answers = { a: yes, b: yes, roots: { roots: [{ uri: "file:///a" }] } };
  const { value, runs } = await replay(order, { item: "tea" }, { answers });
  assertEquals([value, done], ["1 1", ["id", "tea"]]);
  assertEquals(runs.map(({ asked }) => asked.map(({ key }) => key)), [["a", "b"], ["a", "b", "roots"], [
    "a",
    "b",
    "roots",
  ]]);
  assertEquals(runs.map(({ logged }) => logged.length), [0, 0, 1]);
});

Deno.test("repeated work is reported with the question that causes the repetition", async () => {
  const noisy = plainTool("noisy", async (ctx) => {
    await ctx.log.info("begin");
    await ctx.progress(1);
    ctx.server.resourceUpdated("note://1");
    await ask(ctx, "first");
    ctx.server.listChanged("tools");
    await ask(ctx, "second");
    return "done";
  });
  const { message } = await assertRejects(() => replay(noisy, {}, { answers: { first: yes, second: yes } }), Error);
  assertEquals(
    message,
    sentence('"first"', '"second"', "ctx.once(key"),
  );
});

Deno.test("a question that changes between runs is reported", async () => {
  let at = 0;
  const odd = plainTool("odd", async (ctx) => ((await ask(ctx, "sure", `${Math.min(at++, 3)}`)).action));
  const { message } = await assertRejects(() => replay(odd, {}, { answers: { sure: yes } }), Error);
  assertStringIncludes(message, sentence('"sure"'));
  const endless = tool({ name: "endless", run: async (_input, ctx) => ((await ask(ctx, "sure", `${at++}`)).action) });
  await assertRejects(
    () => replay(endless, {}, { answers: { sure: yes } }),
    Error,
    sentence(64),
  );
});

Deno.test("a handler that asks no question, fails or catches errors is replayed too", async () => {
  const plain = prompt({ name: "plain", run: () => "text" });
  assertEquals((await replay(plain, {})).runs.length, 1);
  const failing = resource({
    uri: "a://{b}",
    name: "a",
    async read({ b }, ctx) {
      await ask(ctx, b);
      throw new ToolError("gone");
    },
  });
  await assertRejects(() => replay(failing, { b: "x" }, { answers: { x: yes } }), ToolError, "gone");
  const stubborn = plainTool(
    "stubborn",
    async (ctx) => (await ask(ctx, "sure").catch(() => undefined))?.action ?? "caught",
  );
  assertEquals((await replay(stubborn, {}, { answers: { sure: yes } })).value, "accept");
  await assertRejects(() => replay(failing, { b: "x" }, { answers: {} }), TypeError, sentence('"x"'));
});

Deno.test("a question that is not awaited is reported, unless its handler fails", async () => {
  const forgets = plainTool("forgets", (ctx) => {
    void ask(ctx, "sure");
    return "done";
  });
  const { message } = await assertRejects(() => replay(forgets, {}, { answers: { sure: yes } }), Error);
  assertEquals(
    message,
    sentence('ctx.elicit("sure")', "tools/call"),
  );
  const fails = plainTool("fails", async (ctx) => {
    const answer = ask(ctx, "sure");
    if (ctx.method) throw new ToolError("first");
    return (await answer).action;
  });
  await assertRejects(() => replay(fails, {}, { answers: { sure: yes } }), ToolError, "first");
});
