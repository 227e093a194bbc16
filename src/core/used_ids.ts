/**
 * The key under which the facts about a request contain used ids. This is a separate file, because only servers with
 * authentication load it.
 *
 * @module
 */

/** Key of the function that marks ids as used. */
export const USED: unique symbol = Symbol.for("mcp.used");
