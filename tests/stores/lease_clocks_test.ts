// A process relies on its lease only if both its clocks and the store allow it, and another process takes over only work
// whose lease stays away.
import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { type Context, McpError, type Server, tool, type ToolReturn } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { gate, textOf, turn, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "../tasks/declared.ts";
import { openServer } from "../support/servers.ts";

const LEASE_MS = 5000;
const HOUR_MS = 3_600_000;

/** A clock that shows the time of another clock, with errors. */
interface WrongClock extends FakeClock {
  /** Milliseconds by which the wall clock was set forward. */
  ahead: number;
  /** Milliseconds that the monotonic clock has not counted, because the machine was suspended. */
  asleep: number;
}

function wrongClock(right: FakeClock): WrongClock {
  return {
    ...right,
    ahead: 0,
    asleep: 0,
    now() {
      return right.now() - this.asleep;
    },
    date() {
      return right.date() + this.ahead;
    },
  };
}

/** A store whose commands run through `around`. */
interface Around {
  around: (command: Command) => unknown;
}

function openAround(shared: Store): { readonly store: Store; readonly command: Around } {
  const command: Around = { around: ({ run }) => run() };
  const store = customStore(
    async (options) => wrapEngine(await shared[INTERNALS].connect(options), (each) => command.around(each)),
    { leaseMs: LEASE_MS, timeoutMs: 20_000, pollMs: 20 },
  );
  return { store, command };
}

/** Opens a store that follows a clock. */
async function openWith(clock: FakeClock, shared: Store) {
  const opened = openAround(shared);
  const server = openServer({ clock, store: opened.store, handlers: [] });
  await server.ready();
  return { ...opened, lease: opened.store.lease, close: () => server.close() };
}

const changes: Readonly<Record<string, (clock: WrongClock) => void>> = {
  "the wall clock was set forward": (clock) => clock.ahead += LEASE_MS,
  "the wall clock was set back": (clock) => clock.ahead -= HOUR_MS,
};

for (const [what, change] of Object.entries(changes)) {
  Deno.test(`if ${what}, the term of the lease changes, and the store has the lease again`, async () => {
    const right = fakeClock();
    const clock = wrongClock(right);
    const shared = memoryStore({ clock: right });
    const { lease, close } = await openWith(clock, shared);
    await lease.hold();
    const term = await lease.confirm();
    change(clock);
    assert(lease.heldUntil <= clock.now());
    await shared.delete(lease.id);
    assertNotEquals(await lease.confirm(), term);
    assert(await shared.get(lease.id));
    assert(lease.heldUntil > clock.now());
    const next = await lease.confirm();
    assertEquals(await lease.confirm(), next);
    await close();
  });
}

Deno.test("a renewal that finds no lease in the store changes the term", async () => {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const { lease, close } = await openWith(clock, shared);
  await lease.hold();
  const term = await lease.confirm();
  await clock.advance(LEASE_MS);
  assertEquals(await lease.confirm(), term);
  await shared.delete(lease.id);
  await clock.advance(LEASE_MS / 3 + 1);
  assertEquals([await shared.get(lease.id) !== undefined, await lease.confirm()], [true, term + 1]);
  await close();
});

Deno.test("a process counts as ended when checks over two fifths of its lease have found no lease", async () => {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const [a, b] = [await openWith(clock, shared), await openWith(clock, shared)];
  await a.lease.hold();
  const isHeld = async () => await b.lease.isHeld(a.lease.id);
  assertEquals(await isHeld(), true);
  await shared.delete(a.lease.id);
  assertEquals([await isHeld(), await isHeld()], [true, true]);
  await clock.advance(0.4 * LEASE_MS - 1);
  // The process has renewed its lease.
  assertEquals([await shared.get(a.lease.id) !== undefined, await isHeld()], [true, true]);
  a.command.around = () => {
    throw new Error("no route to the store");
  };
  await shared.delete(a.lease.id);
  assertEquals(await isHeld(), true);
  await clock.advance(0.4 * LEASE_MS - 1);
  assertEquals(await isHeld(), true);
  await clock.advance(1);
  assertEquals(await isHeld(), false);
});

Deno.test("a lease that is not renewed counts as ended, even if the clock of the store was set back", async () => {
  const clock = wrongClock(fakeClock());
  const folder = mkdtempSync(`${tmpdir()}/lease-`);
  const shared = sqliteStore(() => new DatabaseSync(`${folder}/store.db`));
  const [a, b] = [await openWith(clock, shared), await openWith(clock, shared)];
  await a.lease.hold();
  const isHeld = async () => await b.lease.isHeld(a.lease.id);
  for (let i = 0; i < 10; i++) {
    await clock.advance(LEASE_MS);
    assertEquals(await isHeld(), true);
  }
  a.command.around = () => {
    throw new Error("the process has ended");
  };
  clock.ahead -= HOUR_MS;
  assertEquals(await isHeld(), true);
  await clock.advance(2 * LEASE_MS - 1);
  assertEquals(await isHeld(), true);
  await clock.advance(1);
  assertEquals([await b.store.get(a.lease.id) !== undefined, await isHeld()], [true, false]);
  await a.close();
  await b.close();
  rmSync(folder, { recursive: true });
});

/** An instance of a server, with the tools `task` and `key`. */
interface Instance {
  readonly server: Server;
  readonly client: Connection;
  readonly store: Store;
  readonly command: Around;
}

async function startInstance(
  { clock, shared, run }: {
    readonly clock: FakeClock;
    readonly shared: Store;
    readonly run: (ctx: Context) => unknown;
  },
): Promise<Instance> {
  const { store, command } = openAround(shared);
  const work = async (_input: unknown, ctx: Context) => await run(ctx) as ToolReturn;
  const server = openServer({
    clock,
    store,
    handlers: [
      tasks(),
      tool({ name: "task", use: [task({ resume: true })], run: work }),
      tool({ name: "key", use: [idempotent({ key: () => "key", rerun: true })], run: work }),
    ],
    limits: { calls: { closeMs: 20 } },
    observer: { store() {}, fault() {} },
  });
  await server.ready();
  return { server, store, command, client: await connectTest(server, { ...asking, principal: { id: "ada" } }) };
}

async function close(...instances: readonly Instance[]): Promise<void> {
  for (const { client, server } of instances) {
    await client.close();
    await server.close();
  }
}

const isLeaseOf = ({ store }: Instance, { name, args: [key] }: Command) => name === "set" && key === store.lease.id;

/** Prevents an instance from renewing its lease until the returned function is called. */
function blockRenewals(instance: Instance): () => void {
  instance.command.around = (command) => {
    if (isLeaseOf(instance, command)) throw new Error("no route to the store");
    return command.run();
  };
  return () => instance.command.around = ({ run }) => run();
}

/** Counts the checks of the lease of an instance by another instance. */
function countChecks(of: Instance, by: Instance): () => number {
  let checks = 0;
  by.command.around = ({ name, args: [key], run }) => {
    if (name === "get" && key === of.store.lease.id) checks++;
    return run();
  };
  return () => checks;
}

const startTask = async ({ client }: Instance) =>
  String((await client.request("tools/call", { name: "task", arguments: {} }, { finish: false })).taskId);
const hasEnded = async ({ client }: Instance, taskId: string) =>
  (await client.request("tasks/get", { taskId })).status === "completed";

Deno.test("if the wall clock is set forward, a living process keeps its tasks", async () => {
  const clock = wrongClock(fakeClock());
  const folder = mkdtempSync(`${tmpdir()}/lease-`);
  const shared = sqliteStore(() => new DatabaseSync(`${folder}/store.db`));
  const made: string[] = [];
  const runs: string[] = [];
  const { pass, open } = gate();
  const run = (name: string) => async (ctx: Context) => {
    runs.push(name);
    await pass;
    return await ctx.once("charge", () => (made.push(name), name));
  };
  const a = await startInstance({ clock, shared, run: run("a") });
  const b = await startInstance({ clock, shared, run: run("b") });
  const id = await startTask(a);
  await until(() => runs.length === 1, "the handler");
  const checks = countChecks(a, b);
  const unblock = blockRenewals(a);
  clock.ahead += 30_000;
  await until(async () => {
    await clock.advance(10);
    return checks() >= 1;
  }, "a check without a lease");
  await turn(20);
  unblock();
  open();
  await until(async () => {
    await clock.advance(10);
    return await hasEnded(b, id);
  }, "the end of the task");
  await clock.advance(2 * LEASE_MS);
  assertEquals([runs, made], [["a"], ["a"]]);
  await close(a, b);
  rmSync(folder, { recursive: true });
});

Deno.test("after a suspension that the monotonic clock has not counted, a process does not start once again", async () => {
  const right = fakeClock();
  const clock = wrongClock(right);
  const shared = memoryStore({ clock: right });
  const made: string[] = [];
  const runs: string[] = [];
  const errors: string[] = [];
  const { pass, open } = gate();
  const run = (name: string) => async (ctx: Context) => {
    runs.push(name);
    if (name === "a") await pass;
    const done = await ctx.once("charge", () => (made.push(name), name)).catch((error: Error) => `${error}`);
    if (done !== name) errors.push(String(done));
    return name;
  };
  const a = await startInstance({ clock, shared, run: run("a") });
  const b = await startInstance({ clock: right, shared, run: run("b") });
  const id = await startTask(a);
  await until(() => runs.length === 1, "the handler");
  const unblock = blockRenewals(a);
  const suspended = right.now();
  await until(async () => {
    await right.advance(100);
    clock.asleep = right.now() - suspended;
    return await hasEnded(b, id);
  }, "the other process has finished the task");
  assertEquals([runs, made], [["a", "b"], ["b"]]);
  unblock();
  open();
  await until(() => errors.length === 1, "the first process has noticed it");
  assertEquals(made, ["b"]);
  await close(a, b);
});

Deno.test("if the wall clock is set forward, a living process keeps its idempotency keys", async () => {
  const clock = wrongClock(fakeClock());
  const folder = mkdtempSync(`${tmpdir()}/lease-`);
  const shared = sqliteStore(() => new DatabaseSync(`${folder}/store.db`));
  const runs: string[] = [];
  const { pass, open } = gate();
  const run = (name: string) => async () => {
    runs.push(name);
    await pass;
    return name;
  };
  const a = await startInstance({ clock, shared, run: run("a") });
  const b = await startInstance({ clock, shared, run: run("b") });
  const first = a.client.callTool("key");
  await until(() => runs.length === 1, "the handler");
  const checks = countChecks(a, b);
  const unblock = blockRenewals(a);
  clock.ahead += 30_000;
  const second = b.client.callTool("key");
  await until(() => checks() >= 1, "a check without a lease");
  await turn(20);
  unblock();
  await clock.advance(LEASE_MS);
  open();
  assertEquals(textOf(await first), "a");
  await clock.advance(LEASE_MS);
  assertEquals([textOf(await second), runs], ["a", ["a"]]);
  await close(a, b);
  rmSync(folder, { recursive: true });
});

Deno.test("after a suspension, a handler does not start for a key that another process has taken over", async () => {
  const right = fakeClock();
  const clock = wrongClock(right);
  const shared = memoryStore({ clock: right });
  const runs: string[] = [];
  const run = (name: string) => () => (runs.push(name), name);
  const a = await startInstance({ clock, shared, run: run("a") });
  const b = await startInstance({ clock: right, shared, run: run("b") });
  const { pass, open } = gate();
  let isClaimed = false;
  a.command.around = async (command) => {
    const done = await command.run();
    if (command.name !== "set" || isLeaseOf(a, command) || isClaimed) return done;
    isClaimed = true;
    await pass;
    return done;
  };
  const first = assertRejects(() => a.client.callTool("key"), McpError, sentence("key", "lease"));
  await until(() => isClaimed, "the key is claimed");
  const unblock = blockRenewals(a);
  const suspended = right.now();
  const second = b.client.callTool("key");
  await until(async () => {
    await right.advance(100);
    clock.asleep = right.now() - suspended;
    return runs.length === 1;
  }, "the other process has run the handler");
  assertEquals(textOf(await second), "b");
  unblock();
  open();
  assertEquals((await first).code, -31503);
  assertEquals(runs, ["b"]);
  await close(a, b);
});
