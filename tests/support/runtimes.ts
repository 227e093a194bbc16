// How the tests start the CLI on each runtime.
import process from "node:process";
import { root } from "./processes.ts";

/** The commands of a runtime. */
export interface Runtime {
  readonly name: "deno" | "bun" | "node";
  /** The command that starts the CLI. */
  readonly program: readonly string[];
  /** The command that runs any file. */
  readonly file: readonly string[];
}

/** The paths of a Node executable and of the npm package's program, as JSON. If set, the tests run on Node only. */
const node = process.env.TEST_NODE;

function toNode(given: string): Runtime {
  const program: readonly string[] = JSON.parse(given);
  return { name: "node", program, file: [program[0], "--import", `${root}tests/frameworks/node_imports.ts`] };
}

const BOTH: readonly [Runtime, Runtime] = [
  { name: "deno", program: ["deno", "run", "-A", `${root}mod.ts`], file: ["deno", "run", "-A"] },
  { name: "bun", program: ["bun", `${root}mod.ts`], file: ["bun"] },
];

/** All runtimes, for tests of two processes on different runtimes. */
export const allRuntimes: readonly Runtime[] = node ? [toNode(node)] : BOTH;

/**
 * The runtimes on which a test file starts processes. With `ONE_RUNTIME`, which `.ci/run` sets, each file uses one
 * runtime: half of the files Deno, and the other half Bun. `.ci/long` runs the files on both.
 */
export const runtimes: readonly Runtime[] = allRuntimes.filter(({ name }) => isTested(name));

/** Returns whether this test file starts processes of a runtime. */
export function isTested(name: string): boolean {
  return !process.env.ONE_RUNTIME || allRuntimes.length === 1 || name === BOTH[toParity(Deno.mainModule)].name;
}

// Use only the name of the file, so that a test file has the same runtime in every folder.
function toParity(url: string): 0 | 1 {
  return [...url.replace(/.*\//, "")].reduce((sum, char) => sum + char.charCodeAt(0), 0) % 2 ? 1 : 0;
}
