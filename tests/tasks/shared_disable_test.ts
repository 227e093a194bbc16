// Tasks that another instance takes over before it knows which handlers are disabled on all instances.
import { assertEquals } from "@std/assert";
import { extension, type Handler, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { asking } from "./declared.ts";
import { openServer } from "../support/servers.ts";

/** The key of the rules is a hash, without the part of a server that other keys begin with. */
const isRules = ({ name, args: [key] }: Command) => name === "get" && /^[\w-]{43}$/.test(String(key));

interface Site {
  readonly run?: () => unknown;
  readonly around?: (command: Command) => unknown;
  readonly others?: readonly Handler[];
}

/** Starts an instance that shares its store and its disabled handlers, without a request. */
async function startInstance(shared: Store, { run = () => "", around, others = [] }: Site = {}) {
  let isCut = false;
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async (command) => {
      if (isCut) throw new Error("no route to the store");
      return await (around ? around(command) : command.run());
    }, { close() {} }), { leaseMs: 600, pollMs: 20, timeoutMs: 20_000 });
  const server = openServer({
    handlers: [
      tasks(),
      tool({ name: "work", use: [task({ resume: true })], run: async () => String(await run()) }),
      ...others,
    ],
    store,
    sharedDisable: true,
    limits: { calls: { closeMs: 20 } },
    observer: { store() {}, fault() {} },
  });
  await server.ready();
  return { server, cut: () => void (isCut = true) };
}

async function startTask({ server }: Awaited<ReturnType<typeof startInstance>>): Promise<string> {
  await using client = await connectTest(server, { ...asking, principal: { id: "ada" } });
  const created = await client.request("tools/call", { name: "work", arguments: {} }, { finish: false });
  return String(created.taskId);
}

const { promise: never } = Promise.withResolvers<void>();

Deno.test("an instance reads which handlers are disabled before it takes a task over", async () => {
  const shared = memoryStore();
  const first = await startInstance(shared, { run: () => never });
  const taskId = await startTask(first);
  let hasRun = false;
  const second = await startInstance(shared, { run: () => (hasRun = true, "Resumed.") });
  first.cut();
  await until(() => hasRun, "the second instance runs the task, before its first request");
  await using client = await connectTest(second.server, { ...asking, principal: { id: "ada" } });
  let found: { readonly status?: unknown; readonly result?: unknown } = {};
  const get = async () => found = await client.request("tasks/get", { taskId });
  await until(async () => (await get()).status !== "working", "the task ends");
  assertEquals([found.status, textOf(Object(found.result))], ["completed", "Resumed."]);
  await client.close();
});

Deno.test("a task waits as long as the store does not report which handlers are disabled", async () => {
  const shared = memoryStore();
  const first = await startInstance(shared, { run: () => never });
  await startTask(first);
  let refused = 0;
  let isDown = true;
  let hasRun = false;
  await startInstance(shared, {
    run: () => (hasRun = true, ""),
    around: (command) => {
      if (!isDown || !isRules(command)) return command.run();
      refused++;
      throw new Error("this shard does not respond");
    },
  });
  first.cut();
  await until(() => refused > 2, "the second instance has tried repeatedly");
  assertEquals(hasRun, false);
  isDown = false;
  await until(() => hasRun, "the second instance runs the task");
});

for (
  const [kind, method, params] of [
    ["tool", "tools/call", { name: "plain", arguments: {} }],
    ["list", "tools/list", {}],
  ] as const
) {
  Deno.test(`an extension that makes a call when it starts waits for the shared rules (${kind})`, async () => {
    const shared = memoryStore();
    const other = await startInstance(shared);
    other.server.handlers.disable({ tool: "work" });
    // Closing waits until the rule is stored.
    await other.server.close();
    const outcome = Promise.withResolvers<unknown>();
    const early = extension({
      id: "com.example/early",
      start: (handle) => void outcome.resolve(handle.call({ method, params }).catch((error) => error)),
    });
    const plain = tool({ name: "plain", run: () => "Called." });
    await startInstance(shared, { others: [early, plain] });
    const found = await outcome.promise;
    assertEquals(found instanceof McpError, false);
    const { tools = [], content } = Object(found);
    if (kind === "list") assertEquals(tools.map(({ name }: { name: string }) => name), ["plain"]);
    else assertEquals(content[0].text, "Called.");
  });
}
