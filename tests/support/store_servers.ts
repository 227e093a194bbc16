// Servers of stores that the tests of a file share.
import type { Store } from "../../src/stores/stores.ts";
import { needs } from "./required.ts";

/** Tests that share one server. The first test starts the server, and the last test stops it. */
export class SharedServer<T extends AsyncDisposable> {
  readonly #start: () => T | Promise<T>;
  readonly #missing: string | undefined;
  #running: T | undefined;
  /** Number of tests that have not ended. */
  #left = 0;

  /** `missing` is the reason why the server cannot be started; `undefined` if it can be started. */
  constructor(start: () => T | Promise<T>, missing?: string) {
    this.#start = start;
    this.#missing = missing;
  }

  /** The server. Only tests that {@linkcode test} has registered can read it. */
  get running(): T {
    if (!this.#running) throw new Error("Cannot use the server: it has not started; register the test with test()");
    return this.#running;
  }

  /** Registers a test that uses the server. */
  test(
    name: string,
    fn: () => Promise<void>,
    options?: Pick<Deno.TestDefinition, "sanitizeOps" | "sanitizeResources">,
  ) {
    this.#left++;
    Deno.test({
      ...needs(name, this.#missing),
      ...options,
      fn: async () => {
        this.#running ??= await this.#start();
        try {
          await fn();
        } finally {
          if (!--this.#left) await this.#running[Symbol.asyncDispose]();
        }
      },
    });
  }
}

/** Returns whether a store responds. */
export async function isUp(store: Store): Promise<boolean> {
  try {
    await store.get("key");
    return true;
  } catch {
    return false;
  }
}
