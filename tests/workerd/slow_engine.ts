// A store engine in memory whose operations wait for a timer of the runtime, like operations of a database.
import type { StoreEngine } from "@x/mcp/stores";
import { MemoryEngine } from "../../src/stores/memory_engine.ts";
import { systemClock } from "../../src/core/timers.ts";

/** All servers in this process share the values, as in a database. */
const memory = new MemoryEngine({ clock: systemClock, bytes: 1024 * 1024 });

async function pass(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, 1);
  await promise;
}

/** Connects to the engine. */
export async function connectSlow(): Promise<StoreEngine> {
  await pass();
  const slow = <A extends unknown[], R>(run: (...args: A) => R) => async (...args: A): Promise<R> => {
    await pass();
    return run.apply(memory, args);
  };
  return {
    get: slow(memory.get),
    set: slow(memory.set),
    delete: slow(memory.delete),
    list: slow(memory.list),
    append: slow(memory.append),
    read: slow(memory.read),
    trim: slow(memory.trim),
    heads: slow((logs: readonly string[]) => logs.map((log) => memory.read(log, { limit: 0 }))),
  };
}
