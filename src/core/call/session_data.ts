/**
 * Computes the value of the server's option `session`.
 *
 * @module
 */
import { isStrayPromise } from "../../protocol/promises.ts";
import type { Call } from "./call.ts";
import type { ReadSession } from "./context.ts";

/** The options of a server for session data. */
export interface SessionOptions {
  /** Computes a value about a client's session. */
  readonly session?: (call: Call) => unknown;
}

/** Maximum length of the value as JSON, in characters. A session id may contain the value. */
const MAX_DATA = 2048;

/**
 * Computes the value of a session. Returns a copy that nobody can change, because all requests of the session share it.
 *
 * @throws {TypeError} if the value is a promise, is not JSON, or is too long.
 */
export function readSessionData({ session }: SessionOptions, call: Call): unknown {
  const data = session?.(call);
  if (data === undefined) return;
  const refuse = (state: string) => new TypeError(`Cannot keep the session: session returned ${state}`);
  if (isStrayPromise(data)) throw refuse("a promise; use a service with `per` for data that is loaded");
  const text = toText(data);
  if (text !== undefined && text.length > MAX_DATA) {
    throw refuse(`more than ${MAX_DATA} characters of JSON; keep an id, and load the rest with a service`);
  }
  const copy: unknown = text && JSON.parse(text);
  if (isSame(data, copy)) return freezeJson(copy);
  throw refuse("a value that JSON cannot hold; use objects, arrays, strings, numbers and booleans");
}

/** Computes the value for a call without a session. Computes it only once per call. */
export function readCallData(core: SessionOptions, call: Call): unknown {
  return (call.data ??= [readSessionData(core, call)])[0];
}

/** Returns the function that reads the value for a call's session. `find` returns the session value of a call. */
export function createSessionReader(core: SessionOptions, find: (call: Call) => unknown): (call: Call) => ReadSession {
  return (call) => (given?: unknown) => {
    if (given === undefined || given === core.session) return find(call) as never; // That function returned it.
    throw new TypeError("Cannot read the session: pass the function that createServer has as session, or nothing");
  };
}

/** Freezes a JSON value and all values inside it. */
export function freezeJson<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(freezeJson);
  return value;
}

function toText(data: unknown): string | undefined {
  try {
    return JSON.stringify(data);
  } catch {
    // The value has a circular reference or contains a bigint.
  }
}

function isSame(data: unknown, copy: unknown): boolean {
  if (typeof data !== "object" || data === null) return Object.is(data, copy);
  if (typeof copy !== "object" || copy === null || Array.isArray(data) !== Array.isArray(copy)) return false;
  const prototype: unknown = Object.getPrototypeOf(data);
  const isPlain = Array.isArray(data) || prototype === Object.prototype || prototype === null;
  // JSON drops undefined properties, which makes no difference to readers.
  const copied = new Map(Object.entries(copy));
  return isPlain && Object.entries(data).every(([name, value]) => isSame(value, copied.get(name)));
}
