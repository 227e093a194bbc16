/**
 * Loads a server from a target, such as a file that exports a server, a config file, or a folder.
 */
import { createServer, type Handler, type Server } from "../library.ts";
import { isServer, listEndpoints } from "../host.ts";
import type { ImportGraph } from "./import_graph.ts";
import { platform } from "./platform.ts";
import { importModule } from "./lazy_modules.ts";
import { CliError, withAction } from "./cli_error.ts";
import { importDefault } from "./import_file.ts";
import { type Loaded, type LoadOptions, swapHandlers } from "./loaded.ts";
import { toFilePath, toName, toTargetUrl } from "./target_url.ts";

const REMEDY = "end the file with `export default createServer({ name, version, handlers })`, or with " +
  "`export default [...]` of tools, resources and prompts";

/** The URL schemes from which the runtimes can import files. */
const SCHEMES = ["file:", "http:", "https:", "jsr:", "npm:", "data:", "blob:"];

/** Returns the default target in the working directory, or `undefined` if there is no such target. */
export async function findTarget(): Promise<string | undefined> {
  for (const name of ["mcp.jsonc", "server.ts"]) {
    try {
      const path = platform.toPath(name);
      if (platform.mayRead(path) && await platform.findKind(path) === "file") return `./${name}`;
    } catch {
      // Ignore the error: the working directory was deleted, or may not be read.
    }
  }
}

/**
 * Loads a target: a folder, a config file, a file that exports a server or handlers, or a pattern of such files. With
 * `imports`, the target can be reloaded when a file that it imports has changed.
 *
 * @throws {CliError} if the target cannot be loaded.
 */
export async function load(target: string, options: LoadOptions = {}): Promise<Loaded> {
  const { imports } = options;
  const kind = await toKind(target);
  if (kind === "module") return await loadModule(target, imports);
  if (kind === "pattern") {
    const { loadPattern } = await importModule<typeof import("./handler_files.ts")>("./handler_files.ts");
    return await loadPattern(target, imports);
  }
  const path = platform.toPath(target);
  // Check whether the file exists before loading the code that reads config files, because loading this code may
  // download packages.
  if (kind === "config" && !(await hasFile(path))) {
    throw new CliError(`Cannot use ${target}: there is no file ${path}; check the path`);
  }
  const { loadConfig, loadFolder } = await importModule<typeof import("./config/server.ts")>("./config/server.ts");
  return await (kind === "folder" ? loadFolder(target, path) : loadConfig(target, path, options));
}

/** Whether a file exists. Also returns `true` without permission to read the file. */
async function hasFile(path: string): Promise<boolean> {
  return await platform.findKind(path).then((kind) => kind === "file", () => true);
}

/** Returns the kind of a target, which depends on its name and on whether a file or folder exists. */
export async function toKind(target: string): Promise<"folder" | "config" | "module" | "pattern"> {
  // Reject an empty target. An empty path would mean the working directory, but an empty target usually comes from a
  // shell variable that is not set.
  if (!target) {
    throw new CliError(
      'Cannot use "": the target is empty; name a file or a folder, such as . for the working directory',
    );
  }
  const [, scheme] = /^([a-z][a-z\d+.-]+:)/i.exec(target) ?? [];
  if (scheme !== undefined && !SCHEMES.includes(scheme.toLowerCase())) {
    throw new CliError(
      `Cannot use ${target}: ${scheme} is not a scheme for files; name a file, a folder, a package such as ` +
        `jsr:@scope/server, or ./${target} for a file with this name`,
    );
  }
  if (scheme !== undefined) return "module";
  const kind = await platform.findKind(platform.toPath(target)).catch(() => undefined);
  if (kind === "folder") return "folder";
  if (!kind && /[*{]/.test(target)) return "pattern";
  if (/\.jsonc?$/i.test(target)) return "config";
  if (/\.(ya?ml|toml|json5)$/i.test(target)) {
    throw new CliError(`Cannot use ${target}: a config file must be JSON with comments; convert the file to mcp.jsonc`);
  }
  const [extension] = /\.\w+$/.exec(target) ?? [];
  if (!kind || extension === undefined || /^\.[cm]?[jt]sx?$/i.test(extension)) return "module";
  throw new CliError(
    `Cannot use ${target}: a ${extension} file is neither code for Deno or Bun nor a config file; for a server in ` +
      "another language, use call, read, prompt or inspect, and write the server's start command after --",
  );
}

/** If the file exports handlers, the server gets the file's name. */
async function loadModule(target: string, imports?: ImportGraph): Promise<Loaded> {
  const url = toTargetUrl(target);
  const isFile = url.startsWith("file:");
  if (isFile && !(await hasFile(toFilePath(url)))) {
    const path = toFilePath(url);
    if (await platform.findKind(path).catch(() => undefined) === "other") {
      throw new CliError(`Cannot serve ${target}: it is neither a file nor a folder; check the path`);
    }
    const { suggestFile } = await importModule<typeof import("./load_error.ts")>("./load_error.ts");
    throw new CliError(`Cannot serve ${target}: there is no file ${path}; ${await suggestFile(target, path)}`);
  }
  const server = await toServer(target, await importDefault(target, url));
  // Do not reload a server from an older copy of this library, because its handlers cannot be listed.
  if (!isFile || !imports || !("list" in server.handlers)) return { server, files: isFile ? [toFilePath(url)] : [] };
  const listFiles = () => imports.list(url).map(toFilePath);

  async function reload(changed: readonly string[]): Promise<readonly string[]> {
    if (listEndpoints(server).some(({ params }) => params.length)) {
      throw new CliError(
        `Cannot reload ${target}: its handlers may depend on the parameters of the path; restart the command`,
      );
    }
    imports?.renew([url], changed.map((path) => platform.toFileUrl(path)));
    const next = await toServer(target, await importDefault(target, url));
    try {
      swapAll(toPairs(target, server, next));
    } finally {
      await next.close();
    }
    return listFiles();
  }

  return { server, files: listFiles(), reload };
}

async function toServer(target: string, found: unknown): Promise<Server> {
  if (isServer(found)) return found;
  if (!Array.isArray(found)) {
    const state = found === undefined ? "it has no default export" : "its default export is not a server";
    throw new CliError(`Cannot serve ${target}: ${state}; ${REMEDY}`);
  }
  const name = toName(toTargetUrl(target));
  // The cast is safe, because `createServer` rejects values that are not handlers.
  const handlers = found as Handler[];
  return await withAction(`Cannot serve ${target}`, () => createServer({ name, version: "0.0.0", handlers }));
}

/** A running server, and a newly loaded server whose handlers replace the handlers of the running server. */
interface ReloadedServer {
  readonly running: Server;
  readonly next: Server;
}

/** If the file has several servers, pairs servers with the same path. */
function toPairs(target: string, server: Server, next: Server): readonly ReloadedServer[] {
  const all = listEndpoints(server);
  return listEndpoints(next).map(({ name, path, server: next }) => {
    const running = all.length > 1 ? all.find((other) => other.path === path) : all[0];
    if (running) return { running: running.server, next };
    throw new CliError(
      `Cannot reload ${target}: it has a new server ${name}; restart the command to serve the new server`,
    );
  });
}

/** Replaces the handlers of several servers. If the function throws, no handlers are replaced. */
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
