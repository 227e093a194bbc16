// Serves the text files below one folder. An input guard rejects paths outside of the folder. An output guard masks API
// keys in the results. To serve another folder, set FOLDER: FOLDER=/srv/docs deno run -A mod.ts examples/files.ts
import { readdir, readFile, realpath } from "node:fs/promises";
import { isAbsolute, relative, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createServer, tool, ToolError } from "@x/mcp";
import { guard, type InputGuard } from "@x/mcp/layers";
import { z } from "zod";

const root = await realpath(process.env.FOLDER ?? fileURLToPath(new URL("./project/docs", import.meta.url)));

/** Replaces a path with the file's real path, without symbolic links. Rejects paths outside of the folder. */
const insideRoot: InputGuard<{ path: string }> = async ({ path }) => {
  const real = await realpath(resolve(root, path)).catch(() => undefined);
  const inner = real === undefined ? ".." : relative(root, real);
  // Use the same message for a missing file. A different message would reveal which files exist outside of the folder.
  if (real === undefined || inner.split(/[\\/]/)[0] === ".." || isAbsolute(inner)) {
    throw new ToolError(`There is no ${path} in the folder. Call list_files, and use a path from there.`);
  }
  return { path: real };
};

const KEY = /\b(sk|ghp|xoxb)[-_][\w-]{8,}/g;

/** Masks API keys in all strings of a value. */
function hideKeys(value: unknown): unknown {
  if (typeof value === "string") return value.replace(KEY, "[hidden]");
  if (Array.isArray(value)) return value.map(hideKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, hideKeys(part)]));
}

// This guard applies to all tools, including tools that are added later.
const use = [guard({ output: [hideKeys] })];

const readText = tool({
  name: "read_file",
  title: "Read a file",
  description: "Reads a text file below the folder",
  input: z.object({ path: z.string().describe("Path from list_files") }),
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  use: [guard({ input: [insideRoot] })],
  run: async ({ path }) => ({ path: relative(root, path), text: await readFile(path, "utf8") }),
});

const list = tool({
  name: "list_files",
  title: "List files",
  description: "Lists all files below the folder",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  async run() {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return {
      files: entries.filter((one) => one.isFile()).map((one) => relative(root, resolve(one.parentPath, one.name))),
    };
  },
});

export default createServer({ name: "files", version: "1.0.0", use, handlers: [list, readText] });
