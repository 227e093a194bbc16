/**
 * Keys of members that are out of sight of users, such as the internal state of servers and handlers.
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

/**
 * Gives internal state to a handler, and freezes it. A copy such as `{ ...handler, allow }` has no such state and is not a
 * handler, because its state would not know of the changes: `allow` would be ignored.
 *
 * @internal
 */
export function withInternals<T extends object, I>(
  handler: T,
  internals: I,
): Readonly<T> & { readonly [INTERNALS]: I } {
  Object.defineProperty(handler, INTERNALS, { value: internals });
  return Object.freeze(handler) as Readonly<T> & { readonly [INTERNALS]: I }; // As just defined.
}

/** Key of the method of a context that tests scopes. */
export const HAS_SCOPES: unique symbol = Symbol.for("mcp.hasScopes");

/** Key of the call in a context that stands for it. */
export const CALL: unique symbol = Symbol.for("mcp.call");

/** Key of the check of an authentication that does not fit every path. */
export const CHECK_PATH: unique symbol = Symbol.for("mcp.checkPath");

/** Key of the check of an authentication that knows all callers at the start. */
export const CHECK_HANDLER: unique symbol = Symbol.for("mcp.checkHandler");
