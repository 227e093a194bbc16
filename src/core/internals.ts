/**
 * The key under which servers and handlers store internal state, out of sight of users.
 *
 * @module
 */

/**
 * The key of all internal state. The symbol is global, because a server file and a package of handlers may each import
 * their own copy of the library.
 *
 * @internal
 */
export const INTERNALS: unique symbol = Symbol.for("mcp.internals");
