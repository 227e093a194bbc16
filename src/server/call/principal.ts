/**
 * Validates and copies principals. A principal contains the facts about a caller that the author's code returns.
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import { isPromiseLike, isStrayPromise } from "../../core/protocol/promises.ts";
import type { Principal } from "./context.ts";
import { allScopes, isAllScopes, isScope } from "./scopes.ts";

/** Frozen principals are not copied again. */
const known = new WeakSet<object>();

/**
 * Validates a principal, and returns a deeply frozen copy. Copies plain objects, lists and dates. Returns the same
 * object for a principal that was already copied. `place` names the source of the principal for errors, such as
 * `authenticate()`.
 *
 * @throws {TypeError} if the value is not a principal, or contains a `Map` or `Set`, which cannot be frozen.
 */
export function readPrincipal(given: unknown, place: string): Principal {
  // The cast is safe, because only this module adds objects to the set, and each object is a principal.
  if (known.has(given as object)) return given as Principal;
  const refuse = (state: string, options?: ErrorOptions) =>
    new TypeError(`Cannot use the principal of ${place}: ${state}`, options);
  let fields: Fields | undefined;
  try {
    fields = toFields(given);
  } catch (cause) {
    const state = cause instanceof Container
      ? cause.message
      : "its properties cannot be read; use a plain object without getters that throw";
    throw refuse(state, { cause });
  }
  if (!fields) throw refuse(`it is ${toKind(given)}; use an object like { id: "ada", scopes: ["notes:read"] }`);
  const { id, scopes, expiresAt, facts } = fields;
  if (typeof id !== "string" || !id) {
    throw refuse("its id is not a non-empty string; give each caller a stable, unique id");
  }
  const problem = findProblem(fields);
  if (problem) throw refuse(`${problem} (id ${quote(id)})`);
  const named = isList(scopes) && { scopes: isAllScopes(scopes) ? allScopes : Object.freeze(scopes) };
  const read = Object.freeze({ ...facts, id, ...named, ...typeof expiresAt === "number" && { expiresAt } });
  known.add(read);
  return read;
}

/** The fields of a principal. Each field is read only once, because a getter could return different values. */
interface Fields {
  readonly id: unknown;
  /** A copy of the principal's `scopes` if `scopes` is a list, and the unchanged value otherwise. */
  readonly scopes: unknown;
  readonly expiresAt: unknown;
  readonly facts: Readonly<Record<string, unknown>>;
}

function toFields(given: unknown): Fields | undefined {
  if (!isObject(given) || isPromiseLike(given)) return;
  const { id, scopes, expiresAt, ...facts } = given;
  return {
    id,
    scopes: Array.isArray(scopes) ? toList(scopes) : scopes,
    expiresAt,
    facts: toFrozen(facts, refuseContainer),
  };
}

// Stops at the first entry that is not a string. Otherwise a sparse list with a billion holes would be copied.
function toList(scopes: readonly unknown[]): readonly unknown[] {
  const list: unknown[] = [];
  for (let at = 0; at < scopes.length; at++) {
    list.push(scopes[at]);
    if (typeof list[at] !== "string") break;
  }
  return list;
}

function findProblem({ scopes, expiresAt }: Fields): string | undefined {
  const remedy = 'use names like ["notes:read"], or allScopes for a caller with all permissions';
  if (isStrayPromise(scopes)) return `its scopes are a promise; ${remedy}`;
  if (scopes !== undefined && !isList(scopes)) return `its scopes are not a list of names without spaces; ${remedy}`;
  if (expiresAt === undefined || typeof expiresAt === "number" && Number.isFinite(expiresAt)) return;
  return "its expiresAt is not a finite number; use milliseconds since 1970, or omit expiresAt";
}

function isList(scopes: unknown): scopes is readonly string[] {
  return Array.isArray(scopes) && (isAllScopes(scopes) || scopes.every(isScope));
}

function toKind(value: unknown): string {
  if (isStrayPromise(value)) return "a promise";
  return value === null ? "null" : Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}

/** Keeps the same members, such as the same claims. `change` is another expiry time, if any. */
export function copyPrincipal<P extends Principal>(principal: P, change?: { readonly expiresAt: number }): P {
  const copy = Object.freeze({ ...principal, ...change });
  known.add(copy);
  return copy;
}

function refuseContainer(value: object): void {
  if (value instanceof Map || value instanceof Set) throw new Container();
}

/** Thrown for a value that cannot be frozen, because a handler could change it for later requests. */
class Container extends Error {
  override readonly message = "it contains a Map or a Set, which handlers could change; use a list or an object";
}
