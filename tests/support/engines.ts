// Wraps store engines to delay, count or break their commands.
import { assertEquals } from "@std/assert";
import { INTERNALS } from "../../src/core/internals.ts";
import type { Clock } from "../../src/core/timers.ts";
import { CustomStore } from "../../src/stores/custom_store.ts";
import type { Connect } from "../../src/stores/engine_connection.ts";
import { StoreClock } from "../../src/stores/store_clock.ts";
import { customStore, memoryStore, type Store, type StoreEngine, type StoreOptions } from "../../src/stores/stores.ts";
import { until } from "./behaviour.ts";

/** A call of an engine's method. */
export interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
  /** Runs the command on the wrapped engine. */
  run(): unknown;
}

const COMMANDS: readonly PropertyKey[] = ["get", "set", "delete", "list", "append", "read", "trim", "heads"];

/** Returns an engine that passes each command to `around`. The methods in `own` replace the engine's methods. */
export function wrapEngine(
  engine: StoreEngine,
  around: (command: Command) => unknown,
  own: Partial<StoreEngine> = {},
): StoreEngine {
  return new Proxy(engine, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name);
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (!COMMANDS.includes(name)) return value.bind(target);
      return (...args: readonly unknown[]) =>
        around({ name: String(name), args, run: () => Reflect.apply(value, target, args) });
    },
  });
}

/** An engine that several stores share, and that fails while `isLost` is true. */
export interface Losable {
  isLost: boolean;
  open(): Store;
}

/**
 * Creates an engine that tests can make unavailable. It wraps the engine of `shared`, which defaults to an engine in
 * memory.
 */
export function createLosable(options: StoreOptions = {}, shared: Store = memoryStore()): Losable {
  const { connect } = shared[INTERNALS];
  const check = () => {
    if (losable.isLost) throw new Error("the network is gone");
  };
  const losable: Losable = {
    isLost: false,
    open: () =>
      customStore(async () => {
        check();
        return wrapEngine(await connect(), ({ run }) => {
          check();
          return run();
        });
      }, { timeoutMs: 200, ...options }),
  };
  return losable;
}

/** Uses a store for longer than two checks whether its file was replaced, and asserts that its value is kept. */
export async function assertKeptByLooks(store: Store): Promise<void> {
  await store.set("key", "kept", { ttlMs: 60_000 });
  const began = performance.now();
  await until(async () => {
    assertEquals((await store.get("key"))?.value, "kept");
    return performance.now() - began > 1200;
  }, "two looks");
}

/** Tests whether the value of "key" in a store is "new". Returns `false` while the store is not usable. */
export async function isNew(store: Store): Promise<boolean> {
  try {
    return (await store.get("key"))?.value === "new";
  } catch {
    return false;
  }
}

/** Opens a store whose lease runs on the clock of a test, so that a busy machine cannot renew the lease too late. */
export function openOn(clock: Clock, connect: Connect, options: StoreOptions = {}): Store {
  return new CustomStore(connect, options, { isShared: true, isReplaceable: true, clock: new StoreClock(clock) });
}
