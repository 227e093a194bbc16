/**
 * Decides which errors count as failures of the systems that a handler uses.
 */
import { isMcpError, isToolError } from "../core/protocol/errors.ts";
import { isStrayPromise } from "../core/protocol/promises.ts";

/** Selects the errors that count as failures. */
export type SelectErrors = (error: unknown) => boolean;

/**
 * Whether an error is a failure. A `ToolError` or `McpError` is not a failure, because the handler chose this error as
 * its response. A question that the client has not answered yet is thrown as an `McpError` too.
 *
 * @throws {TypeError} if `select` does not return a boolean.
 */
export function isFailure(error: unknown, select: SelectErrors | undefined, place: string): boolean {
  if (isMcpError(error) || isToolError(error)) return false;
  if (!select) return true;
  const selected: unknown = select(error);
  if (!isStrayPromise(selected) && typeof selected === "boolean") return selected;
  throw new TypeError(`Cannot run ${place}: errors() did not return a boolean; return true or false`, { cause: error });
}
