/**
 * Creates the principals of callers with fixed permissions, and finds the principal of a call.
 *
 * @module
 */
import { McpError, quote } from "../protocol/errors.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { type Authentication, READ_PRINCIPAL } from "../core/auth.ts";
import type { Context, Principal } from "../core/call/context.ts";
import { readPrincipal } from "../core/call/principal.ts";
import { covers } from "../core/call/scopes.ts";
import type { CHECK_HANDLER } from "../core/call/internals.ts";

/** Permissions of a caller and other facts about the caller. */
export interface CallerFacts {
  /** Permissions of the caller. Defaults to no permissions. `allScopes` stands for all permissions. */
  readonly scopes?: readonly string[];
  /** Time at which the credentials expire, in milliseconds since 1970. */
  readonly expiresAt?: number;
  /** Any other facts for handlers, as fields of `ctx.principal`. */
  readonly [key: string]: unknown;
}

/**
 * Checks that an option is an object of secrets by name, or a function that finds secrets. Otherwise throws an error
 * with this message.
 */
export function checkSecrets(secrets: unknown, message: string): void {
  if (typeof secrets === "function" || isObject(secrets)) return;
  throw new TypeError(message);
}

/**
 * Creates the principal of a caller. The prefix makes the id unique among different schemes.
 *
 * @throws {TypeError} if a fact is invalid.
 */
export function toPrincipal(prefix: string, id: string, facts: CallerFacts = {}): Principal {
  return readPrincipal({ ...facts, id: `${prefix}:${id}` }, `the caller ${quote(id)}`);
}

/**
 * Returns the check for handlers that no caller may use. Only an authentication that knows all callers can make this
 * check.
 *
 * @throws {TypeError} The returned function throws if no caller has the scopes of the handler.
 */
export function checkFor(callers: readonly Principal[]): NonNullable<Authentication[typeof CHECK_HANDLER]> {
  // Do not use an arrow function, because `this` may be a copy of the authentication with its own `satisfies`.
  return function (this: Authentication, name, scopes) {
    if (!scopes || callers.some((caller) => covers(this, caller, scopes))) return;
    const state = `it needs the scopes ${scopes.join(" ")}, which no caller of auth has`;
    throw new TypeError(
      `Cannot add ${name}: ${state}; give a caller these scopes, or allScopes, as in { key, scopes }`,
    );
  };
}

/**
 * Checks the text before the colon in the ids of principals.
 *
 * @throws {TypeError} if the prefix contains a character that is not allowed, or is too long.
 */
export function checkPrefix(prefix: unknown, factory: string): void {
  if (typeof prefix === "string" && /^[\w.-]{1,64}$/.test(prefix)) return;
  throw new TypeError(`Cannot use ${factory}: prefix is not a word such as "site"; use letters, digits, ".", "-", "_"`);
}

/** Returns the reader of principals whose ids begin with a prefix. */
export function readOwn(prefix: string): NonNullable<Authentication[typeof READ_PRINCIPAL]> {
  return (principal) => principal.id.startsWith(`${prefix}:`) ? principal : undefined;
}

/**
 * Returns the authenticated caller. With `auth`, throws unless this authentication has authenticated the caller. The
 * caller then has the type of the principals of `auth`.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { requirePrincipal } from "@x/mcp/auth";
 *
 * const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
 * ```
 *
 * @throws {McpError} with code -31401 if the caller is not authenticated, or was authenticated by another
 * authentication than `auth`.
 * @throws {TypeError} in the same cases as {@linkcode findPrincipal}.
 */
export function requirePrincipal(ctx: Pick<Context, "principal">): Principal;
/** Returns the caller, if `auth` has authenticated it. */
export function requirePrincipal<P extends Principal>(ctx: Pick<Context, "principal">, auth: Authentication<P>): P;
export function requirePrincipal(ctx: Pick<Context, "principal">, ...given: readonly Authentication[]): Principal {
  const principal = given.length ? findPrincipal(ctx, given[0]) : ctx.principal;
  if (principal) return principal;
  const other = ctx.principal ? " of another authentication" : "";
  throw McpError.unauthenticated(`Cannot run the call: it needs an authenticated caller${other}`);
}

/**
 * Returns the caller with the type of the principals of an authentication, or `undefined` if there is no caller, or
 * another authentication has authenticated it. Checks the claims again if the principal comes from another process or
 * from a test.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { apiKey, findPrincipal } from "@x/mcp/auth";
 *
 * const machines = apiKey({ keys: { bot: "bot-8d3f5a7c6e1b9042" } });
 * const sync = tool({ name: "sync", allow: (ctx) => !!findPrincipal(ctx, machines), run: () => "Synced." });
 * ```
 *
 * @throws {TypeError} if the ids of the authentication have no prefix, because its callers cannot be recognized then.
 */
export function findPrincipal<P extends Principal>(
  { principal }: Pick<Context, "principal">,
  auth: Authentication<P>,
): P | undefined {
  const read = Object(auth)[READ_PRINCIPAL];
  if (typeof read === "function") return principal && auth[READ_PRINCIPAL]?.(principal);
  throw new TypeError(
    "Cannot find the caller of an authentication: its ids have no prefix; use customAuth(verify, { prefix }), or " +
      "ctx.principal",
  );
}
