/**
 * How the options of folders and files are checked, and what lives as long as their servers.
 *
 * @module
 */
import type { ChangeNotifier, Handler } from "../library.ts";
import { isObject } from "../kit/json.ts";
import { type OptionRule, toPlace } from "../core/call/known_options.ts";
import { DESCRIPTION } from "../handlers/option_names.ts";
import { watcher } from "../handlers/extension.ts";
import { isWindows } from "../files/local_files.ts";
import { readLocation } from "../files/path.ts";

const bytes: OptionRule = {
  findProblem: (value) =>
    Number.isSafeInteger(value) && Number(value) > 0
      ? undefined
      : `is ${String(value)}; use a positive number of bytes`,
};

/** The names of these options. */
export const LOCAL = {
  path: true,
  maxBytes: bytes,
  watch: "boolean",
  mimeType: true,
  annotations: true,
  ...DESCRIPTION,
  ttlMs: true,
  cacheScope: ["public", "private"],
  allow: "function",
  scopes: true,
  tags: "texts",
  use: "functions",
} as const satisfies Readonly<Record<string, OptionRule>>;

/** Names from other libraries. */
export const LOCAL_HINTS = { dir: "path", directory: "path", root: "path", file: "path", url: "path" } as const;

/** The default of `maxBytes`, in bytes. */
export const MAX_BYTES = 1_048_576;

/** Names what a factory makes by its path. */
export function toLocalPlace(kind: "folder" | "file", options: unknown): string {
  const path: unknown = isObject(options) ? options.path : undefined;
  return toPlace(kind, { path: path instanceof URL ? path.href : path }, "path");
}

/**
 * Reads `path`. Returns it with forward slashes.
 *
 * @throws {TypeError} if it does not name anything on this machine.
 */
export function readPath(path: unknown, place: string): string {
  try {
    return readLocation(path, isWindows);
  } catch (error) {
    throw error instanceof Error ? new TypeError(`Cannot make ${place}: ${error.message}`) : error;
  }
}

/** What lives as long as the servers with a folder or a file. */
export interface LifeParts {
  /** Names the folder or file, uniquely in a server. */
  readonly id: string;
  /** Rejects if it cannot be served. */
  readonly check: () => Promise<void>;
  /** Watches it. Returns a function that stops this. */
  readonly watch?: (server: ChangeNotifier) => () => void;
}

/** Makes a handler that checks a folder or a file when a server starts. All servers share one watcher. */
export function toLife({ id, check, watch }: LifeParts): Handler {
  const servers = new Set<ChangeNotifier>();
  const all: ChangeNotifier = {
    resourceUpdated: (uri) => servers.forEach((server) => server.resourceUpdated(uri)),
    listChanged: (list, options) => servers.forEach((server) => server.listChanged(list, options)),
  };
  let stop = () => {};
  return watcher(id, async (server) => {
    await check();
    if (!watch) return;
    servers.add(server);
    if (servers.size === 1) stop = watch(all);
    return () => {
      if (servers.delete(server) && !servers.size) stop();
    };
  });
}
