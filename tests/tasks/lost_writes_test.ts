// Writes of tasks that fail, or whose responses are lost. A task whose handler has ended is never forgotten: this process
// or another process runs it again.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { McpError } from "../../mod.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { type Instance, isTask, reach, type Run, start, startInstance } from "./instance.ts";
import { toStoredKey, toStoredLog } from "./shared_store.ts";
import { untilAborted } from "./requests.ts";

/** Fails all attempts of the next write of a task. With `lands`, only the response is lost. */
function loseWrite(id: string, { lands }: { readonly lands: boolean }): NonNullable<Instance["around"]> {
  let lost: unknown;
  return async (command) => {
    if (!isTask(command, id)) return command.run();
    const { token } = Object(command.args[2]);
    lost ??= token;
    if (token !== lost) return command.run();
    if (lands) await command.run();
    throw new Error("the response was lost");
  };
}

/** Cuts an instance off from the store for good, and lets its server end. */
async function crash(instance: Instance) {
  instance.isCut = true;
  await instance.close();
}

for (const lands of [false, true]) {
  const how = lands ? "of whose last write only the response is lost" : "whose last write fails";
  Deno.test(`another instance continues a task ${how} while the server closes`, async () => {
    const shared = memoryStore();
    const [a, b] = [await startInstance(shared, untilAborted), await startInstance(shared, () => "b")];
    const id = await start(a);
    a.around = loseWrite(id, { lands });
    await a.close();
    await reach(b, id, "completed");
  });
}

Deno.test("a task without resume fails if its last write fails while the server closes", async () => {
  const shared = memoryStore();
  const options = { resume: false };
  const [a, b] = [await startInstance(shared, untilAborted, options), await startInstance(shared, () => "b", options)];
  const id = await start(a);
  a.around = loseWrite(id, { lands: false });
  await a.close();
  assertEquals((await reach(b, id, "failed")).statusMessage, sentence("ended before"));
});

Deno.test("another server continues the task of a closed server that had the same lease", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let runs = 0;
  // Either of the two other servers may take over the task, so only the first task waits.
  const a = await startInstance(shared, async () => void (runs++ || await pass));
  // The server holds the lease of the process for as long as it runs a task.
  const other = await start(a);
  const b = await startInstance(shared, untilAborted, { store: a.store });
  const id = await start(b);
  a.around = loseWrite(id, { lands: false });
  const { lease } = a.store;
  await b.client.close();
  await b.server.close();
  const c = await startInstance(shared, () => "c");
  await reach(c, id, "completed");
  await until(async () => await shared.get(lease.id), "the process holds its lease");
  open();
  await reach(a, other, "completed");
});

Deno.test("another instance continues a task that an instance takes over while it closes", async () => {
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, untilAborted), await startInstance(shared, untilAborted)];
  const id = await start(a);
  const { pass, open } = gate();
  let isTaking = false;
  b.around = async (command) => {
    if (!isTask(command, id)) return command.run();
    isTaking = true;
    await pass;
    return command.run();
  };
  await a.close();
  await until(() => isTaking, "the takeover");
  const closing = b.close();
  // By now, the server waits for its tasks.
  await until(() => b.server.stats().isClosing, "the server closes");
  await turn(10);
  open();
  await closing;
  const c = await startInstance(shared, () => "c");
  await reach(c, id, "completed");
});

Deno.test("a task fails if its error is too large for the store", async () => {
  let runs = 0;
  const run = () => {
    runs++;
    throw McpError.internalError("a long message".repeat(10_000));
  };
  const a = await startInstance(memoryStore(), run, { valueBytes: 65_536 });
  const { statusMessage } = await reach(a, await start(a), "failed");
  assertEquals([statusMessage, runs], [sentence("Cannot store the error"), 1]);
});

Deno.test("an instance runs a task if only the response to the write of its takeover is lost", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const [a, b] = [
    await startInstance(shared, untilAborted),
    await startInstance(shared, ({ signal }) => void runs.push(signal.aborted ? "aborted" : "b")),
  ];
  const id = await start(a);
  b.around = loseWrite(id, { lands: true });
  await crash(a);
  await reach(b, id, "completed");
  await b.close();
  assertEquals(runs, ["b"]);
});

Deno.test("an instance runs a task that it has released if only the response to the second takeover is lost", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  const a = await startInstance(shared, untilAborted);
  let runs = 0;
  // The instance has room for one task.
  const b = await startInstance(shared, async () => void await (runs++ ? undefined : pass), { detached: 1 });
  const other = await start(b);
  const id = await start(a);
  const lose = loseWrite(id, { lands: true });
  let writes = 0;
  b.around = (command) => {
    if (isTask(command, id) && writes++ >= 2 && runs === 1) open();
    return writes > 2 ? lose(command) : command.run();
  };
  await a.close();
  await until(() => writes > 2, "the task was released, and taken over again");
  await reach(b, other, "completed");
  await reach(b, id, "completed");
  await b.close();
  assertEquals(runs, 2);
});

Deno.test("a subscriber learns that a task has failed if only the response to this write is lost", async () => {
  const shared = memoryStore();
  const options = { resume: false };
  const [a, b] = [await startInstance(shared, untilAborted, options), await startInstance(shared, () => "b", options)];
  const id = await start(a);
  const { received } = await b.client.subscribe({ extensions: { taskIds: [id] } });
  b.around = loseWrite(id, { lands: true });
  await crash(a);
  await until(() => received.some(({ params }) => params.status === "failed"), "the notification");
});

Deno.test("an instance runs a task that its late write takes from an instance with a lease", async () => {
  const shared = memoryStore();
  const [a, b] = [
    await startInstance(shared, untilAborted),
    await startInstance(shared, () => "b", { timeoutMs: 500 }),
  ];
  const id = await start(a);
  let write: (() => unknown) | undefined;
  let searches = 0;
  b.around = (command) => {
    if (command.name === "list" && String(command.args[0]).includes("-i-")) searches++;
    if (write || !isTask(command, id)) return command.run();
    write = command.run;
    return new Promise(() => {});
  };
  a.around = ({ args: [key], run }) => {
    if (key === a.store.lease.id) throw new Error("no route to the store");
    return run();
  };
  await until(() => write, "the takeover");
  a.around = undefined;
  await until(async () => await shared.get(a.store.lease.id) !== undefined, "the lease is held again");
  const before = searches;
  await until(() => searches >= before + 3, "further searches");
  await write?.();
  await reach(b, id, "completed");
});

Deno.test("the entry of an instance that has its lease again is not removed, so its new tasks are found later", async () => {
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, untilAborted), await startInstance(shared, () => "b")];
  const first = await start(a);
  const { pass, open } = gate();
  let isRemoving = false;
  b.around = async (command) => {
    if (command.name === "delete" && String(command.args[0]).includes("-i-")) {
      isRemoving = true;
      await pass;
    }
    return command.run();
  };
  a.isCut = true;
  await until(() => isRemoving, "the removal of the entry");
  await reach(b, first, "completed");
  a.isCut = false;
  const id = await start(a);
  open();
  await crash(a);
  await reach(b, id, "completed");
});

/** Cancels a task through an instance whose message to the instance that runs the task is lost. */
async function cancelUnheard(instance: Instance, taskId: string) {
  instance.around = (command) => {
    if (command.name === "append") throw new Error("the connection was lost");
    return command.run();
  };
  await assertRejects(() => instance.client.request("tasks/cancel", { taskId }));
  instance.around = undefined;
}

Deno.test("a client that repeats a cancellation whose message was lost ends the handler on another instance", async () => {
  const shared = memoryStore();
  let isAborted = false;
  const run: Run = async (ctx) => {
    await Promise.resolve(untilAborted(ctx)).catch(() => isAborted = true);
    return "";
  };
  const options = { timeoutMs: 300 };
  const [a, b] = [await startInstance(shared, run, options), await startInstance(shared, run, options)];
  const id = await start(a);
  await cancelUnheard(b, id);
  assertEquals(isAborted, false);
  await b.client.request("tasks/cancel", { taskId: id });
  await until(() => isAborted, "the handler is cancelled");
  assertEquals((await reach(a, id, "cancelled")).status, "cancelled");
});

Deno.test("a handler makes no further value of ctx.once after another instance has ended its task", async () => {
  const shared = memoryStore();
  const made: string[] = [];
  const { pass, open } = gate();
  let end: unknown;
  const run: Run = async (ctx) => {
    await ctx.once("first", () => made.push("first"));
    await pass;
    await ctx.once("second", () => made.push("second")).catch((error) => {
      end = error;
      throw error;
    });
    return "";
  };
  const options = { timeoutMs: 300 };
  const [a, b] = [await startInstance(shared, run, options), await startInstance(shared, run, options)];
  const id = await start(a);
  await until(() => made.length === 1, "the first value");
  await cancelUnheard(b, id);
  open();
  await until(() => end !== undefined, "the second value is refused");
  assertEquals(made, ["first"]);
  assertEquals(String(end), `Error: ${sentence("has ended")}`);
});

Deno.test("repeated cancellations of a task that has ended count towards the client's share", async () => {
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, untilAborted), await startInstance(shared, untilAborted)];
  const id = await start(a);
  let told = 0;
  b.around = (command) => {
    if (command.name === "append") told++;
    return command.run();
  };
  for (let i = 0; i < 3; i++) await b.client.request("tasks/cancel", { taskId: id });
  const { bytes } = b.server.stats();
  for (let i = 0; i < 10; i++) await b.client.request("tasks/cancel", { taskId: id });
  assertEquals(told, 13);
  assert(b.server.stats().bytes >= bytes + 5120, "the messages are not counted");
  // The process that has run the task knows its end.
  told = 0;
  a.around = b.around;
  await a.client.request("tasks/cancel", { taskId: id });
  assertEquals(told, 0);
});

/** Returns the name in the store of the log of messages to the process that runs a task. */
const toMessageLog = (id: string) => toStoredLog(`c-${id.slice(0, 8)}`);

for (
  const { what, isMessage } of [
    { what: "the message to the process that runs the task", isMessage: true },
    { what: "the read of the current state", isMessage: false },
  ]
) {
  Deno.test(`a subscriber learns that a task has ended after the store has failed during ${what}`, async () => {
    const shared = memoryStore();
    const { pass, open } = gate();
    const run: Run = async () => {
      await pass;
      return "done";
    };
    const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
    const id = await start(a);
    const lost = isMessage ? await toMessageLog(id) : toStoredKey(`t-${id}`);
    let failures = 0;
    let hasFailed = false;
    const fail: NonNullable<Instance["around"]> = ({ name, args: [key], run }) => {
      if (hasFailed || name !== (isMessage ? "append" : "get") || !String(key).endsWith(lost)) return run();
      failures++;
      throw new Error("no route to the store");
    };
    if (isMessage) b.around = fail;
    const { received } = await b.client.subscribe({ extensions: { taskIds: [id] } });
    if (!isMessage) {
      await until(() => received.length, "the current state");
      b.around = fail;
      open();
    }
    // The store makes five attempts.
    await until(() => failures >= 5, "the failed operation");
    await turn(3);
    hasFailed = true;
    open();
    await until(() => received.some(({ params }) => params.status === "completed"), "the end");
  });
}

Deno.test("a subscriber learns that a task has ended if its process cannot read the task at once", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  const run: Run = async () => {
    await pass;
    // The process does not keep a result of this size in memory.
    return "done".repeat(50_000);
  };
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  const { pass: mayRead, open: read } = gate();
  const [messages, record] = [await toMessageLog(id), toStoredKey(`t-${id}`)];
  let failures = 0;
  a.around = async ({ name, args: [key], run }) => {
    if (name === "read" && String(key).endsWith(messages)) await mayRead;
    if (name === "get" && String(key).endsWith(record) && failures < 5) {
      failures++;
      throw new Error("no route to the store");
    }
    return await run();
  };
  const { received } = await b.client.subscribe({ extensions: { taskIds: [id] } });
  await until(() => received.length, "the current state");
  open();
  await reach(b, id, "completed");
  read();
  await until(() => received.some(({ params }) => params.status === "completed"), "the end");
  assertEquals(failures, 5);
});
