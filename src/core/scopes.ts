/**
 * Scopes: what the principal of a caller may do.
 *
 * @module
 */
import { INSUFFICIENT_SCOPE, McpError } from "../protocol/errors.ts";
import type { Call } from "./call.ts";
import type { Core } from "./core.ts";
import { REPLY_HEADERS } from "./link.ts";

/** Validates the scopes of a handler. Returns `undefined` if it needs none. */
export function readScopes(scopes: readonly string[] = [], place: string): readonly string[] | undefined {
  // The characters of a scope in RFC 6749.
  if (Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string" && /^[!#-[\]-~]+$/.test(scope))) {
    return scopes.length ? scopes : undefined;
  }
  throw new TypeError(`Cannot make ${place}: scopes must be a list of names like ["notes:read"]`);
}

/**
 * Tests whether a caller has all needed scopes. A principal without `scopes` has all. A caller without a principal has
 * none, unless it runs the server as its own process.
 */
export function hasScopes(
  { auth }: Core,
  { link: { principal, transport } }: Call,
  needed: readonly string[],
): boolean {
  const isLocal = transport === "stdio" || transport === "memory";
  const granted = principal ? principal.scopes : isLocal ? undefined : [];
  if (!granted) return true;
  return auth?.satisfies?.(granted, needed) ?? needed.every((scope) => granted.includes(scope));
}

/** Tests for the error of a caller that lacks scopes. A request that was not admitted may have the same code. */
export function isScopeError(error: McpError): boolean {
  return error.code === INSUFFICIENT_SCOPE && !(REPLY_HEADERS in error);
}

/** Checks that a caller has all needed scopes. Throws an error that lists the needed ones. */
export function requireScopes(core: Core, call: Call, needed: readonly string[]): void {
  if (hasScopes(core, call, needed)) return;
  const message = `Cannot run the call: it needs the scopes ${needed.join(" ")}`;
  throw new McpError(INSUFFICIENT_SCOPE, message, { scopes: needed });
}
