/**
 * Finds the handlers that a file exports.
 */
import { type Handler, isHandler } from "../../server/visibility/feature.ts";

/**
 * Returns the handlers among a file's exports, including handlers in exported arrays. Handlers are sorted by export
 * name, without duplicates.
 *
 * @throws {TypeError} if the file exports no handler.
 */
export function toExportedHandlers(exports: Readonly<Record<string, unknown>>): readonly Handler[] {
  const handlers = Object.values(exports).flat().filter(isHandler);
  if (!handlers.length) {
    throw new TypeError(
      "the file exports no tool, resource or prompt; add an export such as `export const add = tool({ … })`",
    );
  }
  return [...new Set(handlers)];
}
