// Tells which test runs, and in which file and line it was registered. Deno's test runner does not tell its tests.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";
import { BEHAVIOURS } from "./tiers.ts";

/** A test that runs. */
export interface RunningTest {
  /** The path of the test file, relative to the project, such as `tests/auth/schemes_test.ts`. */
  readonly file: string;
  readonly name: string;
  /** Functions that run after the test has passed, the last one first. A function that throws fails the test. */
  readonly atEnd: (() => unknown)[];
}

type Run = (t: unknown) => unknown;
type Register = (...args: unknown[]) => unknown;

interface State {
  running?: RunningTest;
  isWrapped?: boolean;
  readonly registered: Pick<RunningTest, "file" | "name">[];
}

/** The state, which all copies of this module in a process share. */
const state: State =
  // The cast is safe, because only this module uses the key.
  (globalThis as unknown as Record<symbol, State>)[Symbol.for("tests.running")] ??= { registered: [] };

/** Returns the running test, or `undefined` outside of tests. */
export function getRunningTest(): RunningTest | undefined {
  return state.running;
}

/** Closes a server, store or other value at the end of the running test. Returns the value. */
export function closeAtEnd<T extends { close(): unknown }>(value: T): T {
  const test = getRunningTest();
  if (!test) throw new Error("Cannot close the value at the end of a test: no test runs");
  test.atEnd.push(() => value.close());
  return value;
}

/** Returns a stack that is disposed at the end of the running test. */
export function stackAtEnd(): AsyncDisposableStack {
  const stack = new AsyncDisposableStack();
  closeAtEnd({ close: () => stack.disposeAsync() });
  return stack;
}

/** Returns the tests that have been registered so far. */
export function listRegistered(): readonly Pick<RunningTest, "file" | "name">[] {
  return state.registered;
}

/** Returns the path of a file relative to the project. */
function toRelative(path: string): string {
  return /\btests\/.*$/.exec(path)?.[0] ?? path;
}

/** Returns the function of a test, changed so that {@linkcode getRunningTest} returns the test while it runs. */
export function track(path: string, name: string, run: Run): Run {
  const file = toRelative(path);
  state.registered.push({ file, name });
  return async (t) => {
    const running: RunningTest = { file, name, atEnd: [] };
    state.running = running;
    try {
      await run(t);
      for (const end of running.atEnd.reverse()) await end();
    } catch (error) {
      throw toShown(error);
    } finally {
      state.running = undefined;
    }
  };
}

/** Returns an error that test runners show as a whole. They do not show the two errors of a `SuppressedError`. */
function toShown(error: unknown): unknown {
  if (!(error instanceof Error && error.name === "SuppressedError")) return error;
  const { error: later, suppressed } = error as SuppressedError; // The cast is safe, because of the name.
  return new AggregateError([toShown(suppressed), later], "The test has failed, and so has its cleanup");
}

/** Returns the line of a test file that calls the current function. */
function findLine(): { readonly url: string; readonly line: number } {
  for (const [, url, line] of new Error().stack?.matchAll(/(file:\/\/\/[^\s()]+?_test\.ts):(\d+)/g) ?? []) {
    return { url, line: Number(line) };
  }
  throw new Error("Cannot register a test: no file whose name ends in _test.ts registers it");
}

/**
 * Options that make a test fail if it leaves timers, operations or resources behind. All tests of a file with behaviours
 * have them, because what another test leaves behind would fail a later behaviour by chance.
 */
const STRICT = { sanitizeOps: true, sanitizeResources: true };
/** Whether a test file has behaviours, by its URL. */
const strictFiles = new Map<string, boolean>();

function isStrict(url: string): boolean {
  const known = strictFiles.get(url) ?? BEHAVIOURS.test(readFileSync(new URL(url), "utf8"));
  strictFiles.set(url, known);
  return known;
}

/** Tracks the tests that a function such as `Deno.test` registers. */
function wrap(register: Register): Register {
  return (...args) => {
    const definition = Object.assign({}, ...args.filter((arg) => typeof arg === "object"));
    const run = args.find((arg) => typeof arg === "function") ?? definition.fn;
    const name = args.find((arg) => typeof arg === "string") ?? definition.name ?? run.name;
    if (name.includes("\u{e000}")) throw new Error(`Cannot register "${name}": its name contains a message`);
    const { url, line } = findLine();
    // Deno reports a test at the position of the call that registers it. This script has the name and the line of the
    // test file; a call in this file would be the position of every test.
    const add = runInThisContext("(register, test) => register(test)", { filename: url, lineOffset: line - 1 });
    return add(register, { ...isStrict(url) && STRICT, ...definition, name, fn: track(url, name, run) });
  };
}

/** Wraps `Deno.test`. Other runtimes have no such function: their replacement calls {@linkcode track}. */
function wrapDenoTest(): void {
  const { Deno: deno } = globalThis as unknown as { Deno?: Record<string, Register & Record<string, Register>> }; // Other runtimes lack it.
  const key = "test"; // Bun's configuration renames the member expression.
  if (!deno?.[key] || state.isWrapped) return;
  state.isWrapped = true;
  const { ignore, only } = deno[key];
  deno[key] = Object.assign(wrap(deno[key]), deno[key], { ignore: wrap(ignore), only: wrap(only) });
}

wrapDenoTest();
