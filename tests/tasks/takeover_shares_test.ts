// A process that takes over the tasks of several clients. A client that has no room in the process delays no other client.
import { assert, assertEquals } from "@std/assert";
import { type Context, type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest, type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, gate, until as untilMet } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { testLimits } from "../support/limits.ts";
import { type Answer, ask } from "../support/requests.ts";
import { declared, ID } from "./declared.ts";
import { toStoredKey } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";

/** Milliseconds by which a waiting test advances the clock at a time. */
const STEP_MS = 10;

/**
 * Creates a store whose leases run on a fake clock, so that no lease of a living process expires on a busy machine.
 * Returns a function that creates instances with this store, and functions that wait while the clock advances.
 */
function share() {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  return {
    serve: (options: Options = {}) => serve({ shared, clock }, options),
    until: (condition: () => unknown, what: string) =>
      untilMet(async () => (await clock.advance(STEP_MS), await condition()), what),
    close: (...instances: readonly { readonly server: Server }[]) =>
      advanceUntil(clock, STEP_MS, Promise.all(instances.map(({ server }) => server.close()))),
  };
}

interface Options {
  readonly detached?: number;
  readonly decide?: () => Promise<true>;
}

/** An instance whose handlers run until the gate is open. */
function serve(
  { shared, clock }: { readonly shared: Store; readonly clock: FakeClock },
  { detached = 16, decide }: Options,
) {
  const ran: string[] = [];
  const operations: string[] = [];
  const { pass, open } = gate();
  const run = (name: string) => async (_input: unknown, ctx: Context) => {
    ran.push(`${ctx.principal?.id} ${name}`);
    const { promise, reject } = Promise.withResolvers<never>();
    ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
    await Promise.race([pass, promise]);
    return "done";
  };
  const resuming = task({ resume: true });
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), ({ name, args: [key], run }) => {
      operations.push(`${name} ${key}`);
      return run();
    }), { leaseMs: 300, pollMs: 20 });
  const server = openServer({
    handlers: [
      tasks(),
      tool({ name: "work", use: [resuming], run: run("work") }),
      tool({ name: "decided", allow: () => decide?.() ?? true, use: [resuming], run: run("decided") }),
      tool({ name: "quick", use: [resuming], run: () => "done" }),
      tool({ name: "narrow", use: [resuming, quota({ concurrency: { calls: 1, waiting: 4 } })], run: run("narrow") }),
      tool({
        name: "rated",
        use: [resuming, quota({ rate: { calls: 2, perMs: 3_600_000 }, shared: true })],
        run: run("rated"),
      }),
    ],
    clock,
    store,
    limits: testLimits({ calls: { closeMs: 20, detached } }),
  });
  /** Starts tasks of a client. Returns the ids. */
  const begin = async (id: string, ...names: string[]) => {
    await using client = await connectTest(server, { ...declared, principal: { id } });
    const ids = [];
    for (const name of names) {
      ids.push(String((await client.request("tools/call", { name, arguments: {} }, { finish: false })).taskId));
    }
    return ids;
  };
  const statusOf = async (id: string, taskId: string) => {
    await using client = await connectTest(server, { ...declared, principal: { id } });
    return (await client.request("tasks/get", { taskId })).status;
  };
  /** Starts tasks of a caller without a principal, who has an address or not. Returns the answers. */
  const beginFrom = async (hostname: string | undefined, count: number) => {
    const info = hostname === undefined ? undefined : { remoteAddr: { hostname } };
    const target = { fetch: (request: Request) => server.fetch(request, info) };
    const answers: Answer[] = [];
    for (let i = 0; i < count; i++) {
      answers.push(await ask(target, "tools/call", { name: "work", arguments: {}, _meta: META }));
    }
    return answers;
  };
  /** Makes calls of a client that wait until the gate is open. */
  const fill = async (id: string, ...names: string[]) => {
    const client = await connectTest(server, { ...declared, principal: { id } });
    const calls = names.map((name) => client.request("tools/call", { name, arguments: {} }, { finish: false }));
    await client.listTools();
    return async () => {
      await Promise.all(calls);
      await client.close();
    };
  };
  /** The number of times this instance has written the task's record. */
  const countWrites = (taskId: string) =>
    operations.filter((each) => /^set /.test(each) && each.endsWith(toStoredKey(taskId))).length;
  /** The number of times this instance has searched for tasks. */
  const countSearches = () => operations.filter((each) => /^list .*i-$/.test(each)).length;
  return { server, ran, operations, begin, beginFrom, fill, statusOf, countWrites, countSearches, open };
}

const META = { "io.modelcontextprotocol/clientCapabilities": { extensions: { [ID]: {} } } };

for (
  const { what, filling, leaving, fits } of [
    // A client may have a quarter of 16 detached calls.
    {
      what: "its share of detached calls",
      filling: ["work", "work", "work", "work"],
      leaving: ["work", "narrow", "work"],
    },
    // A client may have a quarter of the four places in the queue of a tool.
    {
      what: "its share of a tool's queue",
      filling: ["narrow", "narrow"],
      leaving: ["narrow", "work"],
      fits: "eve work",
    },
  ]
) {
  Deno.test(`a client that has used up ${what} does not stop the takeover of other clients' tasks`, async () => {
    const { serve, until, close } = share();
    const [survivor, first, second] = [serve(), serve(), serve()];
    const end = await survivor.fill("eve", ...filling);
    await until(() => survivor.ran.length > 0, "the first handler");
    const left = await first.begin("eve", ...leaving);
    await close(first);
    // The survivor has taken over a task of this client, and has released the task again.
    await until(() => left.some((id) => survivor.countWrites(id) >= 2), "a refusal");
    const ids = [...await second.begin("ada", "work", "work"), ...await second.begin("bob", "work")];
    await close(second);
    const ranOf = (...clients: string[]) => survivor.ran.filter((each) => clients.includes(each.split(" ")[0])).sort();
    const searches = survivor.countSearches();
    await until(() => ranOf("ada", "bob").length === 3, "the tasks of the other clients");
    assert(survivor.countSearches() - searches < 10, "the tasks of the other clients were taken over late");
    assertEquals(ranOf("ada", "bob"), ["ada work", "ada work", "bob work"]);
    // The client's tasks of other tools continue.
    if (fits) await until(() => survivor.ran.includes(fits), "the task of another tool");
    survivor.open();
    for (const id of ids) {
      const owner = id === ids[2] ? "bob" : "ada";
      await until(async () => await survivor.statusOf(owner, id) === "completed", "the end");
    }
    for (const id of left) await until(async () => await survivor.statusOf("eve", id) === "completed", "the end");
    await end();
    await close(survivor);
  });
}

Deno.test("tasks that a process takes over count towards the share of their client while allow decides", async () => {
  const { serve, until, close } = share();
  const first = serve({ detached: 64 });
  await first.begin("eve", ...Array<string>(12).fill("decided"));
  await close(first);
  const { pass, open } = gate();
  let deciding = 0;
  const decide = async (): Promise<true> => {
    deciding++;
    await pass;
    return true;
  };
  const survivor = serve({ decide });
  await survivor.server.ready();
  await until(() => deciding > 0, "the first task");
  const searches = survivor.countSearches();
  await until(() => survivor.countSearches() > searches + 1, "further searches");
  assertEquals([deciding, survivor.server.stats().detached], [4, 4]);
  open();
  await until(() => survivor.ran.length === 4, "the handlers");
  survivor.open();
  await until(() => survivor.ran.length === 12, "all tasks");
  await close(survivor);
});

for (
  const { caller, hostname, other } of [
    { caller: "an address without a principal", hostname: "203.0.113.9", other: "198.51.100.7" },
    { caller: "all callers without a principal and an address together", hostname: undefined, other: "203.0.113.9" },
  ]
) {
  Deno.test(`a process takes over no more tasks of ${caller} than the share of one client`, async () => {
    const { serve, until, close } = share();
    const survivor = serve();
    await survivor.server.ready();
    const others = [serve(), serve(), serve()];
    for (const { beginFrom } of others) {
      for (const { result } of await beginFrom(hostname, 4)) assertEquals(result?.resultType, "task");
    }
    await close(...others);
    // A client may have a quarter of 16 detached calls.
    await until(() => survivor.ran.length >= 4, "the first tasks");
    const searches = survivor.countSearches();
    await until(() => survivor.countSearches() > searches + 3, "some searches");
    assertEquals(survivor.ran.length, 4);
    const [answer] = await survivor.beginFrom(other, 1);
    assertEquals(answer.result?.resultType, "task");
    if (hostname !== undefined) {
      // New tasks of the caller count towards the same share.
      const [{ error }] = await survivor.beginFrom(hostname, 1);
      assertEquals(error?.code, -31503);
    }
    survivor.open();
    // The handler of a refused task has run, too.
    await until(() => survivor.ran.length >= 13, "the other tasks");
    await close(survivor);
  });
}

Deno.test("a process without room for many clients' tasks tries a few tasks per search, and all of them in turn", async () => {
  const { serve, until, close } = share();
  const survivor = serve({ detached: 4 });
  await survivor.server.ready();
  const other = serve({ detached: 400 });
  const ids = new Map<string, string>();
  for (let i = 0; i < 40; i++) ids.set(`client ${i}`, (await other.begin(`client ${i}`, "work"))[0]);
  await close(other);
  const isTried = (id: string) => survivor.countWrites(id) > 0;
  const { countSearches } = survivor;
  const countAll = () => [...ids.values()].reduce((sum, id) => sum + survivor.countWrites(id), 0);
  await until(() => survivor.ran.length === 4, "the first tasks");
  const [searches, writes] = [countSearches(), countAll()];
  await until(() => [...ids.values()].every(isTried), "each task");
  const [tried, written] = [countSearches() - searches, countAll() - writes];
  // Each refused task is written twice.
  assert(written <= (tried + 1) * 24, `${written} writes in ${tried} searches`);
  assertEquals(survivor.ran.length, 4);
  survivor.open();
  for (const [owner, id] of ids) {
    await until(async () => await survivor.statusOf(owner, id) === "completed", "the end");
  }
  await close(survivor);
});

Deno.test("while tasks wait for room, a search does not read the ended tasks of their process again", async () => {
  const { serve, until, close } = share();
  const [survivor, other] = [serve(), serve({ detached: 64 })];
  // The client uses up its share of the survivor.
  const end = await survivor.fill("eve", "work", "work", "work", "work");
  await until(() => survivor.ran.length === 4, "the first handlers");
  const ended = await other.begin("eve", "quick", "quick", "quick");
  for (const id of ended) await until(async () => await other.statusOf("eve", id) === "completed", "the end");
  const waiting = await other.begin("eve", ...Array(8).fill("work"));
  await close(other);
  const prefix = waiting[0].slice(0, 8);
  const count = (name: string, key: string) =>
    survivor.operations.filter((each) => each.startsWith(`${name} `) && each.includes(toStoredKey(key))).length;
  await until(() => waiting.some((id) => survivor.countWrites(id) >= 2), "a refusal");
  const searches = survivor.countSearches();
  await until(() => survivor.countSearches() > searches + 5, "further searches");
  assert(count("list", `-t-${prefix}`) <= 1, "the tasks were listed again");
  assertEquals(ended.map((id) => count("get", id)), [0, 0, 0]);
  survivor.open();
  for (const id of waiting) await until(async () => await survivor.statusOf("eve", id) === "completed", "the end");
  // Nobody is responsible for the tasks of the closed process any more.
  await until(() => count("delete", `-i-${prefix}`) > 0, "the deletion of the entry");
  await end();
  await close(survivor);
});

Deno.test("a task that continues does not count as another call of its client's rate", async () => {
  const { serve, until, close } = share();
  const [survivor, other] = [serve(), serve()];
  await survivor.server.ready();
  const ids = await other.begin("ada", "rated", "rated");
  await close(other);
  await until(() => survivor.ran.length === 2, "both tasks");
  survivor.open();
  for (const id of ids) await until(async () => await survivor.statusOf("ada", id) === "completed", "the end");
  await close(survivor);
});
