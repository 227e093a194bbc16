/**
 * Keys of members that users do not see, such as the internal state of servers and handlers.
 *
 * @module
 */

/**
 * The key of internal state. The symbol is global, because a server file and a package of handlers may each import
 * their own copy of the library.
 *
 * @internal
 */
export const INTERNALS: unique symbol = Symbol.for("mcp.internals");

/**
 * Adds internal state to a handler, and freezes the handler. A copy such as `{ ...handler, allow }` loses this state,
 * so it is not a handler. If the copy kept the state, its changes would be ignored, because the state contains the
 * original `allow`.
 *
 * @internal
 */
export function withInternals<T extends object, I>(
  handler: T,
  internals: I,
): Readonly<T> & { readonly [INTERNALS]: I } {
  Object.defineProperty(handler, INTERNALS, { value: internals });
  return Object.freeze(handler) as Readonly<T> & { readonly [INTERNALS]: I }; // Defined above.
}

/** Key of the method of a context that tests scopes. */
export const HAS_SCOPES: unique symbol = Symbol.for("mcp.hasScopes");

/** Key of the call to which a context belongs. */
export const CALL: unique symbol = Symbol.for("mcp.call");

/** Key of the path check of an authentication that is not suitable for every path. */
export const CHECK_PATH: unique symbol = Symbol.for("mcp.checkPath");

/** Key of the handler check of an authentication that knows all callers in advance. */
export const CHECK_HANDLER: unique symbol = Symbol.for("mcp.checkHandler");
