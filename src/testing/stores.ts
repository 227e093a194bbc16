/**
 * The contract of a store as tests.
 *
 * ```ts ignore
 * import { memoryStore } from "@x/mcp/stores";
 * import { testStore } from "@x/mcp/testing/stores";
 *
 * const store = memoryStore();
 * testStore(() => store, { test: Deno.test });
 * ```
 *
 * @module
 */
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { Awaitable, Store } from "../core/store.ts";
import { Bench } from "./store_bench.ts";
import { FAULT_RULES } from "./store_fault_rules.ts";
import { LOG_RULES } from "./store_log_rules.ts";
import { TOPIC_RULES } from "./store_topic_rules.ts";
import { VALUE_RULES } from "./store_value_rules.ts";

// Types that the signatures below use. `@x/mcp/stores` exports them too.
export type { Awaitable, Store } from "../core/store.ts";

/** Options of {@linkcode testStore}. */
export interface TestStoreOptions {
  /** Registers a test. For example `Deno.test`, or `test` of `bun:test`. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
}

const OPTIONS: KnownOptions<keyof TestStoreOptions> = { names: { test: "function" } };

/**
 * Registers a test for each rule that a store must keep. Some rules are tested with a faulty engine: commands are
 * repeated, responses and notifications of `listen` are lost, or the engine does not respond. `make` is called for each
 * process that a test simulates, so all stores that it returns must have the same data. Each test uses its own keys,
 * which expire.
 *
 * ```ts ignore
 * import { memoryStore } from "@x/mcp/stores";
 * import { testStore } from "@x/mcp/testing/stores";
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

/** Lists the tests of {@linkcode testStore}, for test runners that register tests in another way. */
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
