// Helpers for tests that start processes, on Deno and Bun.
import { readdirSync } from "node:fs";
import { withFolder } from "./folder.ts";
import { targets } from "./import_map.ts";

/** Whether this runtime is not Deno. Only Deno starts the processes of both runtimes. */
export const isNotDeno: boolean = typeof Deno === "undefined";

/** The `_meta` that requests of revision 2026-07-28 require. */
export const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** Returns a JSON-RPC request as a line for standard input. */
export function toRequestLine(method: string, params: Record<string, unknown>, id: number | string = 1): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
}

/** Registers a test that is skipped on other runtimes than Deno, because it starts processes. */
export function testProcesses(
  name: string,
  fn: (t: Deno.TestContext) => Promise<void>,
  { ignore = false }: { readonly ignore?: boolean } = {},
): void {
  Deno.test({ name, ignore: ignore || isNotDeno, fn });
}

/**
 * Runs `use` in a temporary folder outside of the project. Content that is not a string is written as JSON. Names from
 * the import map, such as `"@x/mcp"`, become paths in this project. The folder's path contains no symbolic links.
 */
export async function withFiles(
  files: Readonly<Record<string, unknown>>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const toFile = (written: string, entry: string) => JSON.stringify(targets.get(entry)) ?? written;
  const written = Object.entries(files).map(([name, content]) => {
    const text = typeof content === "string" ? content : JSON.stringify(content);
    return [name, text.replace(/"(@x\/mcp(?:\/[\w/-]+)?)"/g, toFile)];
  });
  await withFolder(Object.fromEntries(written), use);
}

/** Returns the sorted names of the entries in a folder. */
export function listNames(folder: string): string[] {
  return readdirSync(folder).sort();
}
