/**
 * Finds the handlers that a file exports.
 *
 * @module
 */
import { type Handler, isHandler } from "../core/visibility/feature.ts";

/**
 * Returns the handlers among the exports of a file, including handlers in exported arrays. Each handler is listed once,
 * in the order of the names of the exports.
 *
 * @throws {TypeError} if the file exports no handler.
 */
export function toExportedHandlers(exports: Readonly<Record<string, unknown>>): readonly Handler[] {
  const handlers = Object.values(exports).flat().filter(isHandler);
  if (!handlers.length) {
    throw new TypeError("it exports no tool, resource or prompt; write `export const add = tool({ … })`");
  }
  return [...new Set(handlers)];
}
