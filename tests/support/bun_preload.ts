// Lets `bun test` run tests written for `deno test`. bunfig.toml renames `Deno.test`, and this file registers such
// tests with Bun's test runner.
import { createDenoTest } from "./deno_test.ts";

type Add = (name: string, run: () => Promise<void>, options?: { timeout: number }) => void;
interface BunHost {
  jest(path: string): { test: Add & { skip: Add; only: Add } };
}

const { Bun } = globalThis as unknown as { Bun: BunHost }; // Deno type-checks this file, but has no types for Bun.
const { test } = Bun.jest(new URL(import.meta.url).pathname);
const timeout = 120_000; // Deno has no timeout per test. The default of 5 s is too short, and `until` waits up to 60 s.

Object.assign(globalThis, {
  __denoTest: createDenoTest((name, run, kind) => (kind ? test[kind] : test)(name, run, { timeout })),
});
