/**
 * Computes the value that the server's `sessionData` function returns.
 */
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Call } from "./call.ts";
import type { ReadSession } from "./context.ts";
import { isSameJson, toJsonText } from "./json_copy.ts";

export interface SessionOptions {
  /** Computes a JSON value that is stored with a client's session. */
  readonly sessionData?: (call: Call) => unknown;
}

/**
 * Maximum length of the value as JSON, in characters. The limit is low, because the session id can contain the value.
 */
const MAX_DATA = 2048;

/**
 * Returns a frozen copy, because all requests in the session share the value.
 *
 * @throws {TypeError} if the value is a promise, is not JSON, or is too long.
 */
export function readSessionData({ sessionData }: SessionOptions, call: Call): unknown {
  const data = sessionData?.(call);
  if (data === undefined) return;
  const refuse = (state: string) => new TypeError(`Cannot store the session value: sessionData returned ${state}`);
  if (isStrayPromise(data)) throw refuse("a promise; to load data, use a service with `per`");
  const text = toJsonText(data);
  if (text !== undefined && text.length > MAX_DATA) {
    throw refuse(`more than ${MAX_DATA} characters of JSON; return an id, and load the data with a service`);
  }
  const copy: unknown = text && JSON.parse(text);
  if (isSameJson(data, copy)) return freezeJson(copy);
  throw refuse("a value that JSON cannot represent; use objects, arrays, strings, numbers and booleans");
}

/** `find` returns the session value of a call. By default, the value is computed once per call. */
export function createSessionReader(
  core: SessionOptions,
  find: (call: Call) => unknown = (call) => (call.data ??= [readSessionData(core, call)])[0],
): (call: Call) => ReadSession {
  return (call) => (given?: unknown) => {
    if (given === undefined || given === core.sessionData) return find(call) as never; // The cast is safe, because `sessionData` returned the value.
    throw new TypeError(
      "Cannot read the session value: the passed function is not the sessionData option of createServer; pass that function, or nothing",
    );
  };
}

export function freezeJson<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(freezeJson);
  return value;
}
