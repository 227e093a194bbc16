/**
 * A server from a file of the user's.
 *
 * @module
 */
import { createServer, type Handler, type Server } from "../../mod.ts";
import { PIPE } from "../transports/pipe.ts";
import { host } from "./host.ts";
import { Problem } from "./problem.ts";

/** How to end a file so that it can be served. */
const REMEDY = "end the file with `export default createServer({ name, version, handlers })`, or with " +
  "`export default [...]` of tools, resources and prompts";

/** The URL of what the user named: a path, or a specifier such as `jsr:@scope/server`. */
export function toTargetUrl(target: string): string {
  // One letter before the colon is a drive.
  return /^[a-z][a-z\d+.-]+:/i.test(target) ? target : host.toFileUrl(target);
}

/**
 * Loads what a file exports as its default: a server, or handlers to make one of, which is then named like the file.
 *
 * @throws {Problem} if there is no file, it cannot be loaded, or it exports neither.
 */
export async function loadServer(target: string): Promise<Server> {
  const url = toTargetUrl(target);
  if (url.startsWith("file:") && !(await host.hasFile(url))) {
    throw new Problem(`Cannot serve ${target}: there is no file ${decodeURI(new URL(url).pathname)}; check the path`);
  }
  const module = await importFile(target, url);
  const { default: found } = module;
  if (isServer(found)) return found;
  if (!Array.isArray(found)) {
    const state = found === undefined ? "it has no default export" : "its default export is not a server";
    throw new Problem(`Cannot serve ${target}: ${state}; ${REMEDY}`);
  }
  try {
    // What is not a handler is refused by name.
    return createServer({ name: toName(url), version: "0.0.0", handlers: found as Handler[] });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Problem(`Cannot serve ${target}: ${error.message}`);
  }
}

async function importFile(target: string, url: string): Promise<{ readonly default?: unknown }> {
  try {
    return await import(url);
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
  return typeof value === "object" && value !== null && PIPE in value && "fetch" in value;
}

/** The name that a file without a server gives to the one that is made of it. */
export function toName(url: string): string {
  const last = url.replace(/[?#].*$/, "").split("/").at(-1) ?? "";
  return decodeURIComponent(last).replace(/\.[cm]?[jt]sx?$/, "") || "server";
}
