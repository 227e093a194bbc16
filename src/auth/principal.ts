/**
 * Principals of callers with fixed permissions.
 *
 * @module
 */
import { McpError, quote } from "../protocol/errors.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type { Authentication } from "../core/auth.ts";
import type { Context, Principal } from "../core/call/context.ts";
import { readPrincipal } from "../core/call/principal.ts";
import { covers } from "../core/call/scopes.ts";
import type { CHECK_HANDLER } from "../core/call/internals.ts";

/** Permissions of a caller and other facts about it. */
export interface CallerFacts {
  /** Permissions of the caller. Without a list, the caller has none. `allScopes` stands for all. */
  readonly scopes?: readonly string[];
  /** Time at which the credentials expire, in milliseconds since 1970. */
  readonly expiresAt?: number;
  /** Any other facts for handlers, as fields of `ctx.principal`. */
  readonly [key: string]: unknown;
}

/** Checks that an option has secrets by name, or is a function that finds them. Throws the given message. */
export function checkSecrets(secrets: unknown, message: string): void {
  if (typeof secrets === "function" || isObject(secrets)) return;
  throw new TypeError(message);
}

/**
 * Creates the principal of a caller. The prefix keeps callers of different schemes apart.
 *
 * @throws {TypeError} if a fact cannot be used.
 */
export function toPrincipal(prefix: string, id: string, facts: CallerFacts = {}): Principal {
  return readPrincipal({ ...facts, id: `${prefix}:${id}` }, `the caller ${quote(id)}`);
}

/**
 * Returns the check for handlers that no caller can use, of an authentication that knows all callers.
 *
 * @throws {TypeError} if none of them has the scopes of the handler. The function throws.
 */
export function checkFor(callers: readonly Principal[]): NonNullable<Authentication[typeof CHECK_HANDLER]> {
  // Not an arrow function, because an authentication can be spread to one with `satisfies`.
  return function (this: Authentication, name, scopes) {
    if (!scopes || callers.some((caller) => covers(this, caller, scopes))) return;
    const state = `it needs the scopes ${scopes.join(" ")}, which no caller of auth has`;
    throw new TypeError(
      `Cannot add ${name}: ${state}; give a caller these scopes, or allScopes, as in { key, scopes }`,
    );
  };
}

/**
 * Returns the authenticated caller.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { requirePrincipal } from "@x/mcp/auth";
 *
 * const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
 * ```
 *
 * @throws {McpError} with code -31401 if the caller is not authenticated.
 */
export function requirePrincipal({ principal }: Pick<Context, "principal">): Principal {
  if (principal) return principal;
  throw McpError.unauthenticated("Cannot run the call: it needs an authenticated caller");
}
