/**
 * Keys of functions in `AuthFacts` that only the library's own authentication schemes use. The keys have a separate file,
 * so that a server without authentication does not load the code.
 *
 * @module
 */

/** Key of the function that marks ids as used. */
export const USED: unique symbol = Symbol.for("mcp.used");

/** Key of the function that refuses a request if too many callers wait for authentication. */
export const FIND_PLACE: unique symbol = Symbol.for("mcp.findPlace");

/** Key of the function that delays a request whose caller has failed too often. */
export const DELAY: unique symbol = Symbol.for("mcp.delay");
