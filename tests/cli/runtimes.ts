// How the tests start the CLI on each runtime.
import { root } from "../support/processes.ts";

/** For each runtime, the command that starts the CLI, and the command that runs any file. */
export const runtimes = [
  { name: "deno", program: ["deno", "run", "-A", `${root}mod.ts`], file: ["deno", "run", "-A"] },
  { name: "bun", program: ["bun", `${root}mod.ts`], file: ["bun"] },
] as const;
