/**
 * Checks the options of `folder()` and `file()`, and watches the folders and files while their servers run.
 */
import type { ChangeNotifier, Handler } from "../library.ts";
import { isObject } from "../core/kit/json.ts";
import { type OptionRule, toPlace } from "../core/known_options.ts";
import { DESCRIPTION } from "../server/handlers/option_names.ts";
import { watcher } from "../server/handlers/watcher.ts";
import { isWindows } from "../core/runtime.ts";
import { readLocation } from "./files/path.ts";

const bytes: OptionRule = {
  test: (value) => Number.isSafeInteger(value) && Number(value) > 0,
  remedy: "it must be a whole number above 0",
};

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

/** Option names of other libraries, each with the name to use instead. */
export const LOCAL_HINTS = { dir: "path", directory: "path", root: "path", file: "path", url: "path" } as const;

/** Default of the `maxBytes` option. */
export const MAX_BYTES = 1_048_576;

/** Returns the location for error messages, such as `folder "/srv/notes"`. */
export function toLocalPlace(kind: "folder" | "file", options: unknown): string {
  const path: unknown = isObject(options) ? options.path : undefined;
  return toPlace(kind, { path: path instanceof URL ? path.href : path }, "path");
}

/**
 * Returns the path with forward slashes.
 *
 * @throws {TypeError} if `path` is neither a path nor a `file:` URL on this machine.
 */
export function readPath(path: unknown, place: string): string {
  try {
    return readLocation(path, isWindows);
  } catch (error) {
    throw error instanceof Error ? new TypeError(`Cannot make ${place}: ${error.message}`) : error;
  }
}

export interface LifeParts {
  /** Identifies the folder or file in a server. */
  readonly id: string;
  /** Rejects if the folder or file cannot be served. */
  readonly check: () => Promise<void>;
  /** Watches the folder or file. Returns a function that stops watching, and resolves when no file is being read. */
  readonly watch?: (server: ChangeNotifier) => () => Promise<void>;
}

/** Checks the folder or file when a server starts. Several servers with the handler share one watcher. */
export function toLife({ id, check, watch }: LifeParts): Handler {
  const servers = new Set<ChangeNotifier>();
  const all: ChangeNotifier = {
    resourceUpdated: (uri, options) => servers.forEach((server) => server.resourceUpdated(uri, options)),
    listChanged: (list, options) => servers.forEach((server) => server.listChanged(list, options)),
  };
  let stop = async () => {};
  return watcher(id, async (server) => {
    await check();
    if (!watch) return;
    servers.add(server);
    if (servers.size === 1) stop = watch(all);
    return async () => {
      if (servers.delete(server) && !servers.size) await stop();
    };
  });
}
