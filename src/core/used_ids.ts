/**
 * The key of the ids that were used, among the facts about a request. In a file of its own, because only servers with an
 * authentication load it.
 *
 * @module
 */

/** Key of the ids that were used. */
export const USED: unique symbol = Symbol.for("mcp.used");
