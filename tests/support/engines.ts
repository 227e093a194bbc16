// Wraps store engines to delay, count or break their commands.
import { assertEquals } from "@std/assert";
import { existsSync, renameSync } from "node:fs";
import { INTERNALS } from "../../src/core/internals.ts";
import type { Clock } from "../../src/core/timers.ts";
import { CustomStore } from "../../src/stores/custom_store.ts";
import type { Connect } from "../../src/stores/engine_connection.ts";
import { StoreClock } from "../../src/stores/store_clock.ts";
import { customStore, memoryStore, type Store, type StoreEngine, type StoreOptions } from "../../src/stores/stores.ts";
import { gate, until } from "./behaviour.ts";

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

/** Moves the files of a SQLite database, whose names then begin with `to`. */
export function moveDatabase(path: string, to = `${path}.old`): void {
  for (const end of ["", "-wal", "-shm"]) if (existsSync(path + end)) renameSync(path + end, to + end);
}

/**
 * Asserts that a store notices that its file was replaced before its first check. `make` creates a store, which calls
 * `before` before it opens the file.
 */
export async function assertFindsEarlyFile(
  path: string,
  make: (before: () => Promise<void>) => Store,
): Promise<void> {
  const { pass, open } = gate();
  let opens = 0;
  const store = make(async () => {
    // The first check opens the file for the second time.
    if (++opens === 2) await pass;
  });
  await store.set("key", "old", { ttlMs: 60_000 });
  await until(() => opens === 2, "the first check");
  moveDatabase(path);
  const other = make(() => Promise.resolve());
  await other.set("key", "new", { ttlMs: 60_000 });
  open();
  await until(() => isNew(store), "the new file");
  await store.close();
  await other.close();
}

/** Opens a store whose lease runs on the clock of a test, so that a busy machine cannot renew the lease too late. */
export function openOn(clock: Clock, connect: Connect, options: StoreOptions = {}): Store {
  return new CustomStore(connect, options, { isShared: true, isReplaceable: true, clock: new StoreClock(clock) });
}
