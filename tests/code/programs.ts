// Runs programs for tests of code mode.
import type { Connection } from "../../src/testing/testing.ts";

/** Runs a program, and returns the texts of its result. An error begins with `!`. */
export async function run(client: Connection, code: string, by = "run_code_with_effects"): Promise<readonly string[]> {
  const { content, isError } = await client.callTool(by, { code });
  return content.map((block) => `${isError ? "!" : ""}${block.type === "text" ? block.text : block.type}`);
}

/** Returns what a program has returned, as JSON. */
export async function valueOf(client: Connection, code: string, by?: string): Promise<unknown> {
  const [text] = await run(client, code, by);
  if (text.startsWith("!")) throw new Error(text);
  return JSON.parse(text);
}
