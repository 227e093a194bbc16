/**
 * Symbols for members that are not part of the public API, such as the internal state of servers and handlers.
 */

/**
 * The key of internal state. The symbol is global, because a server file and a package with handlers may import
 * different copies of the library.
 *
 * @internal
 */
export const INTERNALS: unique symbol = Symbol.for("mcp.internals");

/**
 * Adds internal state to a handler, and freezes the handler. The state is not enumerable, so a copy such as `{
 * ...handler, allow }` has no state and is rejected. With the state, the copy's `allow` would be ignored, because the
 * state contains the original `allow`.
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

/** Key of the context's method that tests whether the caller has scopes. */
export const HAS_SCOPES: unique symbol = Symbol.for("mcp.hasScopes");

/** Key of the call from which a context was created. */
export const CALL: unique symbol = Symbol.for("mcp.call");

/**
 * Key of the option with which groups and servers change the handlers that a layer adds together with its handler. It is
 * not a named option, because only they set it.
 */
export const ADDED: unique symbol = /* @__PURE__ */ Symbol.for("mcp.added");

/**
 * Key of the option with which groups pass words for searches to their tools. It is not a named option, because a group
 * also contains handlers that no search finds.
 */
export const ABOUT: unique symbol = /* @__PURE__ */ Symbol.for("mcp.about");

/**
 * Key of the option that says where a handler comes from, and how lists show it. It is not a named option, because only
 * the library sets it.
 *
 * @internal
 */
export const LISTED: unique symbol = /* @__PURE__ */ Symbol.for("mcp.listed");

/**
 * Key of the option that decides which URIs only this provider may serve. It is not a named option, because only proxies
 * set it.
 *
 * @internal
 */
export const OWNS: unique symbol = /* @__PURE__ */ Symbol.for("mcp.owns");
