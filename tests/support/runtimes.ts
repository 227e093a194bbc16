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

export const runtimes: readonly Runtime[] = node ? [toNode(node)] : [
  { name: "deno", program: ["deno", "run", "-A", `${root}mod.ts`], file: ["deno", "run", "-A"] },
  { name: "bun", program: ["bun", `${root}mod.ts`], file: ["bun"] },
];
