/**
 * Scopes: the permissions of a caller.
 */
import { INSUFFICIENT_SCOPE, McpError, quote } from "../../core/protocol/errors.ts";
import type { Call } from "./call.ts";
import type { Context, Principal } from "./context.ts";
import { HAS_SCOPES } from "../../core/internals.ts";
import { type Link, REPLY_HEADERS } from "./link.ts";
import type { Observer, Reporter } from "./observer.ts";
import { readSyncVerdict } from "./verdict.ts";

/**
 * The value of `scopes` for a caller with all permissions. The library compares the value, not the object, so a copy of
 * the list works too. The only entry contains a space, so splitting a token's scopes at spaces cannot produce this
 * entry.
 *
 * ```ts
 * import { allScopes, apiKey } from "@x/mcp/auth";
 *
 * const auth = apiKey({ keys: { ada: { key: "ada-2f6c1e0b9d4a7853", scopes: allScopes } } });
 * ```
 */
export const allScopes: readonly string[] = Object.freeze(["all scopes"]);

/** The part of the server that determines how scopes are compared. */
export interface ScopeRules {
  readonly auth?: ScopeComparison;
}

/** Compares scopes with a custom function instead of by name, such as the `satisfies` function of an authentication. */
export interface ScopeComparison {
  satisfies?(granted: readonly string[], needed: readonly string[], principal?: Principal): boolean;
}

export function isAllScopes(scopes: readonly unknown[]): boolean {
  return scopes.length === 1 && scopes[0] === allScopes[0];
}

/** Tests whether `value` is a valid scope of RFC 6749. */
export function isScope(value: unknown): value is string {
  return typeof value === "string" && /^[!#-[\]-~]+$/.test(value);
}

/** Returns `undefined` if the handler requires no scopes. */
export function readScopes(scopes: readonly string[] = [], place: string): readonly string[] | undefined {
  if (Array.isArray(scopes) && Array.from(scopes).every(isScope)) {
    return scopes.length ? Object.freeze([...scopes]) : undefined;
  }
  throw new TypeError(
    `Cannot make ${place}: scopes is not a list of names without spaces; use a list like ["notes:read"]`,
  );
}

/**
 * Tests whether a caller has all required scopes. A caller without a principal has all scopes over stdio and in the
 * same process, because the caller started the server, and in the calls that an extension makes for such a caller.
 * Otherwise a caller without a principal has no scopes.
 */
export function isGranted(
  { auth }: ScopeRules,
  { principal, transport, hasAllScopes }: Pick<Link, "principal" | "transport" | "hasAllScopes">,
  needed: readonly string[],
): boolean {
  if (principal) return covers(auth, principal, needed);
  return transport === "stdio" || transport === "memory" || hasAllScopes === true;
}

/** A principal without a `scopes` field has no scopes. */
export function covers(
  auth: ScopeComparison | undefined,
  principal: Principal,
  needed: readonly string[],
): boolean {
  const { scopes = [] } = principal;
  if (isAllScopes(scopes)) return true;
  if (auth?.satisfies === undefined) return needed.every((scope) => scopes.includes(scope));
  return readSyncVerdict(auth.satisfies(scopes, needed, principal), "satisfies");
}

/**
 * Tests whether the caller has all given scopes, by the rules for a handler's `scopes` option.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { hasScopes } from "@x/mcp/auth";
 *
 * const list = tool({ name: "list", run: (_, ctx) => hasScopes(ctx, "notes:private") ? ["a", "b"] : ["a"] });
 * ```
 *
 * @throws {TypeError} if a name is not a valid scope, if there is no name, or if `ctx` is not the context of a call.
 */
export function hasScopes(ctx: Pick<Context, "principal" | "client">, ...names: readonly string[]): boolean {
  if (!names.length || !names.every(isScope)) {
    const state = names.length ? `not all of ${names.map(quote).join(", ")} are valid scopes` : "no scope was passed";
    throw new TypeError(`Cannot test scopes: ${state}; use names without spaces like "notes:read"`);
  }
  const test: unknown = Reflect.get(ctx, HAS_SCOPES);
  if (typeof test === "function") return test.call(ctx, names) === true;
  throw new TypeError(
    "Cannot test scopes: ctx is not a handler's context, or is its copy in a worker thread; pass the context that the handler receives, in the main thread",
  );
}

/** The error code alone is not sufficient, because a refusal by `admit` can have the same code. */
export function isScopeError(error: McpError): boolean {
  return error.code === INSUFFICIENT_SCOPE && !(REPLY_HEADERS in error);
}

/** Throws an error that lists the required scopes if the caller lacks a scope. */
export function requireScopes(core: ScopeRules & Reporter, call: Call, needed: readonly string[]): void {
  if (isGranted(core, call.link, needed)) return;
  const { principal } = call;
  if (principal && !principal.scopes) reportMissing(core, call, needed);
  const message = `Cannot run the call: the caller needs the scopes ${needed.join(" ")}`;
  throw McpError.insufficientScope(message, { scopes: needed });
}

/**
 * The observers to which a principal without scopes was already reported. The observer identifies the server, because
 * the servers of all concrete paths share one observer.
 */
const told = new WeakSet<Observer>();

// Reports once per server that a principal has no scopes. The server's author has probably forgotten the scopes, and
// the error for the client does not explain the mistake.
function reportMissing({ observer, report }: Reporter, call: Call, needed: readonly string[]): void {
  if (told.has(observer)) return;
  told.add(observer);
  const state = `the principal ${quote(call.principal?.id)} has no scopes, but the call needs ${needed.join(" ")}`;
  const remedy = "set its scopes to a list of names or to allScopes";
  report(new TypeError(`Cannot run a call: ${state}; ${remedy}`), call);
}
