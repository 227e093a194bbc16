/**
 * Tests that check whether a store fulfils the contract of `Store`.
 *
 * ```ts ignore
 * import { memoryStore } from "@x/mcp/stores";
 * import { testStore } from "@x/mcp/testing";
 *
 * const store = memoryStore();
 * testStore(() => store, { test: Deno.test });
 * ```
 */
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Awaitable, Store } from "../server/engine/store.ts";
import { Bench } from "./store_bench.ts";
import { FAULT_RULES } from "./store_fault_rules.ts";
import { LOG_RULES } from "./store_log_rules.ts";
import { TOPIC_RULES } from "./store_topic_rules.ts";
import { VALUE_RULES } from "./store_value_rules.ts";

/** Options of {@linkcode testStore}. */
export interface TestStoreOptions {
  /** Registers a test, such as `Deno.test`, or `test` from `bun:test`. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
}

const OPTIONS: KnownOptions<keyof TestStoreOptions> = { names: { test: "function" } };

/**
 * Registers a test for each rule that a store must follow. Some tests inject faults into the engine: commands run
 * twice, responses or notifications of `listen` are lost, or the engine does not respond. `make` is called for each
 * process that a test simulates, so all stores that `make` returns must share their data. Each test uses its own keys,
 * and the data expires.
 *
 * ```ts ignore
 * import { memoryStore } from "@x/mcp/stores";
 * import { testStore } from "@x/mcp/testing";
 *
 * const store = memoryStore();
 * testStore(() => store, { test: Deno.test });
 * ```
 */
export function testStore(make: () => Awaitable<Store>, options: TestStoreOptions): void {
  checkOptions("test a store", options, OPTIONS);
  const { test } = options;
  for (const { name, run } of listStoreCases(make)) test(`store: ${name}`, run);
}

/** Returns the tests of {@linkcode testStore}. */
export function listStoreCases(make: () => Awaitable<Store>): readonly {
  /** The rule that is tested. */
  readonly name: string;
  /** Runs the test. Rejects if the store violates the rule. */
  run(): Promise<void>;
}[] {
  return [...VALUE_RULES, ...LOG_RULES, ...TOPIC_RULES, ...FAULT_RULES].map(([name, check]) => ({
    name,
    async run() {
      const bench = new Bench(make);
      try {
        await check(bench);
      } finally {
        await bench.close();
      }
    },
  }));
}
