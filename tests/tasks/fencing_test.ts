// A process that may have lost its lease starts nothing that another process may start too: no `once` function, no
// question and no second run of a task.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { tasks } from "../../src/extensions/tasks/tasks.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { gate, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { type Instance, isTask, reach, type Run, start, startInstance } from "./instance.ts";
import { toStoredLog } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";

const isLeaseOf = ({ store }: Instance, { args: [key] }: Command) => key === store.lease.id;

Deno.test("after another process has taken over a task, its first process starts neither once nor a question", async () => {
  const shared = memoryStore();
  const made: string[] = [];
  const errors: string[] = [];
  const { pass, open } = gate();
  let isStored = false;
  const run = (name: string): Run => async (ctx) => {
    await ctx.once("first", () => made.push(`${name} first`));
    isStored = true;
    if (name === "a") await pass;
    const steps = [
      () => ctx.once("charge", () => made.push(`${name} charge`)),
      () => ctx.elicit("sure", { message: "?", schema: z.object({}) }),
    ];
    // The handler ignores its signal, and the failure of a step.
    for (const step of name === "a" ? steps : steps.slice(0, 1)) {
      await step().catch((error: Error) => errors.push(error.message));
    }
    return name;
  };
  const [a, b] = [await startInstance(shared, run("a")), await startInstance(shared, run("b"))];
  const id = await start(a);
  await until(() => isStored, "the first step");
  a.isCut = true;
  await reach(b, id, "completed");
  // The first process cannot know yet that its task has been taken over, because it has written nothing since.
  a.isCut = false;
  open();
  await until(() => errors.length === 2, "both steps have failed");
  assertEquals(made, ["a first", "b charge"]);
  for (const error of errors) assertMatch(error, /^Cannot (continue the handler|change the task)/);
});

Deno.test("a process that is cut off from the store starts once only when it has its lease again", async () => {
  const shared = memoryStore();
  const made: string[] = [];
  const { pass, open } = gate();
  const a = await startInstance(shared, async (ctx) => {
    await ctx.once("first", () => made.push("first"));
    await pass;
    await ctx.once("charge", () => {
      made.push("charge");
      isHeld = lease.heldUntil > performance.now();
    });
    return "done";
    // A loaded machine renews such a lease in time, so that it expires only while the process is cut off.
  }, { leaseMs: 3000 });
  let isHeld = false;
  const { lease } = a.store;
  const id = await start(a);
  await until(() => made.includes("first"), "the first step");
  const term = await lease.confirm();
  a.isCut = true;
  await until(() => lease.heldUntil < performance.now(), "the lease has expired");
  let tries = 0;
  a.around = () => {
    tries++;
    throw new Error("no route to the store");
  };
  a.isCut = false;
  open();
  await until(() => tries > 5, "the process has tried to renew its lease");
  assertEquals(made, ["first"]);
  a.around = undefined;
  await reach(a, id, "completed");
  assertEquals([made, isHeld, await lease.confirm()], [["first", "charge"], true, term + 1]);
});

Deno.test("a takeover that began while the lease was expired fails after the first process has confirmed its task", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const made: string[] = [];
  const { pass, open } = gate();
  const { pass: charged, open: charge } = gate();
  const run = (name: string): Run => async (ctx) => {
    runs.push(name);
    await pass;
    await ctx.once("charge", async () => {
      made.push(name);
      await charged;
    });
    return name;
  };
  const [a, b] = [await startInstance(shared, run("a")), await startInstance(shared, run("b"))];
  const id = await start(a);
  await until(() => runs.length === 1, "the handler");
  // The second process finds no lease, and is then slow to write the task.
  const { pass: mayWrite, open: write } = gate();
  let isTaking = false;
  let isOver = false;
  b.around = async (command) => {
    if (!isTask(command, id)) return command.run();
    isTaking = true;
    await mayWrite;
    const isTaken = command.run();
    isOver = true;
    return isTaken;
  };
  a.around = (command) => {
    if (isLeaseOf(a, command)) throw new Error("no route to the store");
    return command.run();
  };
  await until(() => isTaking, "the takeover");
  a.around = undefined;
  open();
  await until(() => made.length === 1, "the first process has started once");
  write();
  await until(() => isOver, "the end of the takeover");
  charge();
  await reach(a, id, "completed");
  await a.close();
  await b.close();
  assertEquals([runs, made], [["a"], ["a"]]);
});

Deno.test("a takeover reads the lease after the task, so a process that has its lease again keeps its tasks", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const { pass, open } = gate();
  const run = (name: string): Run => async () => {
    runs.push(name);
    await pass;
    return name;
  };
  const [a, b] = [await startInstance(shared, run("a")), await startInstance(shared, run("b"))];
  const id = await start(a);
  await until(() => runs.length === 1, "the handler");
  // The second process finds no lease, and is then slow to list the tasks of the first process.
  const { pass: mayList, open: list } = gate();
  let isListing = false;
  b.around = async (command) => {
    if (command.name === "list" && String(command.args[0]).includes("-t-")) {
      isListing = true;
      await mayList;
    }
    return command.run();
  };
  a.around = (command) => {
    if (isLeaseOf(a, command)) throw new Error("no route to the store");
    return command.run();
  };
  await until(() => isListing, "the takeover");
  a.around = undefined;
  await until(async () => await shared.get(a.store.lease.id) !== undefined, "the lease is held again");
  let searches = 0;
  list();
  b.around = (command) => {
    if (command.name === "list" && String(command.args[0]).includes("-i-")) searches++;
    return command.run();
  };
  await until(() => searches >= 2, "the search has ended");
  assertEquals(runs, ["a"]);
  // The process still has an entry, so its tasks are found when it ends.
  a.isCut = true;
  open();
  assertEquals(Object(await reach(b, id, "completed")).status, "completed");
  assertEquals(runs, ["a", "b"]);
  a.isCut = false;
});

Deno.test("a process that takes over a task runs it only while it has its own lease", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const run = (name: string): Run => async ({ signal }) => {
    runs.push(name);
    if (name !== "a") return name;
    return await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const [a, b] = [await startInstance(shared, run("a")), await startInstance(shared, run("b"))];
  const id = await start(a);
  await until(() => runs.length === 1, "the handler");
  // The second process writes the task, and then cannot renew its own lease before it has read the journal.
  const journal = await toStoredLog(`j-${id}`);
  b.around = async (command) => {
    if (command.name === "read" && command.args[0] === journal) {
      await until(() => b.store.lease.heldUntil < performance.now(), "the lease of the second process has expired");
    }
    if (isLeaseOf(b, command) && runs.length === 1 && isTaken) throw new Error("no route to the store");
    const done = await command.run();
    isTaken ||= isTask(command, id);
    return done;
  };
  let isTaken = false;
  a.isCut = true;
  await until(() => isTaken, "the second process has taken the task");
  await until(() => b.store.lease.heldUntil < performance.now(), "its lease has expired");
  const c = await startInstance(shared, run("c"));
  await reach(c, id, "completed");
  b.around = undefined;
  await until(async () => await shared.get(b.store.lease.id) !== undefined, "the second process has its lease again");
  await until(() => b.store.lease.heldUntil > performance.now(), "the second process knows it");
  assertEquals(runs, ["a", "c"]);
  a.isCut = false;
  for (const each of [a, b, c]) await each.close();
  assertEquals(runs, ["a", "c"]);
});

Deno.test("each process searches for tasks to take over every 1.5 seconds, or twice per lease if that is shorter", async () => {
  for (const [leaseMs, ms] of [[60_000, 1500], [1000, 500]]) {
    let searches = 0;
    const clock = fakeClock();
    const shared = memoryStore();
    const store = customStore(async () =>
      wrapEngine(await shared[INTERNALS].connect(), ({ name, run }) => {
        if (name === "list") searches++;
        return run();
      }), { leaseMs });
    const server = openServer({ handlers: [tasks()], store, clock });
    await server.ready();
    await until(() => searches === 1, "the first search");
    await clock.advance(ms - 1);
    assertEquals(searches, 1);
    await clock.advance(1);
    await until(() => searches === 2, "the second search");
    assert(ms + leaseMs <= leaseMs + 2000);
  }
});
