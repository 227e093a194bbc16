/**
 * Creates principals with given scopes, and finds the caller of a request in handlers.
 */
import { McpError, quote } from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { type Authentication, UNREADY } from "../server/engine/auth.ts";
import type { Context, Principal } from "../server/call/context.ts";
import { readPrincipal } from "../server/call/principal.ts";
import { covers } from "../server/call/scopes.ts";

/** Scopes of a caller, and other facts about the caller. */
export interface CallerInfo {
  /** Scopes of the caller. Use `allScopes` to grant every scope. Defaults to no scopes. */
  readonly scopes?: readonly string[];
  /**
   * Time at which the caller's credentials expire, in milliseconds since 1970. By default, the credentials do not
   * expire.
   */
  readonly expiresAt?: number;
  /** Any other fact. Handlers read the fact from the field of the same name in `ctx.principal`. */
  readonly [key: string]: unknown;
}

/** Throws an error with the given message unless `secrets` is a function, or an object that maps names to secrets. */
export function checkSecrets(secrets: unknown, message: string): void {
  if (typeof secrets === "function" || isObject(secrets)) return;
  throw new TypeError(message);
}

/**
 * Creates the principal of a caller. The prefix prevents two authentication schemes from returning the same id.
 *
 * @throws {TypeError} if a fact is invalid.
 */
export function toPrincipal(prefix: string, id: string, info: CallerInfo = {}): Principal {
  return readPrincipal({ ...info, id: `${prefix}:${id}` }, `the caller ${quote(id)}`);
}

/**
 * Returns an authentication that accepts nobody, because a key or password is not set. A server can be created with it,
 * such as while a framework builds the app, but not started.
 */
export function toUnready(auth: Authentication, error: Error): Authentication {
  const authenticate = (): never => {
    throw error;
  };
  return { ...auth, authenticate, [UNREADY]: error };
}

/** An environment variable that is not set may arrive as an empty string. */
export function isUnset(value: unknown): boolean {
  return value === undefined || value === "";
}

/**
 * Returns a function that throws if no caller has the scopes that a handler requires. Only authentication schemes that
 * know all their callers at startup can use this function.
 */
export function checkFor(callers: readonly Principal[]): NonNullable<Authentication["checkHandler"]> {
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
 * Checks the `prefix` option of an authentication scheme. `factory` is the function that the error names.
 *
 * @throws {TypeError} if the prefix is empty, is longer than 64 characters, or contains a character that is not
 * allowed.
 */
export function checkPrefix(prefix: unknown, factory: string): void {
  if (typeof prefix === "string" && /^[\w.-]{1,64}$/.test(prefix)) return;
  throw new TypeError(
    `Cannot use ${factory}: prefix is not a word such as "site"; use 1 to 64 letters, digits, ".", "-" or "_"`,
  );
}

/** Returns a function that returns only principals whose id begins with `prefix` and a colon. */
export function readOwn(prefix: string): NonNullable<Authentication["readPrincipal"]> {
  return (principal) => principal.id.startsWith(`${prefix}:`) ? principal : undefined;
}

/**
 * Returns the authenticated caller. If `auth` is given, `auth` must have authenticated the caller, and the result has
 * the principal type of `auth`.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { requirePrincipal } from "@x/mcp/auth";
 *
 * const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
 * ```
 *
 * @throws {McpError} with code -31401 if the caller is not authenticated, or if `auth` did not authenticate the caller.
 * @throws {TypeError} in the same cases as {@linkcode findPrincipal}.
 */
export function requirePrincipal(ctx: Pick<Context, "principal">): Principal;
/** Returns the caller with the principal type of `auth`. Throws if `auth` did not authenticate the caller. */
export function requirePrincipal<P extends Principal>(ctx: Pick<Context, "principal">, auth: Authentication<P>): P;
export function requirePrincipal(ctx: Pick<Context, "principal">, ...given: readonly Authentication[]): Principal {
  const principal = given.length ? findPrincipal(ctx, given[0]) : ctx.principal;
  if (principal) return principal;
  const other = ctx.principal ? " of another authentication scheme" : "";
  throw McpError.unauthenticated(`Cannot run the call: it needs an authenticated caller${other}`);
}

/**
 * Returns the caller with the principal type of `auth`. Returns `undefined` if `auth` did not authenticate the caller,
 * or if there is no caller. Checks the claims again if the principal comes from another process or from a test.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { apiKey, findPrincipal } from "@x/mcp/auth";
 *
 * const machines = apiKey({ keys: { bot: "bot-8d3f5a7c6e1b9042" } });
 * const sync = tool({ name: "sync", allow: (ctx) => !!findPrincipal(ctx, machines), run: () => "Synced." });
 * ```
 *
 * @throws {TypeError} if the ids that `auth` returns have no prefix, because `findPrincipal` recognizes callers by the
 * prefix.
 */
export function findPrincipal<P extends Principal>(
  { principal }: Pick<Context, "principal">,
  auth: Authentication<P>,
): P | undefined {
  const read = Object(auth).readPrincipal;
  if (typeof read === "function") return principal && auth.readPrincipal?.(principal);
  throw new TypeError(
    "Cannot find the caller: the ids of the given authentication have no prefix; use customAuth(verify, { prefix }), or " +
      "ctx.principal",
  );
}
