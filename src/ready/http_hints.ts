/**
 * Hints of tools that send an HTTP request.
 */
import { withoutNulls } from "../core/known_options.ts";
import type { ToolAnnotations } from "../library.ts";

/** The methods that change nothing. */
export const SAFE: readonly string[] = ["GET", "HEAD", "OPTIONS", "QUERY"];

/**
 * Returns the hints that follow from a method. All are explicit, because directories refuse tools that leave a hint to
 * its default. A `POST` counts as destructive, as without the hint, because it may be any action. `given` takes precedence.
 */
export function toHttpHints(method: string, given?: ToolAnnotations): ToolAnnotations {
  const own = withoutNulls(given ?? {});
  const isReadOnly = own.readOnlyHint ?? SAFE.includes(method);
  return {
    readOnlyHint: isReadOnly,
    destructiveHint: !isReadOnly,
    ...!isReadOnly && (method === "PUT" || method === "DELETE") && { idempotentHint: true },
    openWorldHint: true,
    ...own,
  };
}
