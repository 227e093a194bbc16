/**
 * Finds the handlers that a file exports.
 *
 * @module
 */
import type { Handler } from "../core/visibility/feature.ts";
import { INTERNALS } from "../core/call/internals.ts";

/**
 * The handlers among the exports of a file, also those in exported arrays. Each is listed once, in the order of the
 * names of the exports.
 *
 * @throws {TypeError} if the file exports none.
 */
export function toExportedHandlers(exports: Readonly<Record<string, unknown>>): readonly Handler[] {
  const handlers = Object.values(exports).flat().filter(isHandler);
  if (!handlers.length) {
    throw new TypeError("it exports no tool, resource or prompt; write `export const add = tool({ … })`");
  }
  return [...new Set(handlers)];
}

/** Tests for a handler, of any copy of this library. A server is none. */
export function isHandler(value: unknown): value is Handler {
  return typeof value === "object" && value !== null && INTERNALS in value && "name" in value && !("fetch" in value);
}
