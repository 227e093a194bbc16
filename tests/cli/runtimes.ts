// The command that starts the command line on each runtime.
import { root } from "../support/processes.ts";

/** The command that starts the command line on each runtime, and the command that runs any file. */
export const runtimes = [
  { name: "deno", program: ["deno", "run", "-A", `${root}mod.ts`], file: ["deno", "run", "-A"] },
  { name: "bun", program: ["bun", `${root}mod.ts`], file: ["bun"] },
] as const;
