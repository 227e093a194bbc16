/**
 * Reports callers whose principal names no scopes. Loaded with the first of them that is refused.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import type { Call } from "./call.ts";
import type { Observer, Reporter } from "./observer.ts";

/** The observers that have the report. The servers of concrete paths share that of their server. */
const told = new WeakSet<Observer>();

/** Reports a principal without `scopes`, once per server. */
export function reportOnce({ observer, report }: Reporter, call: Call, needed: readonly string[]): void {
  if (told.has(observer)) return;
  told.add(observer);
  const state = `the principal ${quote(call.principal?.id)} has no scopes, and it needs ${needed.join(" ")}`;
  const remedy = "return a list of names or allScopes as scopes of the principal";
  report(new TypeError(`Cannot run a call: ${state}; ${remedy}`), call);
}
