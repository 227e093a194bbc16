/**
 * Finds what a call is about, for reports of its errors.
 *
 * @module
 */
import type { Call } from "./call.ts";
import type { Registry } from "./registry.ts";

/** Returns the name of the tool or prompt, or the URI of the resource. Returns `undefined` if the method has none. */
export function findSubject({ method, params }: Call, registry: Registry): string | undefined {
  const name = registry.methods.get(method)?.subject;
  const subject = name === undefined ? undefined : params[name];
  return typeof subject === "string" ? subject : undefined;
}
