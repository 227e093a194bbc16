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
