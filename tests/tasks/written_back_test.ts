// Somebody who can write to the store, but does not know the secret, puts old data of a task back. The task does not run
// again, because its consent was for one run.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, McpError, type ServerOptions, tool, type ToolReturn } from "../../mod.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { advanceUntil, gate, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";
import { openShared, toStoredKey, toStoredLog } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { closeAtEnd } from "../support/running.ts";
import { reach, start, untilAborted } from "./requests.ts";

const form = z.object({ name: z.string() });
const YEAR_MS = 31_536_000_000;

type Run = (ctx: Context) => unknown;

async function startInstance(
  shared: Store,
  run: Run,
  { options, ...rest }: Partial<ServerOptions> & { readonly options?: TaskOptions } = {},
) {
  const jobs = tasks();
  const work = tool({
    name: "work",
    use: [task({ resume: true, ...options })],
    run: async (_input: unknown, ctx: Context) => await run(ctx) as ToolReturn,
  });
  const server = openServer({
    handlers: [jobs, work],
    store: openShared(shared),
    limits: { calls: { closeMs: 20 } },
    ...rest,
  });
  await server.ready();
  const client = closeAtEnd(await connectTest(server, { ...asking, principal: { id: "ada" } }));
  return {
    jobs,
    client,
    async close() {
      await client.close();
      await server.close();
    },
  };
}

/** The values in a store. Names of values contain the kind of data: `-t-` a task, `-i-` its process, `-e-` an end. */
async function copy(shared: Store): Promise<ReadonlyMap<string, string>> {
  const values = await shared.list("", { limit: 1000 });
  return new Map(values.map(({ key, value }) => [key, value]));
}

/** Puts the tasks and processes of a copy back. */
async function putBack(shared: Store, values: ReadonlyMap<string, string>): Promise<void> {
  for (const [key, value] of values) {
    if (/-[ti]-/.test(key)) await shared.set(key, value, { ttlMs: YEAR_MS });
  }
}

/** Waits until an instance has looked for tasks at least once. */
async function untilSearched(client: Connection): Promise<void> {
  const id = await start(client);
  await client.request("tasks/cancel", { taskId: id });
}

/** A handler that asks for consent, and then counts a payment in each run. */
function paying() {
  let paid = 0;
  const { pass, open } = gate();
  const run: Run = async (ctx) => {
    const { action } = await ctx.elicit("sure", { message: "Pay 10?", schema: form });
    await Promise.race([pass, untilAborted(ctx)]);
    paid++;
    return action;
  };
  return { run, open, count: () => paid };
}

const accept = { sure: { action: "accept", content: { name: "Ada" } } };

/** Begins a task and answers its question. Returns a copy of the store in which the task has consent, and runs. */
async function consent(shared: Store, { client }: Awaited<ReturnType<typeof startInstance>>) {
  const id = await start(client);
  await reach(client, id, "input_required");
  await client.request("tasks/update", { taskId: id, inputResponses: accept });
  await reach(client, id, "working");
  return { id, before: await copy(shared) };
}

Deno.test("a completed task whose record is put back does not run again", async () => {
  const shared = memoryStore();
  const { run, open, count } = paying();
  const first = await startInstance(shared, run);
  const { id, before } = await consent(shared, first);
  open();
  await reach(first.client, id, "completed");
  await first.close();
  await putBack(shared, before);
  const second = await startInstance(shared, run);
  assertEquals((await reach(second.client, id, "failed")).statusMessage, sentence());
  assertEquals(count(), 1);
});

Deno.test("a task that was cancelled on another instance does not run again when its record is put back", async () => {
  const shared = memoryStore();
  const { run, open, count } = paying();
  const first = await startInstance(shared, run);
  const other = await startInstance(shared, run);
  const { id, before } = await consent(shared, first);
  await other.client.request("tasks/cancel", { taskId: id });
  await reach(first.client, id, "cancelled");
  await first.close();
  await other.close();
  await putBack(shared, before);
  const second = await startInstance(shared, run);
  open();
  await reach(second.client, id, "failed");
  assertEquals(count(), 0);
});

Deno.test("a task that failed because its process had ended does not run again when its record is put back", async () => {
  const shared = memoryStore();
  const { run, open, count } = paying();
  const first = await startInstance(shared, run);
  const { id, before } = await consent(shared, first);
  await first.close();
  // This version of the tool cannot continue the task.
  const second = await startInstance(shared, run, { options: { version: "2" } });
  await reach(second.client, id, "failed");
  await second.close();
  await putBack(shared, before);
  const third = await startInstance(shared, run);
  open();
  await reach(third.client, id, "failed");
  assertEquals(count(), 0);
});

Deno.test("a record is never taken over after its time to live, even if nothing says that its task has ended", async () => {
  for (const [past, status] of [[59_000, "completed"], [60_001, "failed"], [200_000, undefined]] as const) {
    const shared = memoryStore();
    const { run, open, count } = paying();
    const clock = fakeClock();
    const options = { clock, options: { ttlMs: 60_000 } };
    const first = await startInstance(shared, run, options);
    const begun = clock.date();
    const { id, before } = await consent(shared, first);
    await advanceUntil(clock, 50, first.close());
    await putBack(shared, before);
    const later = fakeClock(begun + past);
    const second = await startInstance(shared, run, { ...options, clock: later });
    open();
    if (status) {
      await until(async () => (await second.jobs.get(id))?.status === status, status);
    } else {
      await untilSearched(second.client);
      await assertRejects(() => second.client.request("tasks/get", { taskId: id }), McpError, sentence());
      assertEquals(await Array.fromAsync(second.jobs.list()).then((all) => all.some((each) => each.id === id)), false);
    }
    assertEquals(count(), status === "completed" ? 1 : 0, `${past} ms later`);
    await advanceUntil(later, 50, second.close());
  }
});

Deno.test("an ended task whose record is put back does not run again on an instance whose clock is slow", async () => {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const { run, open, count } = paying();
  const options = { options: { ttlMs: 60_000 } };
  const first = await startInstance(shared, run, { ...options, clock });
  const begun = clock.date();
  const { id, before } = await consent(shared, first);
  open();
  await reach(first.client, id, "completed");
  await advanceUntil(clock, 50, first.close());
  await clock.advance(600_000);
  await putBack(shared, before);
  const slow = fakeClock(begun + 50_000);
  const second = await startInstance(shared, run, { ...options, clock: slow });
  let found = await second.jobs.get(id);
  await until(async () => {
    await slow.advance(50);
    return (found = await second.jobs.get(id))?.status !== "working";
  }, "the task has ended");
  assertEquals([found?.status, count()], ["failed", 1]);
  await advanceUntil(slow, 50, second.close());
});

Deno.test("the store does not show which record of an end belongs to a task", async () => {
  const shared = memoryStore();
  const first = await startInstance(shared, () => "done");
  const id = await start(first.client);
  await reach(first.client, id, "completed");
  const isEnd = (key: string) => /-e-/.test(key);
  await until(async () => [...(await copy(shared)).keys()].some(isEnd), "the record of the end");
  for (const key of (await copy(shared)).keys()) if (isEnd(key)) assertEquals(key.includes(toStoredKey(id)), false);
});

Deno.test("a task without `resume` needs no record of its end", async () => {
  const shared = memoryStore();
  const first = await startInstance(shared, () => "done", { options: { resume: false } });
  await reach(first.client, await start(first.client), "completed");
  await first.close();
  assertEquals([...(await copy(shared)).keys()].filter((key) => /-e-/.test(key)), []);
});

Deno.test("a task does not resume if a value of ctx.once cannot be opened, because its work would run again", async () => {
  for (const isLast of [true, false]) {
    const shared = memoryStore();
    let runs = 0;
    const run: Run = async (ctx) => {
      runs++;
      await ctx.once("first", () => "paid");
      if (!isLast) await ctx.once("second", () => "paid");
      await ctx.progress(1, { message: "paid" });
      await untilAborted(ctx);
    };
    const first = await startInstance(shared, run);
    const id = await start(first.client);
    const log = await toStoredLog(`j-${id}`);
    const forge = () => shared.append(log, "forged", { ttlMs: YEAR_MS, max: 10 });
    // An entry before the second value.
    if (!isLast) await forge();
    await until(async () => (await shared.read(log, { limit: 10 })).last >= (isLast ? 1 : 2), "the values");
    if (isLast) await forge();
    await first.close();
    const second = await startInstance(shared, run);
    assertEquals((await reach(second.client, id, "failed")).statusMessage, sentence("ctx.once"));
    assertEquals(runs, 1);
  }
});
