/**
 * Reports the entries of other servers that cannot be served. Loaded when there is such an entry.
 */
import { quote } from "../../core/protocol/errors.ts";
import { type Handler, toDefinitions } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { LIMITS, MAX_NAME, type Skipped } from "./listed_entry.ts";

/** The key of the entries that were reported, which each server has once. */
const REPORTED = {};

/** Reports all entries that were not reported yet with one error. */
export function report(handlers: readonly Handler[], core: FeatureParts): void {
  const reported = core.state.slot(REPORTED, () => new WeakSet());
  const fresh = toDefinitions<Skipped>(handlers).filter((each) => !reported.has(each));
  for (const each of fresh) reported.add(each);
  const [first, ...others] = fresh;
  if (!first) return;
  const more = others.length ? `; other entries that cannot be served: ${others.length}` : "";
  core.report(new TypeError(`${describeSkipped(first)}${more}`, { cause: first.error }));
}

export function describeSkipped({ kind, listed, key = "name", error }: Skipped): string {
  const name: unknown = Object(listed)[key];
  const place = typeof name === "string" ? `${kind} ${quote(name)} of another server` : `a ${kind} of another server`;
  const isNamed = typeof name === "string" && name.length > 0 && name.length <= MAX_NAME;
  const state = !isNamed
    ? `its ${key} is not a text of 1 to ${MAX_NAME} characters`
    : error === undefined
    ? `it has more than ${LIMITS.depth} levels`
    : Object(error).message;
  return `Cannot serve ${place}: ${state}`;
}
