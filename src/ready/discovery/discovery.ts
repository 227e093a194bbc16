/**
 * Loads a server's handlers from the files in a folder.
 *
 * ```ts ignore
 * import { createServer } from "@x/mcp";
 * import { discover } from "@x/mcp/discovery";
 *
 * const handlers = await discover(new URL("./handlers/", import.meta.url));
 * export default createServer({ name: "notes", version: "1.0.0", handlers });
 * ```
 *
 * @module
 */
import { toState } from "../../core/kit/error_state.ts";
import type { Handler } from "../../server/visibility/feature.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { deno, findProcess, isCompiled } from "../../core/runtime.ts";
import { toExportedHandlers } from "./exported_handlers.ts";
import { isHandlerFile, isSkipped } from "./handler_file.ts";

/** Options of {@linkcode discover}. */
export interface DiscoverOptions {
  /** Whether to load files from subfolders too. Defaults to `false`. */
  readonly recursive?: boolean;
}

const OPTIONS: KnownOptions<keyof DiscoverOptions> = { names: { recursive: "boolean" } };

/**
 * Imports the files in a folder, sorted by URL, and returns all handlers that these files export, individually or in
 * arrays. Needs read permission on Deno.
 *
 * Skips tests, benchmarks, type declarations, `node_modules`, and names that begin with `.` or `_`. To keep shared code
 * in the folder, begin its file name with `_`.
 *
 * A compiled executable contains the files only if you list the files when you compile: `deno compile --include
 * handlers`, or `bun build --compile server.ts handlers/*.ts`.
 *
 * @throws {TypeError} if the folder cannot be read, or a file exports no handler.
 */
export async function discover(folder: URL, options: DiscoverOptions = {}): Promise<readonly Handler[]> {
  checkOptions("discover handlers", options, OPTIONS);
  if (!(folder instanceof URL) || folder.protocol !== "file:") {
    const state = folder instanceof URL ? `${folder} is not a file: URL` : "the folder is not a URL";
    throw new TypeError(`Cannot discover handlers: ${state}; use new URL("./handlers/", import.meta.url)`);
  }
  const root = new URL(folder.href.endsWith("/") ? folder.href : `${folder.href}/`);
  const handlers: Handler[] = [];
  for (const url of await listFiles(root, options)) {
    try {
      // Importing these files is safe, because the server's author has put them into the folder.
      handlers.push(...toExportedHandlers(await import(url.href)));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      const remedy = isCompiled() ? COMPILED : "";
      throw new TypeError(`Cannot load handlers from ${toPath(url)}: ${error.message}${remedy}`, { cause: error });
    }
  }
  return handlers;
}

async function listFiles(folder: URL, options: DiscoverOptions): Promise<readonly URL[]> {
  const found: URL[] = [];
  for (const { name, isFolder } of await listFolder(folder)) {
    if (isSkipped(name)) continue;
    const url = new URL(encodeURIComponent(name) + (isFolder ? "/" : ""), folder);
    if (!isFolder && isHandlerFile(name)) found.push(url);
    else if (isFolder && options.recursive) found.push(...await listFiles(url, options));
  }
  return found.sort((a, b) => a.href < b.href ? -1 : 1);
}

/** Cause and remedy to append to an error if a compiled executable cannot load a file by its path. */
const COMPILED = "; this compiled executable contains only the files that were listed at compile time; " +
  "compile with `deno compile --include handlers` or `bun build --compile server.ts handlers/*.ts`, or import the files";

interface Entry {
  readonly name: string;
  readonly isFolder: boolean;
}

async function listFolder(folder: URL): Promise<readonly Entry[]> {
  const path = toPath(folder);
  try {
    if (deno) {
      return (await Array.fromAsync(deno.readDir(path))).map((each) => ({ ...each, isFolder: each.isDirectory }));
    }
    const entries = await findProcess().getBuiltinModule("fs").promises.readdir(path, { withFileTypes: true });
    return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
  } catch (error) {
    const remedy = isCompiled() ? COMPILED : "";
    throw new TypeError(`Cannot discover handlers in ${path}: ${toState(error)}${remedy}`, { cause: error });
  }
}

function toPath(url: URL): string {
  return decodeURIComponent(url.pathname).replace(/^\/([a-z]:)/i, "$1");
}
