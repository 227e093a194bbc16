/**
 * Loads a server from a target: a file that exports a server, a config file, or a folder.
 *
 * @module
 */
import { createServer, type Handler, type Server } from "../library.ts";
import { isServer, listEndpoints } from "../host.ts";
import { toPrintable } from "../protocol/printable.ts";
import { startBackgroundTimer } from "../runtime.ts";
import type { ImportGraph } from "./import_graph.ts";
import { platform } from "./platform.ts";
import { importModule } from "./lazy_modules.ts";
import { CliError } from "./cli_error.ts";

/** The remedy for a file without a server. */
const REMEDY = "end the file with `export default createServer({ name, version, handlers })`, or with " +
  "`export default [...]` of tools, resources and prompts";

/** The schemes from which the runtimes import files. */
const SCHEMES = ["file:", "http:", "https:", "jsr:", "npm:", "data:", "blob:"];

/** The URL of a target: a path, or a specifier such as `jsr:@scope/server`. */
export function toTargetUrl(target: string): string {
  // A single letter before the colon is a drive.
  return /^[a-z][a-z\d+.-]+:/i.test(target) ? target : platform.toFileUrl(target);
}

/** A loaded target. */
export interface Loaded {
  readonly server: Server;
  /** The files it was read from, as far as known. */
  readonly files: readonly string[];
  /** Watches the files that the server offers, and notifies clients of changes. Returns a function that stops this. */
  watch?(): () => void;
  /**
   * Reads the changed files again and replaces the server's handlers. Clients stay connected. Returns the files to watch.
   *
   * @throws {CliError} if the files cannot be used. The handlers then stay the same.
   */
  reload?(changed: readonly string[]): Promise<readonly string[]>;
}

/** The default target in the working directory. Returns `undefined` if there is none. */
export async function findTarget(): Promise<string | undefined> {
  for (const name of ["mcp.jsonc", "server.ts"]) {
    try {
      const path = platform.toPath(name);
      if (platform.mayRead(path) && (await platform.files.stat(path))?.kind === "file") return `./${name}`;
    } catch {
      // The working directory was deleted, or may not be read.
    }
  }
}

/**
 * Loads a target: a folder, a config file, a file that exports a server or handlers, or a pattern of such files. With
 * `imports`, a file can be reloaded when a file that it imports has changed.
 *
 * @throws {CliError} if it cannot be loaded.
 */
export async function load(target: string, imports?: ImportGraph): Promise<Loaded> {
  const kind = await toKind(target);
  if (kind === "module") return await loadModule(target, imports);
  if (kind === "pattern") return await (await importModule("./handler_files.ts")).loadPattern(target, imports);
  const path = platform.toPath(target);
  // Checked first, because loading the reader of config files may download packages.
  if (kind === "config" && !(await platform.hasFile(platform.toFileUrl(target)))) {
    throw new CliError(`Cannot use ${target}: there is no file ${path}; check the path`);
  }
  const { loadConfig, loadFolder } = await importModule("./config/server.ts");
  return await (kind === "folder" ? loadFolder(target, path) : loadConfig(target, path, imports));
}

/** The kind of a target, from its name and its file. */
export async function toKind(target: string): Promise<"folder" | "config" | "module" | "pattern"> {
  // The empty path is the working directory. A shell variable that is not set must not serve it.
  if (!target) {
    throw new CliError(
      'Cannot use "": the target is empty; name a file or a folder, such as . for the working directory',
    );
  }
  const [, scheme] = /^([a-z][a-z\d+.-]+:)/i.exec(target) ?? [];
  if (scheme !== undefined && !SCHEMES.includes(scheme.toLowerCase())) {
    throw new CliError(
      `Cannot use ${target}: no file has the scheme ${scheme}; name a file, a folder, a package such as ` +
        `jsr:@scope/server, or ./${target} for a file with this name`,
    );
  }
  if (scheme !== undefined) return "module";
  const facts = await platform.files.stat(platform.toPath(target)).catch(() => undefined);
  if (facts?.kind === "folder") return "folder";
  if (!facts && /[*{]/.test(target)) return "pattern";
  if (/\.jsonc?$/i.test(target)) return "config";
  if (/\.(ya?ml|toml|json5)$/i.test(target)) {
    throw new CliError(`Cannot use ${target}: a config file is JSON with comments; write it as mcp.jsonc`);
  }
  const [extension] = /\.\w+$/.exec(target) ?? [];
  if (!facts || extension === undefined || /^\.[cm]?[jt]sx?$/i.test(extension)) return "module";
  throw new CliError(
    `Cannot use ${target}: a ${extension} file is neither code for Deno or Bun nor a config file; ` +
      "to use a server in another language, write the command that starts it after -- (call, read, prompt, inspect)",
  );
}

/** Loads the default export of a file: a server, or handlers of a server that is named after the file. */
async function loadModule(target: string, imports?: ImportGraph): Promise<Loaded> {
  const url = toTargetUrl(target);
  const isFile = url.startsWith("file:");
  if (isFile && !(await platform.hasFile(url))) {
    const path = toFilePath(url);
    if ((await platform.files.stat(path).catch(() => undefined))?.kind === "other") {
      throw new CliError(`Cannot serve ${target}: it is neither a file nor a folder; check the path`);
    }
    const { suggestFile } = await importModule("./load_error.ts");
    throw new CliError(`Cannot serve ${target}: there is no file ${path}; ${await suggestFile(target, path)}`);
  }
  const server = toServer(target, await importDefault(target, url));
  // The file may use an older copy of this library, whose handlers cannot be listed.
  if (!isFile || !imports || !("list" in server.handlers)) return { server, files: isFile ? [toFilePath(url)] : [] };
  const listFiles = () => imports.list(url).map(toFilePath);

  async function reload(changed: readonly string[]): Promise<readonly string[]> {
    if (listEndpoints(server).some(({ params }) => params.length)) {
      throw new CliError(`Cannot reload ${target}: handlers may depend on the parameters of the path; restart it`);
    }
    imports?.renew([url], changed.map((path) => platform.toFileUrl(path)));
    const next = toServer(target, await importDefault(target, url));
    try {
      swapAll(toPairs(target, server, next));
    } finally {
      await next.close();
    }
    return listFiles();
  }

  return { server, files: listFiles(), reload };
}

/** The path of a file URL. */
export function toFilePath(url: string): string {
  return decodeURIComponent(new URL(url).pathname);
}

function toServer(target: string, found: unknown): Server {
  if (isServer(found)) return found;
  if (!Array.isArray(found)) {
    const state = found === undefined ? "it has no default export" : "its default export is not a server";
    throw new CliError(`Cannot serve ${target}: ${state}; ${REMEDY}`);
  }
  try {
    // `createServer` rejects anything that is not a handler.
    return createServer({ name: toName(toTargetUrl(target)), version: "0.0.0", handlers: found as Handler[] });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CliError(`Cannot serve ${target}: ${error.message}`);
  }
}

/** A running server and its reloaded version. */
interface ReloadedServer {
  readonly running: Server;
  readonly next: Server;
}

/** Matches each reloaded server with its running one, by path if there are several. */
function toPairs(target: string, server: Server, next: Server): readonly ReloadedServer[] {
  const all = listEndpoints(server);
  return listEndpoints(next).map(({ name, path, server: next }) => {
    const running = all.length > 1 ? all.find((other) => other.path === path) : all[0];
    if (running) return { running: running.server, next };
    throw new CliError(`Cannot reload ${target}: the server ${name} is new; restart it`);
  });
}

/** Replaces the handlers of several servers. Changes none if it throws. */
function swapAll(pairs: readonly ReloadedServer[]): void {
  const undo: (() => void)[] = [];
  try {
    for (const { running, next } of pairs) {
      const before = running.handlers.list();
      swapHandlers(running, next.handlers.list());
      undo.push(() => swapHandlers(running, before));
    }
  } catch (error) {
    undo.forEach((run) => run());
    throw error;
  }
}

/** Replaces all handlers of a server and notifies clients once. Changes nothing if it throws. */
export function swapHandlers(server: Server, handlers: readonly Handler[]): void {
  const before = server.handlers.list();
  server.handlers.remove(...before);
  try {
    server.handlers.add(...handlers);
  } catch (error) {
    server.handlers.add(...before);
    throw error instanceof TypeError ? new CliError(error.message) : error;
  }
}

/**
 * Imports the default export of a file.
 *
 * @throws {CliError} if the file cannot be loaded.
 */
export async function importDefault(target: string, url: string): Promise<unknown> {
  return await importFile(target, url, async (exports) => await exports.default);
}

/**
 * Imports a file, and passes what it exports to `read`.
 *
 * @throws {CliError} if the file cannot be loaded.
 */
export async function importFile<T>(
  target: string,
  url: string,
  // Within the import, because a file may export a promise that rejects.
  read: (exports: Readonly<Record<string, unknown>>) => T | Promise<T>,
): Promise<T> {
  // In the background, so that Deno still notices modules that wait for each other.
  const stopNotice = startBackgroundTimer(() => {
    console.error(
      toPrintable(`Waiting for ${target}: it has not finished loading; check what it awaits at its top level`),
    );
  }, NOTICE_MS);
  try {
    return await read(await import(url));
  } catch (error) {
    const remedy = /^https?:/i.test(url)
      ? "Name a file. To use a server that runs at this URL, choose the command call, inspect or doctor."
      : url.startsWith("file:")
      ? "Fix the file."
      : "Check the name.";
    const { explainLoadError } = await importModule("./load_error.ts");
    throw new CliError(`Cannot load ${target}: ${explainLoadError(error, remedy)}`);
  } finally {
    stopNotice();
  }
}

/** The time after which the command prints that a file is still loading, in milliseconds. */
const NOTICE_MS = 5000;

/** The name of a server whose file exports handlers only. */
export function toName(url: string): string {
  const last = url.replace(/[?#].*$/, "").split("/").at(-1) ?? "";
  return decodeURIComponent(last).replace(/\.[cm]?[jt]sx?$/, "") || "server";
}
