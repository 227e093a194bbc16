// Instances whose connections to a common store can be cut, and whose commands can be changed.
import { type Context, type Server, tool, type ToolReturn } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { asking } from "./declared.ts";
import { toStoredKey } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { closeAtEnd } from "../support/running.ts";

export type Run = (ctx: Context) => unknown;

/** An instance with its connection to the store. */
export interface Instance {
  readonly server: Server;
  readonly client: Connection;
  readonly store: Store;
  /** Whether the instance is cut off from the store. */
  isCut: boolean;
  /** If set, runs each command of the engine. */
  around?: (command: Command) => unknown;
  close(): Promise<void>;
}

/** Options of {@linkcode startInstance}. */
export interface Options extends Pick<TaskOptions, "resume"> {
  /** The connection to the store. By default, the instance opens a connection of its own. */
  readonly store?: Store;
  readonly valueBytes?: number;
  /** Milliseconds after which an operation of the store times out. */
  readonly timeoutMs?: number;
  /** Milliseconds for which the lease of the instance is valid. */
  readonly leaseMs?: number;
  /** The maximum number of tasks that run concurrently. */
  readonly detached?: number;
}

/** Starts an instance with a task tool that runs `run`. Several instances share the store `shared`. */
export async function startInstance(
  shared: Store,
  run: Run,
  { resume = true, store: given, valueBytes = 1_048_576, timeoutMs = 20_000, leaseMs = 600, detached = 16 }: Options =
    {},
): Promise<Instance> {
  const instance: Pick<Instance, "isCut" | "around"> = { isCut: false };
  const store = given ?? customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async (command) => {
      if (instance.isCut) throw new Error("no route to the store");
      return await (instance.around ? instance.around(command) : command.run());
    }, { close() {} }), { leaseMs, pollMs: 20, timeoutMs, valueBytes });
  const server = openServer({
    handlers: [
      tasks(),
      tool({
        name: "work",
        use: [task({ resume })],
        run: async (_input, ctx) => await run(ctx) as ToolReturn,
      }),
    ],
    store,
    limits: { calls: { closeMs: 20, detached } },
    observer: { store() {}, fault() {} },
  });
  await server.ready();
  const client = closeAtEnd(await connectTest(server, { ...asking, principal: { id: "ada" } }));
  return Object.assign(instance, {
    server,
    client,
    store,
    async close() {
      await client.close();
      await server.close();
    },
  });
}

/** Starts a task. Returns its id. */
export const start = async ({ client }: Instance) =>
  String((await client.request("tools/call", { name: "work", arguments: {} }, { finish: false })).taskId);

/** Waits until a task has a status. Returns the task. */
export async function reach({ client }: Instance, taskId: string, status: string) {
  let found: { readonly [key: string]: unknown } = {};
  await until(async () => (found = await client.request("tasks/get", { taskId })).status === status, status);
  return found;
}

/** Whether a command writes the record of a task. */
export const isTask = ({ name, args: [key] }: Command, id: string) =>
  name === "set" && String(key).endsWith(toStoredKey(`-t-${id}`));
