// `Deno.test` for other runtimes, which registers tests with the runtime's own test runner.
import process from "node:process";
import { track } from "./running.ts";

/** Returns the path of the test file. Node runs each test file as a program. */
function getTestFile(): string {
  const { Bun } = globalThis as { Bun?: { main: string } }; // Node lacks it.
  return Bun?.main ?? process.argv[1];
}

type Run = (t: Step) => void | Promise<void>;
interface Definition {
  readonly name?: string;
  readonly fn?: Run;
  readonly ignore?: boolean;
  readonly only?: boolean;
}
interface Step {
  readonly name: string;
  step(first: string | Run | (Definition & { fn: Run }), run?: Run): Promise<boolean>;
}

/** Registers one test. `kind` is "skip" for a skipped test, and "only" for a test that runs alone. */
export type Register = (name: string, run: () => Promise<void>, kind: "skip" | "only" | undefined) => void;

function toDefinition(args: readonly unknown[]): Required<Definition> {
  let found: Definition = {};
  for (const arg of args) {
    if (typeof arg === "string") found = { ...found, name: arg };
    else if (typeof arg === "function") found = { name: arg.name, ...found, fn: arg as Run };
    else found = { ...found, ...(arg as Definition) };
  }
  const { fn, name = fn?.name, ignore = false, only = false } = found;
  if (!fn || !name) throw new TypeError("Cannot register a test: the test has no function or no name; add both");
  return { name, fn, ignore, only };
}

/**
 * Runs a step immediately, as a part of its test, as Deno does. A failed step does not stop the test; the test fails
 * after all steps have run.
 */
async function runSteps(name: string, fn: Run): Promise<void> {
  const failures: unknown[] = [];
  await fn({
    name,
    async step(...args) {
      const { name: title, fn, ignore } = toDefinition(args);
      if (ignore) return false;
      try {
        await runSteps(`${name} ... ${title}`, fn);
        return true;
      } catch (error) {
        failures.push(error instanceof Error ? Object.assign(error, { message: `${title}: ${error.message}` }) : error);
        return false;
      }
    },
  });
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} steps of "${name}" failed`);
}

/** Returns a replacement for `Deno.test` that passes each test to `add`. */
export function createDenoTest(add: Register): unknown {
  function register(kind: Definition, args: readonly unknown[]): void {
    const { name, fn, ignore, only } = { ...toDefinition(args), ...kind };
    // The cast is safe, because runSteps passes a Step.
    const run = track(getTestFile(), name, (t) => fn(t as Step));
    add(name, () => runSteps(name, async (t) => void await run(t)), ignore ? "skip" : only ? "only" : undefined);
  }
  return Object.assign((...args: unknown[]) => register({}, args), {
    ignore: (...args: unknown[]) => register({ ignore: true }, args),
    only: (...args: unknown[]) => register({ only: true }, args),
  });
}
