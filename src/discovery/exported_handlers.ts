/**
 * Finds the handlers that a file exports.
 *
 * @module
 */
import { type Handler, isHandler } from "../core/visibility/feature.ts";

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
