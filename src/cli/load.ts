/**
 * A server from a file of the user's.
 *
 * @module
 */
import { createServer, type Handler, type Server } from "../library.ts";
import { INTERNALS } from "../core/internals.ts";
import { platform } from "./platform.ts";
import { importPart } from "./parts.ts";
import { Problem } from "./problem.ts";

/** How to end a file so that it can be served. */
const REMEDY = "end the file with `export default createServer({ name, version, handlers })`, or with " +
  "`export default [...]` of tools, resources and prompts";

/** The URL of what the user named: a path, or a specifier such as `jsr:@scope/server`. */
export function toTargetUrl(target: string): string {
  // One letter before the colon is a drive.
  return /^[a-z][a-z\d+.-]+:/i.test(target) ? target : platform.toFileUrl(target);
}

/** Something of a target that can be used, and should be looked at. */
export interface LoadWarning {
  /** Such as `tool add`. */
  readonly place: string;
  readonly state: string;
}

/** A server that was made of a target, and how it is kept up to date. */
export interface Loaded {
  readonly server: Server;
  /** The files it was read from, as far as they are known. */
  readonly files: readonly string[];
  /** What should be looked at. */
  readonly warnings?: readonly LoadWarning[];
  /** Tells clients when what it offers changes, until the function that it returns is called. */
  watch?(): () => void;
  /**
   * Reads the files again, and puts what they give now in the place of what they gave. Clients stay connected.
   *
   * @throws {Problem} if they cannot be used; then all stays as it was.
   */
  reload?(): Promise<readonly string[]>;
}

/** What is served when nothing is named: a file here, or nothing. */
export async function findTarget(): Promise<string | undefined> {
  for (const name of ["mcp.jsonc", "server.ts"]) {
    try {
      const path = platform.toPath(name);
      if (platform.mayRead(path) && (await platform.files.look(path))?.kind === "file") return `./${name}`;
    } catch {
      // The working directory is gone, or may not be looked at.
    }
  }
}

/**
 * Makes a server of a target: a folder, a config file, or a file that exports a server or handlers.
 *
 * @throws {Problem} if it is none of these, or cannot be used.
 */
export async function load(target: string): Promise<Loaded> {
  const kind = await toKind(target);
  if (kind === "module") return await loadModule(target);
  const path = platform.toPath(target);
  // Before anything is fetched that config files need.
  if (kind === "config" && !(await platform.hasFile(platform.toFileUrl(target)))) {
    throw new Problem(`Cannot use ${target}: there is no file ${path}; check the path`);
  }
  const { loadConfig, loadFolder } = await importPart("./config/server.ts");
  return await (kind === "folder" ? loadFolder : loadConfig)(target, path);
}

/** What a target is, by its name and by what is there. */
export async function toKind(target: string): Promise<"folder" | "config" | "module"> {
  // As a path it would be the working directory, which a variable that is not set must not give away.
  if (!target) throw new Problem('Cannot use "": the target is empty; name a file or folder, such as . for this one');
  if (!toTargetUrl(target).startsWith("file:") || /^file:/i.test(target)) return "module";
  const facts = await platform.files.look(platform.toPath(target)).catch(() => undefined);
  if (facts?.kind === "folder") return "folder";
  return /\.jsonc?$/i.test(target) ? "config" : "module";
}

/** Loads what a file exports as its default: a server, or handlers to make one of, which is then named like the file. */
async function loadModule(target: string): Promise<Loaded> {
  const url = toTargetUrl(target);
  const isFile = url.startsWith("file:");
  if (isFile && !(await platform.hasFile(url))) {
    throw new Problem(`Cannot serve ${target}: there is no file ${decodeURI(new URL(url).pathname)}; check the path`);
  }
  const server = toServer(target, await importDefault(target, url));
  const files = isFile ? [decodeURIComponent(new URL(url).pathname)] : [];
  let version = 0;

  async function reload(): Promise<readonly string[]> {
    const next = toServer(target, await importDefault(target, url, ++version));
    swapHandlers(server, next.handlers.list());
    await next.close();
    return files;
  }

  // The file may have an older copy of this library.
  return { server, files, reload: isFile && "list" in server.handlers ? reload : undefined };
}

function toServer(target: string, found: unknown): Server {
  if (isServer(found)) return found;
  if (!Array.isArray(found)) {
    const state = found === undefined ? "it has no default export" : "its default export is not a server";
    throw new Problem(`Cannot serve ${target}: ${state}; ${REMEDY}`);
  }
  try {
    // What is not a handler is refused by name.
    return createServer({ name: toName(toTargetUrl(target)), version: "0.0.0", handlers: found as Handler[] });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Problem(`Cannot serve ${target}: ${error.message}`);
  }
}

/** Puts handlers in the place of all that a server has; clients are told once. What cannot stand changes nothing. */
export function swapHandlers(server: Server, handlers: readonly Handler[]): void {
  const before = server.handlers.list();
  server.handlers.remove(...before);
  try {
    server.handlers.add(...handlers);
  } catch (error) {
    server.handlers.add(...before);
    throw error instanceof TypeError ? new Problem(error.message) : error;
  }
}

/**
 * The default export of a file. With a `version` that was not used before, the file is loaded anew.
 *
 * @throws {Problem} if it cannot be loaded.
 */
export async function importDefault(target: string, url: string, version = 0): Promise<unknown> {
  try {
    return (await import(version ? platform.toImport(url, version) : url)).default;
  } catch (error) {
    throw new Problem(`Cannot load ${target}: ${tellError(error)}`);
  }
}

// An error of the file's own code is found by its stack; one of the file's text by what the runtime says of it.
function tellError(error: unknown): string {
  if (!(error instanceof Error)) return `it threw ${String(error)} while loading; mend it and start again`;
  const { message } = error;
  if (/^Requires \w+ access/.test(message)) return `${message}, or with -A for all permissions`;
  const position = "position" in error ? error.position : undefined;
  if (isPosition(position)) return `${message}\n    at ${position.file}:${position.line}:${position.column}\n${MEND}`;
  if (error instanceof AggregateError) return error.errors.map(tellError).join("\n");
  const isText = "code" in error && error.code === "ERR_MODULE_NOT_FOUND" || error instanceof SyntaxError;
  return isText ? `${message}\n${MEND}` : `it threw an error while loading:\n${error.stack ?? message}\n${MEND}`;
}

const MEND = "Mend the file and start again.";

function isPosition(
  value: unknown,
): value is { readonly file: string; readonly line: number; readonly column: number } {
  return typeof value === "object" && value !== null && "file" in value && "line" in value && "column" in value;
}

// By name: the file may have a copy of this library of its own.
function isServer(value: unknown): value is Server {
  return typeof value === "object" && value !== null && INTERNALS in value && "fetch" in value;
}

/** The name that a file without a server gives to the one that is made of it. */
export function toName(url: string): string {
  const last = url.replace(/[?#].*$/, "").split("/").at(-1) ?? "";
  return decodeURIComponent(last).replace(/\.[cm]?[jt]sx?$/, "") || "server";
}
