/**
 * The key of used ids among the facts about a request. A separate file, because only servers with authentication load
 * it.
 *
 * @module
 */

/** Key of the function that marks ids as used. */
export const USED: unique symbol = Symbol.for("mcp.used");
