/**
 * Computes the data that a server keeps about a client's session.
 *
 * @module
 */
import { isPromiseLike } from "../../protocol/promises.ts";
import type { Call } from "../../core/call.ts";
import type { Core } from "../../core/core.ts";

/** Maximum characters of the data as JSON, because they may be part of a session id. */
const MAX_DATA = 2048;

/**
 * Computes the data of a session.
 *
 * @throws {TypeError} if it is a promise, is not JSON, or is too long.
 */
export function readSessionData({ session }: Core, call: Call): unknown {
  const data = session?.(call);
  if (data === undefined) return;
  const refuse = (state: string) => new TypeError(`Cannot keep the session: session returned ${state}`);
  if (isPromiseLike(data)) {
    throw refuse("a promise; use a service with `per` for data that is loaded");
  }
  const text = JSON.stringify(data);
  const copy: unknown = text && JSON.parse(text);
  if (!isSame(data, copy)) {
    throw refuse("a value that JSON cannot hold; use objects, arrays, strings, numbers and booleans");
  }
  if (text.length <= MAX_DATA) return copy;
  throw refuse(`more than ${MAX_DATA} characters of JSON; keep an id, and load the rest with a service`);
}

function isSame(data: unknown, copy: unknown): boolean {
  if (typeof data !== "object" || data === null) return Object.is(data, copy);
  if (typeof copy !== "object" || copy === null || Array.isArray(data) !== Array.isArray(copy)) return false;
  const isPlain = Array.isArray(data) || Object.getPrototypeOf(data) === Object.prototype;
  // JSON drops undefined properties, which reads the same.
  const copied = new Map(Object.entries(copy));
  return isPlain && Object.entries(data).every(([name, value]) => isSame(value, copied.get(name)));
}
