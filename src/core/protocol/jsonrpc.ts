/**
 * Parses and checks incoming JSON-RPC 2.0 messages, and serializes responses and notifications.
 *
 * @see specification/2026-07-28/basic (Messages)
 */
import { isObject } from "../kit/json.ts";
import { type JsonSize, measureJson } from "./json_size.ts";
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  type Limited,
  type McpError,
  nameLimits,
  PARSE_ERROR,
} from "./errors.ts";
import { countIndexes, KEY_LENGTH, MAX_BYTES, SHORT, toWeight } from "./weight.ts";

export { isObject };

/** A request id: a string or an integer. */
export type Id = string | number;

/** The named parameters of a message. */
export type Params = { readonly [key: string]: unknown };

/** The result of a method: a JSON object. */
export type Result = { readonly [key: string]: unknown };

/**
 * Marks a result whose `resultType` was set by the library or by an extension. Without the mark, a handler that returns
 * a result from another server could set the type by accident. Copies of the result keep the mark.
 */
const RESULT_TYPE: unique symbol = Symbol.for("mcp.resultType");

/** Creates a result with a `resultType`. */
export function toTypedResult(resultType: string, result: Result): Result {
  return { ...result, resultType, [RESULT_TYPE]: resultType };
}

/**
 * Returns the `resultType` of a result that {@linkcode toTypedResult} created, in this copy of the library or in
 * another copy.
 */
export function readResultType(result: Result): string | undefined {
  return Object(result)[RESULT_TYPE];
}

/** A message that expects a response. */
export interface Request {
  readonly kind: "request";
  readonly id: Id;
  readonly method: string;
  readonly params?: Params;
  /** Bytes of memory that the parameters take. If `text` is set, this number is only an upper bound. */
  readonly weight: number;
  /**
   * The text of a short message. The exact weight is computed from this text on demand. Computing the weight of every
   * message would take a tenth of the time of a small call.
   */
  readonly text?: string;
}

/** A message that gets no response. */
export interface Notification {
  readonly kind: "notification";
  readonly method: string;
  readonly params?: Params;
}

/** The client's response to a request from the server. */
export interface Response {
  readonly kind: "response";
  readonly id: Id;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** An array of messages that are not checked yet. */
export interface Batch {
  readonly kind: "batch";
  readonly items: readonly unknown[];
  /** Bytes of memory that all messages take together. */
  readonly weight: number;
}

/** An invalid message, with its error, and with its id if the id could be read. */
export interface Broken extends Limited {
  readonly kind: "broken";
  readonly id?: Id;
  readonly code: number;
  readonly message: string;
}

/** The result of parsing one text. */
export type Incoming = Request | Notification | Response | Batch | Broken;

/** The result of parsing bytes that are not valid UTF-8. */
export const NOT_UTF8: Broken = broken(PARSE_ERROR, "it is not UTF-8");

export interface MessageLimits {
  /** Maximum number of levels of nested objects and arrays. */
  readonly depth: number;
  /** Maximum number of JSON values, including nested values. */
  readonly values: number;
  /** Maximum length of a request id in characters. */
  readonly idCharacters: number;
  /** Maximum length of a method name in characters. */
  readonly methodCharacters: number;
}

/** Parses one message. Never throws: an invalid message becomes a {@linkcode Broken}. */
export function parseMessage(text: string, limits: MessageLimits): Incoming {
  const isShort = text.length <= SHORT && text.length / KEY_LENGTH <= limits.values / 50;
  const size = isShort ? undefined : measureJson(text, limits);
  const excess = size ? toExcess(size, limits) : findExcess(text, limits);
  if (excess) return excess;
  const indexes = isShort ? 0 : countIndexes(text);
  if (indexes > limits.values / 50) {
    return broken(
      INVALID_REQUEST,
      `it has more than ${limits.values / 50} keys that are small integers`,
      undefined,
      "request.values",
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return broken(PARSE_ERROR, "it is not valid JSON");
  }
  // Count an empty object or array twice, because it takes as much memory as two values.
  const max = size ? Math.min(size.values + size.empty, limits.values) : 0;
  if (Array.isArray(value)) {
    const weight = toWeight(text, { max, indexes: countIndexes(text) });
    return { kind: "batch", items: value, weight };
  }
  const weight = isShort ? text.length * MAX_BYTES : toWeight(text, { max, indexes });
  return toMessage(value, limits, { weight, text: isShort ? text : undefined });
}

/** Checks one parsed JSON value. Omit `weight` if the caller counts the memory of the message itself. */
export function toMessage(
  value: unknown,
  limits: MessageLimits,
  { weight, text }: Pick<Request, "weight" | "text"> = { weight: 0 },
): Exclude<Incoming, Batch> {
  if (!isObject(value)) return broken(INVALID_REQUEST, "it is not a JSON object");
  const { id, method, result, error } = value;
  const params = value.params ?? undefined;
  const known = isId(id) && (typeof id === "number" || id.length <= limits.idCharacters) ? id : undefined;
  if (value.jsonrpc !== "2.0") return broken(INVALID_REQUEST, 'jsonrpc is not "2.0"', known);
  if (id !== undefined && known === undefined) {
    return broken(
      INVALID_REQUEST,
      `id is not an integer or a string of at most ${limits.idCharacters} characters`,
      undefined,
      "request.idCharacters",
    );
  }
  const isResult = result !== undefined;
  const isError = error !== undefined;
  if (method === undefined && known !== undefined && (isResult || isError)) {
    // Some clients send `error: null` beside a result, or an error without a message. Do not reject such a response,
    // because the call that waits for it would wait until its timeout.
    if (isResult && (!isError || error === null)) return { kind: "response", id: known, result };
    if (!isResult || result === null) return { kind: "response", id: known, error: toErrorObject(error) };
  }
  if (typeof method !== "string" || isResult || isError) {
    return broken(INVALID_REQUEST, "it is not a request, notification or response", known);
  }
  if (method.length > limits.methodCharacters) {
    return broken(
      INVALID_REQUEST,
      `method has more than ${limits.methodCharacters} characters`,
      known,
      "request.methodCharacters",
    );
  }
  if (params !== undefined && !isObject(params)) {
    return broken(INVALID_PARAMS, "params is not an object", known);
  }
  return known === undefined
    ? { kind: "notification", method, params }
    : { kind: "request", id: known, method, params, weight, text };
}

/** Serializes a success response. `result` is already JSON text. */
export function toSuccess(id: Id, result: string): string {
  return `{"jsonrpc":"2.0","id":${toIdText(id)},"result":${result}}`;
}

/** Serializes an error response. Pass `null` as the id if the id could not be read, or `undefined` to omit the id. */
export function toFailure(id: Id | null | undefined, error: Pick<McpError, "code" | "message" | "data">): string {
  const { code, message, data } = error;
  const toText = (data?: unknown) => JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } });
  try {
    return toText(data);
  } catch {
    // Omit data that JSON cannot represent, so that the client still gets its response.
    return toText();
  }
}

/** Serializes a notification. */
export function toNotification(method: string, params?: Params): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

/** Serializes an id. */
export function toIdText(id: Id): string {
  return typeof id === "number" ? `${id}` : JSON.stringify(id);
}

/**
 * Whether a value is a valid request id. A fraction or a number above 2^53 is not valid, because it could lose digits
 * in the response.
 */
export function isId(value: unknown): value is Id {
  return typeof value === "string" || Number.isSafeInteger(value);
}

/** Reads the error of a response. An error without a code or a message gets a default. */
function toErrorObject(error: unknown): NonNullable<Response["error"]> {
  const { code, message, data } = Object(error);
  return { code: Number.isInteger(code) ? code : INTERNAL_ERROR, message: `${message ?? ""}`, data };
}

function broken(code: number, state: string, id?: Id, limit?: string): Broken {
  return { kind: "broken", id, code, ...nameLimits(`Cannot read the message: ${state}`, limit) };
}

/**
 * Returns the error for a text that exceeds a limit. Returns `undefined` if the text is within the limits. Runs before
 * JSON.parse, which would allocate memory for millions of brackets.
 */
function findExcess(text: string, limits: MessageLimits): Broken | undefined {
  const { depth, values } = limits;
  // A value takes at least two characters, and a nested object at least four. Most messages are therefore too short to
  // exceed a limit, or have too few brackets, which a native search finds quickly. Only the remaining messages need an
  // exact measurement.
  const arrays = count(text, "[", depth);
  const isFlat = arrays + text.length / 4 <= depth || arrays + count(text, "{", depth) <= depth;
  if (isFlat && text.length < 2 * values) return;
  return toExcess(measureJson(text, limits), limits);
}

function toExcess({ excess }: JsonSize, { depth, values }: MessageLimits): Broken | undefined {
  if (!excess) return;
  const state = excess === "depth" ? `it is nested deeper than ${depth} levels` : `it has more than ${values} values`;
  return broken(INVALID_REQUEST, state, undefined, `request.${excess}`);
}

/** Counts the occurrences of a character. Stops counting above `max`. */
function count(text: string, character: string, max: number): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0 && found <= max; at = text.indexOf(character, at + 1)) found++;
  return found;
}
