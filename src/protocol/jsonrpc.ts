/**
 * JSON-RPC 2.0 messages: parses and checks incoming text, and writes responses and notifications.
 *
 * @see specification/2026-07-28/basic (Messages)
 * @module
 */
import { isObject } from "../kit/json.ts";
import { type JsonSize, measureJson } from "./json_size.ts";
import { INVALID_PARAMS, INVALID_REQUEST, type McpError, PARSE_ERROR } from "./errors.ts";
import { countIndexes, KEY_LENGTH, MAX_BYTES, SHORT, toWeight } from "./weight.ts";

export { isObject };

/** A request id: a string or an integer. */
export type Id = string | number;

/** The named parameters of a message. */
export type Params = { readonly [key: string]: unknown };

/** The result of a method: a JSON object. */
export type Result = { readonly [key: string]: unknown };

/**
 * Marks a result whose `resultType` the library or an extension has set. A handler that passes on a result of somebody
 * else cannot set it by accident. Copies of the result keep the mark.
 */
const RESULT_TYPE: unique symbol = Symbol.for("mcp.resultType");

/** Creates a result with a type of its own. */
export function toTypedResult(resultType: string, result: Result): Result {
  return { ...result, resultType, [RESULT_TYPE]: resultType };
}

/** Returns the type of a result that {@linkcode toTypedResult} or a copy of the library made. */
export function readResultType(result: Result): string | undefined {
  return Object(result)[RESULT_TYPE];
}

/** A message that expects a response. */
export interface Request {
  readonly kind: "request";
  readonly id: Id;
  readonly method: string;
  readonly params?: Params;
  /** Bytes of memory that the parameters take. If `text` is set, this is an upper bound. */
  readonly weight: number;
  /** The text of a short message, which is weighed only when needed. Weighing takes a tenth of a small call's time. */
  readonly text?: string;
}

/** A message without a response. */
export interface Notification {
  readonly kind: "notification";
  readonly method: string;
  readonly params?: Params;
}

/** The client's response to a request of the server. */
export interface Response {
  readonly kind: "response";
  readonly id: Id;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Several messages in one array, not parsed yet. */
export interface Batch {
  readonly kind: "batch";
  readonly items: readonly unknown[];
  /** Bytes of memory that all items take. */
  readonly weight: number;
}

/** An invalid message: the error, and the id if it could be read. */
export interface Broken {
  readonly kind: "broken";
  readonly id?: Id;
  readonly code: number;
  readonly message: string;
}

/** The result of parsing one text. */
export type Incoming = Request | Notification | Response | Batch | Broken;

/** A text that cannot be decoded. */
export const NOT_UTF8: Broken = broken(PARSE_ERROR, "it is not UTF-8");

/** How large the parts of a message may be. */
export interface MessageLimits {
  /** Levels of nested objects and arrays. */
  readonly depth: number;
  /** JSON values, including nested ones. */
  readonly values: number;
  /** Characters of a request id. */
  readonly idCharacters: number;
  /** Characters of a method name. */
  readonly methodCharacters: number;
}

/** Parses one message. Never throws: an invalid message becomes a {@linkcode Broken}. */
export function parseMessage(text: string, limits: MessageLimits): Incoming {
  const isShort = text.length <= SHORT && text.length / KEY_LENGTH <= limits.values / 50;
  const size = isShort ? undefined : measureJson(text, limits);
  const excess = size ? toExcess(size, limits) : findExcess(text, limits);
  if (excess) return broken(INVALID_REQUEST, excess);
  const indexes = isShort ? 0 : countIndexes(text);
  if (indexes > limits.values / 50) {
    return broken(INVALID_REQUEST, `more than ${limits.values / 50} keys are small numbers (request.values)`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return broken(PARSE_ERROR, "it is not valid JSON");
  }
  // An empty object takes as much as two values.
  const max = size ? Math.min(size.values + size.empty, limits.values) : 0;
  if (Array.isArray(value)) {
    const weight = toWeight(text, { max, indexes: countIndexes(text) });
    return { kind: "batch", items: value, weight };
  }
  const weight = isShort ? text.length * MAX_BYTES : toWeight(text, { max, indexes });
  return toMessage(value, limits, { weight, text: isShort ? text : undefined });
}

/** Checks one parsed JSON value. Without a weight, its memory is counted elsewhere. */
export function toMessage(
  value: unknown,
  limits: MessageLimits,
  { weight, text }: Pick<Request, "weight" | "text"> = { weight: 0 },
): Exclude<Incoming, Batch> {
  if (!isObject(value)) return broken(INVALID_REQUEST, "it is not a JSON object");
  const { id, method, params, result, error } = value;
  const known = isId(id) && (typeof id === "number" || id.length <= limits.idCharacters) ? id : undefined;
  if (value.jsonrpc !== "2.0") return broken(INVALID_REQUEST, 'jsonrpc is not "2.0"', known);
  if (id !== undefined && known === undefined) {
    return broken(
      INVALID_REQUEST,
      `id is no integer or string up to ${limits.idCharacters} (request.idCharacters)`,
    );
  }
  const isResult = result !== undefined;
  const isError = error !== undefined;
  if (method === undefined && known !== undefined && isResult !== isError) {
    if (isResult) return { kind: "response", id: known, result };
    if (isErrorObject(error)) return { kind: "response", id: known, error };
  }
  if (typeof method !== "string" || isResult || isError) {
    return broken(INVALID_REQUEST, "it is not a request, notification or response", known);
  }
  if (method.length > limits.methodCharacters) {
    return broken(
      INVALID_REQUEST,
      `method is over ${limits.methodCharacters} (request.methodCharacters)`,
      known,
    );
  }
  if (params !== undefined && !isObject(params)) {
    return broken(INVALID_PARAMS, "params is not an object", known);
  }
  return known === undefined
    ? { kind: "notification", method, params }
    : { kind: "request", id: known, method, params, weight, text };
}

/** Writes a success response. `result` is already JSON text. */
export function toSuccess(id: Id, result: string): string {
  return `{"jsonrpc":"2.0","id":${toIdText(id)},"result":${result}}`;
}

/** Writes an error response. `null` means that the id could not be read; `undefined` omits the id. */
export function toFailure(id: Id | null | undefined, error: Pick<McpError, "code" | "message" | "data">): string {
  const { code, message, data } = error;
  const toText = (data?: unknown) => JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } });
  try {
    return toText(data);
  } catch {
    // Data that JSON cannot represent is dropped, so that the client still gets its response.
    return toText();
  }
}

/** Writes a notification. */
export function toNotification(method: string, params?: Params): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

/** Writes an id as JSON. */
export function toIdText(id: Id): string {
  return typeof id === "number" ? `${id}` : JSON.stringify(id);
}

/**
 * Tests for a valid request id. A fraction or a number above 2^53 is not valid, because it could change on its way
 * back.
 */
export function isId(value: unknown): value is Id {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function isErrorObject(value: unknown): value is NonNullable<Response["error"]> {
  return isObject(value) && Number.isInteger(value.code) && typeof value.message === "string";
}

function broken(code: number, state: string, id?: Id): Broken {
  return { kind: "broken", id, code, message: `Cannot read the message: ${state}` };
}

/** Returns the limit that a short text exceeds. It runs before JSON.parse, so that millions of brackets take no memory. */
function findExcess(text: string, limits: MessageLimits): string | undefined {
  const { depth, values } = limits;
  // A value takes at least two characters, and a nested object about four. So most messages are too short to exceed a
  // limit, or a native search shows that they have too few brackets.
  const arrays = count(text, "[", depth);
  const isFlat = arrays + text.length / 4 <= depth || arrays + count(text, "{", depth) <= depth;
  if (isFlat && text.length < 2 * values) return;
  return toExcess(measureJson(text, limits), limits);
}

function toExcess({ excess }: JsonSize, { depth, values }: MessageLimits): string | undefined {
  if (excess === "depth") return `nested deeper than ${depth} levels (request.depth)`;
  if (excess === "values") return `more than ${values} values (request.values)`;
}

/** Counts a character, and stops above `max`. */
function count(text: string, character: string, max: number): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0 && found <= max; at = text.indexOf(character, at + 1)) found++;
  return found;
}
