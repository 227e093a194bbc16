// Finds lines in the output of a running program.
import type { Running } from "../support/processes.ts";

/** Waits until standard error contains a complete line with all names, and returns the first such line. */
export async function waitForLine(running: Running, ...names: readonly string[]): Promise<string> {
  const all = names.map((name) => `(?=.*${name.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")})`).join("");
  const [line] = await running.waitFor(new RegExp(`^${all}.*(?=\\n)`, "m"));
  return line;
}
