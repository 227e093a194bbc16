/**
 * Serves the handlers of all files that match a pattern, such as `handlers/*.ts`.
 */
import { isHandler } from "../host.ts";
import { createServer, type Handler } from "../library.ts";
import { CliError, withAction } from "./cli_error.ts";
import { toBaseFolder, toMatcher, toRelativePattern } from "../ready/files/glob.ts";
import { Folder } from "../ready/files/confined_folder.ts";
import type { ImportGraph } from "./import_graph.ts";
import { importFile } from "./import_file.ts";
import { type Loaded, swapHandlers } from "./loaded.ts";
import { toBaseName } from "../ready/files/path.ts";
import { platform } from "./platform.ts";
import { toFilePath } from "./target_url.ts";

const MAX_FILES = 1000;

/**
 * Creates a server with the handlers that the matching files export. The name of the server is the name of the files'
 * folder.
 *
 * @throws {CliError} if no file matches, or a file cannot be used.
 */
export async function loadPattern(target: string, imports?: ImportGraph): Promise<Loaded> {
  const { root, folder, list } = await openPattern(target);

  async function readHandlers(): Promise<{ readonly handlers: readonly Handler[]; readonly files: readonly string[] }> {
    const paths = await list();
    const handlers: Handler[] = [];
    for (const path of paths) handlers.push(...await importHandlers(path));
    const urls = paths.map((path) => platform.toFileUrl(path));
    const files = new Set(imports ? urls.flatMap((url) => imports.list(url)).map(toFilePath) : paths);
    // Also watch the folder, because new files may match the pattern.
    return { handlers, files: [...files, root] };
  }

  async function reload(changed: readonly string[]): Promise<readonly string[]> {
    const urls = (await folder.walk(MAX_FILES)).map(({ real }) => platform.toFileUrl(real));
    imports?.renew(urls, changed.map((path) => platform.toFileUrl(path)));
    const { handlers, files } = await readHandlers();
    swapHandlers(server, handlers);
    return files;
  }

  const { handlers, files } = await readHandlers();
  const name = toBaseName(root) || "server";
  const server = await withAction(
    `Cannot serve ${target}`,
    () => createServer({ name, version: "0.0.0", handlers }),
  );
  return { server, files, reload: imports && reload };
}

/**
 * Returns the paths of the files that match a pattern and can export handlers.
 *
 * @throws {CliError} if there are no such files.
 */
export async function listHandlerFiles(target: string): Promise<readonly string[]> {
  return await (await openPattern(target)).list();
}

async function openPattern(target: string) {
  const pattern = platform.toPath(target);
  const base = toBaseFolder(pattern) || "/";
  const root = await platform.files.resolve(base);
  if (root === undefined) throw new CliError(`Cannot serve ${target}: there is no folder ${base}; check the path`);
  const matches = toMatcher(toRelativePattern(pattern));
  const folder = new Folder({ root, maxBytes: 0 });

  async function list(): Promise<readonly string[]> {
    const found = (await folder.walk(MAX_FILES)).filter(({ path }) => matches(path));
    if (!found.length) throw new CliError(`Cannot serve ${target}: no file matches the pattern; check the pattern`);
    const paths = found.filter(({ path }) => canExportHandlers(path)).map(({ real }) => real);
    if (paths.length) return paths;
    const state = `${toBaseName(base)}/${found[0].path} is not a JavaScript or TypeScript file, or is a test, or ` +
      "its name begins with _";
    throw new CliError(`Cannot serve ${target}: ${state}; write a pattern for .ts or .js files that export handlers`);
  }

  return { root, folder, list };
}

/** Whether `discover` would load a file. `path` is relative to the folder of the pattern. */
function canExportHandlers(path: string): boolean {
  const isSkipped = /(^|\/)([._]|node_modules\/)/.test(path) || /[._](test|bench|spec|d)\.[^./]+$/i.test(path);
  return !isSkipped && /\.[cm]?[jt]sx?$/i.test(path);
}

async function importHandlers(path: string): Promise<readonly Handler[]> {
  const exports = await importFile(path, platform.toFileUrl(path), (exports) => exports);
  const handlers = Object.values(exports).flat().filter(isHandler);
  if (handlers.length) return [...new Set(handlers)];
  const state = "it exports no tool, resource or prompt; write `export const add = tool({ … })`";
  throw new CliError(`Cannot serve ${path}: ${state}`);
}
