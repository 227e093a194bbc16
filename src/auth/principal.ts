/**
 * Principals of callers with fixed permissions.
 *
 * @module
 */
import { McpError, UNAUTHENTICATED } from "../protocol/errors.ts";
import type { Context, Principal } from "../core/context.ts";

/** Permissions of a caller and other facts about it. */
export interface CallerFacts {
  /** Permissions of the caller. Without a list, the caller has all. */
  readonly scopes?: readonly string[];
  /** Time at which the credentials expire, in milliseconds since 1970. */
  readonly expiresAt?: number;
  /** Any other facts for handlers, as fields of `ctx.principal`. */
  readonly [key: string]: unknown;
}

/** Creates the principal of a caller. The prefix keeps callers of different schemes apart. */
export function toPrincipal(prefix: string, id: string, facts: CallerFacts = {}): Principal {
  return Object.freeze({ ...facts, id: `${prefix}:${id}` });
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
  throw new McpError(UNAUTHENTICATED, "Cannot run the call: it needs an authenticated caller");
}
