/**
 * The key under which `AuthFacts` contains the function that marks ids as used. The key has a separate file, so that a
 * server without authentication does not load the code.
 *
 * @module
 */

/** Key of the function that marks ids as used. */
export const USED: unique symbol = Symbol.for("mcp.used");
