// A task ends when its time to live is over, also while its handler waits for an answer.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, McpError, type ServerOptions, tool, type ToolReturn } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { advanceUntil, gate, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";
import { openServer } from "../support/servers.ts";
import { get, reach, start, update } from "./requests.ts";

type Run = (ctx: Context) => unknown;

/** Milliseconds after the time to live for which the store keeps a task. */
const GRACE_MS = 60_000;
const TTL_MS = 60_000;
const form = z.object({ name: z.string() });
const elicit: Run = (ctx) => ctx.elicit("who", { message: "Who?", schema: form });
const answer = { who: { action: "accept", content: { name: "Ada" } } };

function serve(run: Run, { options, ...rest }: Partial<ServerOptions> & { readonly options?: TaskOptions } = {}) {
  const faults: FaultEvent[] = [];
  const aborted: unknown[] = [];
  let runs = 0;
  const work = tool({
    name: "work",
    input: z.object({ text: z.string().default("") }),
    use: [task({ ttlMs: TTL_MS, ...options })],
    async run(_input, ctx) {
      runs++;
      ctx.signal.addEventListener("abort", () => aborted.push(ctx.signal.reason.why));
      return await run(ctx) as ToolReturn;
    },
  });
  const server = openServer({
    secret: "a secret of at least thirty-two characters",
    handlers: [tasks(), work],
    observer: { fault: (fault) => void faults.push(fault) },
    ...rest,
  });
  return { server, faults, aborted, count: () => runs };
}

const join = (server: ReturnType<typeof serve>["server"], id: string) =>
  connectTest(server, {
    ...asking,
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    principal: { id },
  });

const QUESTIONS: Readonly<Record<string, { readonly run: Run; readonly options?: TaskOptions }>> = {
  "waits for an elicitation": { run: elicit },
  "waits for sampling": {
    run: (ctx) =>
      ctx.sample("text", { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 1 }),
  },
  "waits for roots": { run: (ctx) => ctx.roots() },
  "waits for two answers": {
    run: (ctx) => Promise.all([elicit(ctx), ctx.elicit("why", { message: "Why?", schema: form })]),
  },
  // The default timeout of calls does not count questions.
  "has the default timeout of calls as its time to live": { run: elicit, options: { ttlMs: 120_000 } },
};

for (const [what, { run, options }] of Object.entries(QUESTIONS)) {
  Deno.test(`a task that ${what} fails when its time to live is over`, async () => {
    const clock = fakeClock();
    const { server, faults, aborted } = serve(run, { clock, options });
    await using ada = await join(server, "ada");
    const before = server.stats().bytes;
    const { ttlMs = TTL_MS } = options ?? {};
    const id = await start(ada, { text: "x".repeat(10_000) });
    await reach(ada, id, "input_required");
    await clock.advance(ttlMs - 1);
    assertEquals([(await get(ada, id)).status, aborted.length, server.stats().detached], ["input_required", 0, 1]);
    await clock.advance(2);
    const { statusMessage, error, inputRequests } = await reach(ada, id, "failed");
    assertEquals([statusMessage, inputRequests], [sentence("ttlMs"), undefined]);
    assertEquals(Object(error).message, statusMessage);
    assertEquals([aborted, server.stats().detached], [["timeout"], 0]);
    // The server ignores answers to a task that has ended.
    await update(ada, id, answer);
    assertEquals((await get(ada, id)).status, "failed");
    await clock.advance(GRACE_MS + 1);
    await assertRejects(() => get(ada, id), McpError, sentence());
    await assertRejects(() => update(ada, id, answer), McpError, sentence());
    assertEquals([server.stats().bytes, faults], [before, []]);
  });
}

Deno.test("answers do not extend the time to live of a task", async () => {
  const clock = fakeClock();
  const { server, aborted } = serve(async (ctx) => {
    await elicit(ctx);
    await new Promise(() => {});
  }, { clock });
  await using ada = await join(server, "ada");
  const id = await start(ada);
  await reach(ada, id, "input_required");
  await clock.advance(TTL_MS - 10);
  await update(ada, id, answer);
  await reach(ada, id, "working");
  await clock.advance(9);
  assertEquals(aborted, []);
  await clock.advance(2);
  await reach(ada, id, "failed");
  assertEquals(aborted, ["timeout"]);
});

Deno.test("the time to live of a task includes the time before the call becomes a task", async () => {
  const clock = fakeClock();
  const { pass, open } = gate();
  const { server, aborted, count } = serve(async (ctx) => {
    await pass;
    await elicit(ctx);
  }, { clock, options: { after: 20_000 } });
  await using ada = await join(server, "ada");
  const starting = start(ada);
  await until(() => count() === 1, "the handler");
  await clock.advance(20_000);
  const id = await starting;
  open();
  await reach(ada, id, "input_required");
  await clock.advance(TTL_MS - 20_001);
  assertEquals(aborted, []);
  await clock.advance(2);
  await reach(ada, id, "failed");
  assertEquals(aborted, ["timeout"]);
});

Deno.test("a client whose tasks wait for answers gives others their place when its tasks expire", async () => {
  const clock = fakeClock();
  const { server } = serve(elicit, { clock, limits: testLimits({ calls: { detached: 4 } }) });
  const clients = await Promise.all(["mallory", "eve", "trudy", "trent"].map((id) => join(server, id)));
  await using ada = await join(server, "ada");
  for (const client of clients) await start(client);
  assertEquals((await assertRejects(() => start(ada), McpError)).code, -31503);
  await clock.advance(TTL_MS + 1);
  assertEquals(server.stats().detached, 0);
  const id = await start(ada);
  await reach(ada, id, "input_required");
  await update(ada, id, answer);
  await reach(ada, id, "completed");
  for (const client of clients) await client.close();
});

Deno.test("a resumed task that waits for an answer fails when its time to live is over", async () => {
  const clock = fakeClock();
  const { connect } = memoryStore({ clock })[INTERNALS];
  const make = () =>
    serve(elicit, {
      clock,
      options: { resume: true },
      store: customStore(connect, { leaseMs: 5000, pollMs: 5000 }),
      limits: { calls: { closeMs: 20 } },
    });
  const first = make();
  const ada = await join(first.server, "ada");
  const begun = clock.date();
  const id = await advanceUntil(clock, 100, start(ada));
  await advanceUntil(clock, 100, reach(ada, id, "input_required"));
  await ada.close();
  await advanceUntil(clock, 500, first.server.close());
  const second = make();
  await second.server.ready();
  await using again = await join(second.server, "ada");
  await until(async () => (await clock.advance(500), second.count() === 1), "the second run");
  await advanceUntil(clock, 100, reach(again, id, "input_required"));
  assertEquals(second.server.stats().detached, 1);
  await clock.advance(begun + TTL_MS - 1 - clock.date());
  assertEquals([(await get(again, id)).status, second.aborted], ["input_required", []]);
  await clock.advance(begun + TTL_MS + 1 - clock.date());
  const { statusMessage } = await advanceUntil(clock, 100, reach(again, id, "failed"));
  assertEquals(statusMessage, sentence("ttlMs"));
  assertEquals([second.aborted.length, second.server.stats().detached], [1, 0]);
  await clock.advance(GRACE_MS + 1);
  await assertRejects(() => advanceUntil(clock, 100, update(again, id, answer)), McpError, sentence());
  assertEquals(second.faults, []);
  await advanceUntil(clock, 500, second.server.close());
});

Deno.test("an answer to a task that the store has already deleted gets the error for an unknown task", async () => {
  const storeClock = fakeClock();
  const clock = fakeClock();
  const { server, faults, aborted } = serve(elicit, { clock, store: memoryStore({ clock: storeClock }) });
  await using ada = await join(server, "ada");
  for (const method of ["tasks/update", "tasks/cancel"] as const) {
    const id = await advanceUntil(storeClock, 1, start(ada));
    await advanceUntil(storeClock, 1, reach(ada, id, "input_required"));
    // The clock of the store runs fast, for example because this computer was suspended.
    await storeClock.advance(TTL_MS + GRACE_MS + 1000);
    const params = { taskId: id, ...method === "tasks/update" && { inputResponses: answer } };
    await assertRejects(() => advanceUntil(storeClock, 1, ada.request(method, params)), McpError, sentence());
    await turn(3);
  }
  assertEquals([aborted.length, server.stats().detached, faults], [2, 0, []]);
});
