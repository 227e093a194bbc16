/**
 * Where servers and handlers keep what other parts of the library need, out of sight of their users.
 *
 * @module
 */

/**
 * The one key of everything internal. The symbol is global, because a command line, a server file and a package of
 * handlers may each bring their own copy of the library.
 *
 * @internal
 */
export const INTERNALS: unique symbol = Symbol.for("mcp.internals");
