/**
 * Finds out whether code runs on behalf of a value that is being computed, so that the value does not wait for itself.
 *
 * @module
 */
import { type AsyncStorage, findProcess, type ProcessGlobal } from "../runtime.ts";

/** A value that is being computed. */
interface Computation {
  readonly owner: object;
  readonly key: string;
  /** The computation that needs this one. */
  readonly outer?: Computation;
}

let storage: AsyncStorage<Computation> | undefined;

/** Runs the function that computes a value. */
export function compute<T>(owner: object, key: string, run: () => T): T {
  storage ??= openStorage();
  return storage ? storage.run({ owner, key, outer: storage.getStore() }, run) : run();
}

// Also after an `await`. Some platforms cannot tell.
function isComputing(owner: object, key: string): boolean {
  for (let each = storage?.getStore(); each; each = each.outer) {
    if (each.owner === owner && each.key === key) return true;
  }
  return false;
}

/**
 * Checks that a value does not wait for itself.
 *
 * @throws {TypeError} if it does.
 */
export function refuseOwnWait(owner: object, key: string): void {
  if (!isComputing(owner, key)) return;
  const name = `ctx.once(${JSON.stringify(key)})`;
  throw new TypeError(`Cannot compute ${name}: its function waits for the same key; use another key in it`);
}

// Loaded with the first value, because most handlers compute none.
function openStorage(): AsyncStorage<Computation> | undefined {
  // Some platforms have no `process`, or one without these modules.
  const host: Partial<ProcessGlobal> | undefined = findProcess();
  const modules = host?.getBuiltinModule?.("async_hooks");
  return modules && new modules.AsyncLocalStorage<Computation>();
}
