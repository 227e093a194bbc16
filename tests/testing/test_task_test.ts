// Handlers that crash at every point at which their task can be resumed.
import { assertEquals, assertRejects } from "@std/assert";
import { service, tool } from "../../mod.ts";
import { task } from "../../src/extensions/tasks/tasks.ts";
import { testTask } from "../../src/testing/testing.ts";
import { z } from "zod";
import { sentence } from "../support/messages.ts";

const bank = service("bank", () => ({ pay: (_euros: number) => "", balance: () => 0 }));
const form = z.object({ ok: z.boolean() });
const answers = { sure: { action: "accept", content: { ok: true } } };
const use = [task({ resume: true })];

function fakes() {
  const paid: number[] = [];
  const pay = (euros: number) => `receipt ${paid.push(euros)}`;
  return { paid, services: { bank: { pay, balance: () => 7 } } };
}

/** Returns the message of an error, with `<line>` instead of the line of this file. */
function withoutLine({ message }: Error): string {
  return message.replace(/\bat .*?\/test_task_test\.ts:[\d:]+\)?/, "<line>");
}

Deno.test("a handler that wraps its effects in ctx.once passes, and is crashed at every point", async () => {
  const pay = tool({
    name: "pay",
    input: z.object({ euros: z.number() }),
    services: { bank },
    use,
    async run({ euros }, ctx) {
      const first = await ctx.once("first", () => ctx.services.bank.pay(euros));
      const { action } = await ctx.elicit("sure", { message: "More?", schema: form });
      const second = await ctx.once("second", async () => await Promise.resolve(ctx.services.bank.pay(euros)));
      return { action, receipts: [first, second].length };
    },
  });
  const { paid, services } = fakes();
  const { value, crashes } = await testTask(pay, { euros: 5 }, { answers, services });
  // The handler crashed after each value, at the question, and at the end.
  assertEquals([value, crashes], [{ action: "accept", receipts: 2 }, 4]);
  // The run without a crash makes two calls, and so does each of the four runs with a crash.
  assertEquals(paid.length, 10);
});

Deno.test("a call outside of ctx.once fails the test with the line of the call, wherever the call is", async () => {
  for (const place of ["before", "between", "after"]) {
    const pay = tool({
      name: "pay",
      services: { bank },
      use,
      async run(_input, ctx) {
        const call = (at: string) => {
          if (at === place) ctx.services.bank.pay(1);
        };
        call("before");
        await ctx.once("first", () => 1);
        call("between");
        await ctx.elicit("sure", { message: "More?", schema: form });
        call("after");
      },
    });
    const error = await assertRejects(() => testTask(pay, {}, { answers, services: fakes().services }), Error);
    assertEquals(withoutLine(error), sentence("bank.pay", "<line>"));
  }
});

Deno.test("a function that only reads can be called again", async () => {
  const show = tool({
    name: "show",
    services: { bank },
    use,
    run: async (_input, ctx) => `${ctx.services.bank.balance()} ${await ctx.once("first", () => 1)}`,
  });
  const { services } = fakes();
  const error = await assertRejects(() => testTask(show, {}, { services }), Error);
  assertEquals(withoutLine(error), sentence("bank.balance", "<line>"));
  const { value } = await testTask(show, {}, { services, mayRepeat: ["bank.balance"] });
  assertEquals(value, "7 1");
});

Deno.test("a result that differs between runs fails the test", async () => {
  let runs = 0;
  const count = tool({
    name: "count",
    use,
    run: async (_input, ctx) => `${++runs} ${await ctx.once("a", () => 1)}`,
  });
  await assertRejects(
    () => testTask(count, {}),
    Error,
    sentence('"1 1"', '"3 1"'),
  );
});

Deno.test("an error of the handler, a missing answer and an unknown option throw", async () => {
  const fail = tool({ name: "fail", use, run: () => Promise.reject(new RangeError("too far")) });
  await assertRejects(() => testTask(fail, {}), RangeError, "too far");
  const ask = tool({
    name: "ask",
    use,
    run: async (_input, ctx) => (await ctx.elicit("sure", { message: "?", schema: form })).action,
  });
  await assertRejects(() => testTask(ask, {}), TypeError, sentence('"sure"'));
  // deno-lint-ignore no-explicit-any
  await assertRejects(() => testTask(ask, {}, { answer: {} } as any), TypeError, sentence("answer", "answers?"));
});
