// Answers to questions of tasks on several instances: an answer that was acknowledged is not lost, and of several
// answers, the first valid one counts.
import { assertEquals, assertRejects } from "@std/assert";
import type { Context } from "../../mod.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { z } from "zod";
import { gate, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { type Instance, isTask, reach, type Run, start, startInstance } from "./instance.ts";

const form = z.object({ name: z.string() });
const answer = (name: unknown) => ({ action: "accept", content: { name } });
const update = async ({ client }: Instance, taskId: string, inputResponses: object) =>
  await client.request("tasks/update", { taskId, inputResponses });
const elicit = async (ctx: Context, key: string, message = key) =>
  (await ctx.elicit(key, { message, schema: form })).content?.name;

async function listOpen({ client }: Instance, taskId: string): Promise<string> {
  return Object.keys(Object((await client.request("tasks/get", { taskId })).inputRequests)).sort().join();
}

async function startAll(count: number, run: Run, shared: Store = memoryStore()): Promise<Instance[]> {
  return await Promise.all(Array.from({ length: count }, () => startInstance(shared, run)));
}

async function closeAll(instances: readonly Instance[]): Promise<void> {
  for (const instance of instances) {
    instance.around = undefined;
    await instance.close();
  }
}

/** Delays the messages of other instances to an instance. Returns a function that delivers them. */
function delayMessages(instance: Instance): () => void {
  const { pass, open } = gate();
  instance.around = ({ name, run }) => name === "heads" || name === "read" ? pass.then(run) : run();
  return open;
}

const bothQuestions: Run = async (ctx) => (await Promise.all([elicit(ctx, "a"), elicit(ctx, "b")])).join();

for (const wrong of [answer(7), null, "text", { action: "accept" }]) {
  Deno.test(`a valid answer counts if the answer ${JSON.stringify(wrong)} came first, and a later answer arrives first`, async () => {
    const all = await startAll(3, bothQuestions);
    const [a, b, c] = all;
    const id = await start(a);
    await until(async () => await listOpen(c, id) === "a,b", "both questions");
    const deliver = delayMessages(a);
    await update(b, id, { a: wrong });
    await update(c, id, { a: answer("Ada") });
    assertEquals(await listOpen(b, id), "b");
    await update(a, id, { a: answer("late"), b: answer("Bo") });
    deliver();
    assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada,Bo");
    await closeAll(all);
  });
}

Deno.test("an answer after an invalid answer is not lost if the task's instance ends before it has read either", async () => {
  const all = await startAll(3, bothQuestions);
  const [a, b, c] = all;
  const id = await start(a);
  await until(async () => await listOpen(c, id) === "a,b", "both questions");
  delayMessages(a);
  await update(b, id, { a: answer(7), b: answer("Bo") });
  await update(c, id, { a: answer("Ada") });
  await update(b, id, { a: answer("late") });
  a.isCut = true;
  assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada,Bo");
  a.isCut = false;
  await closeAll(all);
});

Deno.test("the order in the store counts if messages about answers arrive in another order", async () => {
  const all = await startAll(3, bothQuestions);
  const [a, b, c] = all;
  const id = await start(a);
  await until(async () => await listOpen(c, id) === "a,b", "both questions");
  const { pass, open } = gate();
  b.around = ({ name, run }) => name === "append" ? pass.then(run) : run();
  const updating = update(b, id, { a: answer("Ada") });
  await until(async () => await listOpen(c, id) === "b", "it is stored");
  await update(c, id, { a: answer("late"), b: answer("Bo") });
  assertEquals(textOf(Object((await reach(c, id, "completed")).result)), "Ada,Bo");
  open();
  await updating;
  await closeAll(all);
});

for (const places of ["bb", "cc", "bc", "cb"]) {
  Deno.test(`a valid answer after an invalid answer is kept until the handler asks again (${places})`, async () => {
    const { pass, open } = gate();
    let runs = 0;
    const run: Run = async (ctx) => {
      if (++runs > 1) await pass;
      return String(await elicit(ctx, "name"));
    };
    const shared = memoryStore();
    const [a] = await startAll(1, run, shared);
    const id = await start(a);
    await reach(a, id, "input_required");
    await a.close();
    const [b] = await startAll(1, run, shared);
    await until(() => runs === 2, "the handler runs again");
    const [c] = await startAll(1, run, shared);
    const [first, second] = [...places].map((place) => place === "b" ? b : c);
    await update(first, id, { name: answer(7) });
    await update(second, id, { name: answer("Ada") });
    await update(first, id, { name: answer("late") });
    open();
    assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada");
    await closeAll([b, c]);
  });
}

Deno.test("an instance accepts an answer to a question of the instance that has taken over its task", async () => {
  let runs = 0;
  const run: Run = async (ctx) => String(await elicit(ctx, ++runs === 1 ? "old" : "new"));
  const all = await startAll(2, run);
  const [a, b] = all;
  const id = await start(a);
  await reach(a, id, "input_required");
  a.isCut = true;
  await until(async () => /new/.test(await listOpen(b, id)), "the other instance asks");
  delayMessages(a);
  a.isCut = false;
  await update(a, id, { new: answer("Ada") });
  assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada");
  await closeAll(all);
});

Deno.test("the handler of a cancelled task gets no answer whose write came after the cancellation", async () => {
  const got: unknown[] = [];
  const all = await startAll(2, async (ctx) => void got.push(await elicit(ctx, "name")));
  const [a, b] = all;
  const id = await start(a);
  await reach(b, id, "input_required");
  delayMessages(a);
  const { pass, open } = gate();
  const delayed = a.around;
  let isWriting = false;
  a.around = async (command) => {
    if (isTask(command, id)) {
      isWriting = true;
      await pass;
    }
    return await delayed?.(command);
  };
  const updating = update(a, id, { name: answer("Ada") });
  await until(() => isWriting, "the write of the answer");
  await b.client.request("tasks/cancel", { taskId: id });
  open();
  await updating;
  assertEquals((await a.client.request("tasks/get", { taskId: id })).status, "cancelled");
  assertEquals(got, []);
  await closeAll(all);
});

Deno.test("answers to a question that a further run has withdrawn do not count when a later run asks the question again", async () => {
  const messages = ["Pay 10?", "Pay 20?", "Pay 10?"];
  const shared = memoryStore();
  let runs = 0;
  const run: Run = async (ctx) => String(await elicit(ctx, "pay", messages[runs++]));
  const [a] = await startAll(1, run, shared);
  const id = await start(a);
  await reach(a, id, "input_required");
  await a.close();
  const b = await startInstance(shared, run);
  await until(() => runs === 2, "the handler runs again");
  const c = await startInstance(shared, run);
  await until(async () => await listOpen(b, id) === "pay (2)", "the other question");
  for (const instance of [b, c]) {
    await update(instance, id, { pay: answer("early") });
    await update(instance, id, { pay: answer("earlier") });
  }
  await b.close();
  await until(async () => await listOpen(c, id) === "pay", "the question is open again");
  await update(c, id, { pay: answer("Ada") });
  assertEquals(textOf(Object((await reach(c, id, "completed")).result)), "Ada");
});

Deno.test("a question gets its answer although the check of an answer to another question throws", async () => {
  let isDown = true;
  const name = z.string().refine(() => {
    if (isDown) throw new Error("the directory is down");
    return true;
  });
  const got: unknown[] = [];
  const all = await startAll(2, async (ctx) => {
    const ask = async (key: string, schema: typeof form) =>
      (await ctx.elicit(key, { message: key, schema })).content?.name;
    const first = ask("a", z.object({ name }));
    got.push(await ask("b", form));
    return await first;
  });
  const [a, b] = all;
  const id = await start(a);
  await until(async () => await listOpen(b, id) === "a,b", "both questions");
  await update(b, id, { a: answer("Ada") });
  await update(a, id, { b: answer("Bo") });
  await until(() => got.length === 1, "the answer to the other question");
  isDown = false;
  // A repeated answer is checked again.
  await update(b, id, { a: answer("Ada") });
  assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada");
  assertEquals(got, ["Bo"]);
  await closeAll(all);
});

Deno.test("further answers to a question are limited, and the task's instance removes them when it has a valid answer", async () => {
  const { pass, open } = gate();
  const [a, b] = await startAll(2, async (ctx) => {
    const name = await elicit(ctx, "name");
    await pass;
    return String(name);
  });
  const id = await start(a);
  await reach(b, id, "input_required");
  const deliver = delayMessages(a);
  await update(b, id, { name: answer("Ada") });
  for (let n = 1; n <= 100; n++) await update(b, id, { name: answer(`late ${n}`) });
  await assertRejects(() => update(b, id, { name: answer("late") }), Error, sentence());
  // A repeated answer takes no room.
  await update(b, id, { name: answer("Ada") });
  deliver();
  await until(
    () => update(b, id, { name: answer("late") }).then(() => true, () => false),
    "the task's instance has removed the answers",
  );
  open();
  assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada");
  await closeAll([a, b]);
});
