// The bytes that tasks store: each client is charged for everything that its tasks leave in the store.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, McpError, type ServerOptions, tool, type ToolReturn } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { advanceUntil, gate, textOf, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";
import { toStoredLog } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { get, reach, start } from "./requests.ts";

type Input = { readonly text: string; readonly count: number };
type Run = (input: Input, ctx: Context) => unknown;

const form = z.object({ text: z.string() });
const LIMITS = { memory: { bytesPerClient: 4_000_000 } };

interface Options extends Partial<ServerOptions> {
  readonly valueBytes?: number;
  readonly ttlMs?: number;
  readonly pollMs?: number;
}

/** Starts an instance with the data of `shared`, or without a store. */
function serve(run: Run, { valueBytes, ttlMs = 600_000, pollMs = 20, ...rest }: Options = {}, shared?: Store) {
  /** Names of the logs to which the instance has written, each with the bytes that it has written. */
  const written = new Map<string, number>();
  const store = shared &&
    customStore(async () =>
      wrapEngine(await shared[INTERNALS].connect(), ({ name, args: [log, value], run }) => {
        if (name === "append") written.set(String(log), (written.get(String(log)) ?? 0) + String(value).length);
        return run();
      }), { leaseMs: 300, pollMs, valueBytes });
  const server = openServer({
    handlers: [
      tasks(),
      tool({
        name: "work",
        input: z.object({ text: z.string().default(""), count: z.number().default(0) }),
        use: [task({ resume: true, ttlMs })],
        run: async (input, ctx) => await run(input, ctx) as ToolReturn,
      }),
    ],
    store,
    ...rest,
    limits: testLimits({ calls: { closeMs: 20 }, ...rest.limits }),
  });
  return { server, written };
}

const join = (server: ReturnType<typeof serve>["server"], id: string) =>
  connectTest(server, { ...asking, principal: { id } });
const answer = async (client: Connection, taskId: string, key: string, text: unknown) =>
  await client.request("tasks/update", { taskId, inputResponses: { [key]: { action: "accept", content: { text } } } });

const ask = (ctx: Context, key: string, message = key) => ctx.elicit(key, { message, schema: form });

/** Asks two questions, so that the first answer stays in the record while the second question is open. */
const askTwice: Run = async (_input, ctx) => {
  await ask(ctx, "first");
  await ask(ctx, "second");
};

const untilAborted = (signal: AbortSignal) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

/** Repeats a request until the server refuses it. Returns the number of accepted requests. */
async function untilFull(run: () => Promise<unknown>): Promise<number> {
  for (let count = 0; count < 500; count++) {
    try {
      await run();
    } catch (error) {
      // The body of a request can be refused too, before its call.
      const isFull = error instanceof McpError &&
        (error.code === -31503 || error.message.includes("memory.bytesPerClient"));
      assert(isFull, `${error}`);
      return count;
    }
  }
  throw new Error("nothing was refused");
}

const journalOf = (id: string) => toStoredLog(`j-${id}`);

async function countEntries(shared: Store, log: string): Promise<number> {
  const engine = await shared[INTERNALS].connect();
  return (await engine.read(log, { after: 0, limit: 10, signal: new AbortController().signal })).entries.length;
}

type Ending = (parts: {
  readonly ada: Connection;
  readonly other: Connection;
  readonly id: string;
  readonly open: () => void;
  readonly crash: () => Promise<void>;
}) => Promise<unknown>;

const ENDINGS: Readonly<Record<string, { readonly status: string; readonly end: Ending; readonly throws?: boolean }>> =
  {
    "has completed": { status: "completed", end: ({ open }) => Promise.resolve(open()) },
    "has failed": { status: "failed", throws: true, end: ({ open }) => Promise.resolve(open()) },
    "was cancelled": { status: "cancelled", end: ({ ada, id }) => ada.request("tasks/cancel", { taskId: id }) },
    "was cancelled on another instance": {
      status: "cancelled",
      end: ({ other, id }) => other.request("tasks/cancel", { taskId: id }),
    },
    "was cancelled between two processes": {
      status: "cancelled",
      async end({ other, id, crash }) {
        await crash();
        await other.request("tasks/cancel", { taskId: id });
      },
    },
  };

for (const [what, { status, end, throws }] of Object.entries(ENDINGS)) {
  Deno.test(`the values that a task has recorded leave the store when the task ${what}`, async () => {
    const shared = memoryStore();
    const { pass, open } = gate();
    const run: Run = async (_input, ctx) => {
      await ctx.once("page", () => "x".repeat(100_000));
      await ctx.progress(1, { message: "recorded" });
      await Promise.race([pass, untilAborted(ctx.signal)]);
      if (throws) throw McpError.invalidParams("no");
    };
    const [a, b] = [serve(run, {}, shared), serve(run, { limits: { calls: { detached: 0 } } }, shared)];
    const ada = await join(a.server, "ada");
    await using other = await join(b.server, "ada");
    const id = await start(ada);
    const log = await journalOf(id);
    await until(() => a.written.has(log), "the value");
    assertEquals(await countEntries(shared, log), 1);
    await end({ ada, other, id, open, crash: () => a.server.close() });
    await reach(other, id, status);
    await until(async () => await countEntries(shared, log) === 0, "the deletion");
    await ada.close();
  });
}

Deno.test("a value that is being recorded when its task is cancelled does not stay in the store", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  const made: string[] = [];
  const run: Run = async (_input, ctx) => {
    await ctx.once("first", () => "first");
    const slow = async () => {
      await pass;
      return "x".repeat(100_000);
    };
    await ctx.once("late", slow).finally(() => made.push("late"));
  };
  const { server, written } = serve(run, {}, shared);
  await using ada = await join(server, "ada");
  const id = await start(ada);
  const log = await journalOf(id);
  await until(() => written.has(log), "the first value");
  await ada.request("tasks/cancel", { taskId: id });
  open();
  await until(() => made.length > 0, "the late value");
  await until(async () => await countEntries(shared, log) === 0, "the deletion");
});

/** Milliseconds by which the expiry of a charge is rounded up. */
const ROUND_MS = 60_000;

for (const ttlMs of [1, 1000, 45_000, 600_000]) {
  for (const ending of ["completed", "failed", "cancelled", "waiting"]) {
    Deno.test(`a ${ending} task with ${ttlMs} ms to live counts as long as the store keeps it`, async () => {
      const clock = fakeClock();
      const run: Run = async ({ text }, ctx) => {
        if (ending === "completed") return text.repeat(10_000);
        if (ending === "failed") throw McpError.invalidParams("no", { text: text.repeat(10_000) });
        await ask(ctx, "sure", text.repeat(10_000));
      };
      const { server } = serve(run, { clock, ttlMs });
      await using eve = await join(server, "eve");
      const before = server.stats().bytes;
      const id = await start(eve, { text: "x" });
      const isWaiting = ["cancelled", "waiting"].includes(ending);
      await reach(eve, id, isWaiting ? "input_required" : ending);
      if (ending === "cancelled") await eve.request("tasks/cancel", { taskId: id });
      const find = async () => await get(eve, id).catch(() => undefined);
      let steps = 0;
      for (let found = await find(); found; found = await find()) {
        const bytes = server.stats().bytes - before;
        assert(bytes >= JSON.stringify(found).length, `${bytes} bytes after ${steps} steps`);
        await clock.advance(5000);
        steps++;
      }
      assert(steps * 5000 >= ttlMs + 60_000, `${steps} steps`);
      await clock.advance(ROUND_MS);
      assertEquals(server.stats().bytes, before);
    });
  }
}

Deno.test("a client cannot fill the store with tasks that expire at once", async () => {
  const clock = fakeClock();
  const { server } = serve(({ text }) => text.repeat(100_000), { clock, ttlMs: 1000, limits: LIMITS });
  await using eve = await join(server, "eve");
  await using ada = await join(server, "ada");
  const begin = async (client: Connection) => {
    const id = await start(client, { text: "x" });
    let found = await get(client, id);
    await until(async () => (found = await get(client, id)).status !== "working", "the end");
    if (found.status === "failed") throw McpError.busy("full");
  };
  const accepted = await untilFull(() => begin(eve));
  assert(accepted >= 5 && accepted <= 20, `${accepted} tasks`);
  for (let i = 0; i < 10; i++) {
    await clock.advance(5000);
    assertEquals(await untilFull(() => begin(eve)), 0);
  }
  await begin(ada);
  await clock.advance(10_000 + ROUND_MS);
  assertEquals(await untilFull(() => begin(eve)), accepted);
});

Deno.test("an answer counts on the instance that has stored it as long as the store keeps it", async () => {
  const shared = memoryStore();
  const clock = fakeClock();
  const options = { clock, ttlMs: 1000, pollMs: 1000 };
  const [a, b] = [serve(askTwice, options, shared), serve(askTwice, options, shared)];
  await using here = await join(a.server, "eve");
  await using there = await join(b.server, "eve");
  const id = await start(here);
  await reach(there, id, "input_required", "first");
  const before = b.server.stats().bytes;
  await answer(there, id, "first", "x".repeat(10_000));
  // The answer is in the record, and in the message to the other instance.
  const both = b.server.stats().bytes - before;
  assert(both >= 40_000, `${both} bytes`);
  await clock.advance(20_000);
  assertEquals(b.server.stats().bytes - before, both);
  await advanceUntil(clock, 1000, Promise.all([a.server.close(), b.server.close()]));
});

Deno.test("a value counts with its key, and with what the store needs for it", async () => {
  const run: Run = async ({ count }, ctx) => {
    for (let i = 0; i < count; i++) await ctx.once(`${i}`, () => 1);
    await ask(ctx, "sure");
  };
  for (const shared of [undefined, memoryStore()]) {
    const { server, written } = serve(run, {}, shared);
    await using eve = await join(server, "eve");
    const sizes = [];
    for (const count of [0, 200]) {
      const before = server.stats().bytes;
      const id = await start(eve, { count });
      await reach(eve, id, "input_required");
      sizes.push(server.stats().bytes - before);
      const bytes = written.get(await journalOf(id));
      if (shared && count) assert(bytes && sizes[1] - sizes[0] >= bytes, `${sizes}`);
    }
    assert(sizes[1] - sizes[0] >= 200 * 200, `${sizes}`);
  }
});

Deno.test("a client whose tasks record large values and end can start further tasks, and so can others", async () => {
  const shared = memoryStore({ bytes: 2_000_000 });
  const run: Run = async ({ text }, ctx) => `${(await ctx.once("page", () => text.repeat(100_000))).length}`;
  const { server } = serve(run, {}, shared);
  await using ada = await join(server, "ada");
  await using bob = await join(server, "bob");
  for (const [client, text] of [...Array.from({ length: 40 }, () => [ada, "x"] as const), [bob, "y"] as const]) {
    const { result } = await reach(client, await start(client, { text }), "completed");
    assertEquals(textOf(Object(result)), "100000");
  }
});

Deno.test("a task without room for a value with maxBytes fails before the value is made", async () => {
  const made: number[] = [];
  const run: Run = async ({ count }, ctx) => {
    await ctx.progress(1, { message: "begun" });
    await ctx.once("page", () => void made.push(count), { maxBytes: count });
  };
  const { server } = serve(run, { limits: LIMITS }, memoryStore());
  await using ada = await join(server, "ada");
  await reach(ada, await start(ada, { count: 500_000 }), "completed");
  const { error } = await reach(ada, await start(ada, { count: 5_000_000 }), "failed");
  assertEquals(Object(error).code, -31503);
  assertEquals(made, [500_000]);
});

Deno.test("a client learns that the store is full, and not that its task is too large", async () => {
  const { server } = serve((_input, { signal }) => untilAborted(signal), {}, memoryStore({ bytes: 300_000 }));
  await using ada = await join(server, "ada");
  await using bob = await join(server, "bob");
  await untilFull(() => start(ada, { text: "x".repeat(10_000) }));
  const error = await assertRejects(() => start(bob, { text: "x".repeat(10_000) }), McpError);
  assertEquals([error.code, error.message], [-31503, sentence("full")]);
});

for (const place of ["the process of the task", "the process of the task without a store", "another process"]) {
  Deno.test(`answers count towards the client's share if ${place} stores them`, async () => {
    const shared = place.includes("without") ? undefined : memoryStore();
    const a = serve(askTwice, { limits: LIMITS }, shared);
    const b = place === "another process" ? serve(askTwice, { limits: LIMITS }, shared) : a;
    await using eve = await join(a.server, "eve");
    await using there = await join(b.server, "eve");
    await using ada = await join(b.server, "ada");
    const begin = async () => {
      const id = await start(eve);
      await reach(eve, id, "input_required", "first");
      return id;
    };
    const own = await start(ada);
    await reach(ada, own, "input_required", "first");
    const ids: string[] = [];
    const accepted = await untilFull(async () => {
      const id = await begin();
      await answer(there, id, "first", "x".repeat(105_000));
      ids.push(id);
    });
    // Each answer takes 210,000 bytes, and as much again for the message to another process.
    assert(accepted >= 5 && accepted <= 20, `${accepted} answers`);
    // Other clients are not refused, and the client's handlers have received the accepted answers.
    await answer(ada, own, "first", "Ada");
    await reach(ada, own, "input_required", "second");
    await reach(eve, ids[0], "input_required", "second");
    if (b === a) {
      // The bytes are released when a task ends.
      for (const id of ids.slice(0, 2)) await eve.request("tasks/cancel", { taskId: id });
      const id = await begin();
      await answer(eve, id, "first", "x".repeat(50_000));
      await reach(eve, id, "input_required", "second");
    }
  });
}

Deno.test("questions and progress messages of a task count towards the client's share", async () => {
  const failed: unknown[] = [];
  const run: Run = async ({ text, count }, ctx) => {
    if (count === 1) await ctx.progress(1, { message: text.repeat(100) });
    await ask(ctx, "sure", count ? "sure" : `Delete ${text.repeat(100)}?`).catch((error) => {
      failed.push(error.code);
      throw error;
    });
  };
  for (const count of [0, 1]) {
    failed.length = 0;
    const { server } = serve(run);
    await using eve = await join(server, "eve");
    await using ada = await join(server, "ada");
    const own = await start(ada, { text: "a", count });
    let kept = 0;
    for (let i = 0; i < 70; i++) {
      const id = await start(eve, { text: "x".repeat(4000), count }).catch((error) =>
        void assertEquals(error.code, -31503)
      );
      if (id === undefined) continue;
      const isOver = ({ status, inputRequests }: { readonly [key: string]: unknown }) =>
        status === "failed" || inputRequests !== undefined;
      let found = await get(eve, id);
      await until(async () => isOver(found = await get(eve, id)), "the question");
      if (JSON.stringify(found).length > 50_000) kept++;
    }
    assert(kept >= 20 && kept <= 50, `${kept} tasks with large texts`);
    if (!count) assert(failed.length > 0 && failed.every((code) => code === -31503), `${failed}`);
    await reach(ada, own, "input_required", "sure");
  }
});

Deno.test("answers that are too large for the store are refused, and shorter answers are accepted", async () => {
  const shared = memoryStore();
  const options = { valueBytes: 50_000 };
  const [a, b] = [serve(askTwice, options, shared), serve(askTwice, options, shared)];
  await using here = await join(a.server, "ada");
  await using there = await join(b.server, "ada");
  for (const client of [here, there]) {
    const id = await start(here);
    await reach(client, id, "input_required", "first");
    const error = await assertRejects(() => answer(client, id, "first", "x".repeat(60_000)), McpError);
    assertEquals([error.code, error.message], [-32602, sentence("too large", "shorter")]);
    await answer(client, id, "first", "short");
    await reach(client, id, "input_required", "second");
  }
});

Deno.test("repeated answers that one process sends to another count towards the client's share", async () => {
  const shared = memoryStore();
  const [a, b] = [serve(askTwice, { limits: LIMITS }, shared), serve(askTwice, { limits: LIMITS }, shared)];
  await using eve = await join(a.server, "eve");
  await using there = await join(b.server, "eve");
  await using ada = await join(b.server, "ada");
  const [id, own] = [await start(eve), await start(ada)];
  for (const [client, each] of [[there, id], [ada, own]] as const) {
    await reach(client, each, "input_required", "first");
    await answer(client, each, "first", "stored");
    await reach(client, each, "input_required", "second");
  }
  const accepted = await untilFull(() => answer(there, id, "first", "y".repeat(100_000)));
  assert(accepted >= 5 && accepted <= 20, `${accepted} answers`);
  const sent = [...b.written.values()].reduce((sum, bytes) => sum + bytes, 0);
  assert(sent < 4_000_000, `${sent} bytes`);
  await answer(ada, own, "first", "again");
  await answer(ada, own, "second", "stored");
  await reach(ada, own, "completed");
});
