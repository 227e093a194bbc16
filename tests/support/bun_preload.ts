// Lets `bun test` run tests written for `deno test`: `Deno.test`, renamed by bunfig.toml, registers with Bun's runner.
import { createDenoTest } from "./deno_test.ts";

type Add = (name: string, run: () => Promise<void>, options?: { timeout: number }) => void;
interface BunHost {
  jest(path: string): { test: Add & { skip: Add; only: Add } };
}

const { Bun } = globalThis as unknown as { Bun: BunHost }; // Deno, which checks this file, has no types for Bun.
const { test } = Bun.jest(new URL(import.meta.url).pathname);
const timeout = 60_000; // Deno has no timeout per test; Bun's default of 5 s would fail tests that spawn a process.

Object.assign(globalThis, {
  __denoTest: createDenoTest((name, run, kind) => (kind ? test[kind] : test)(name, run, { timeout })),
});
