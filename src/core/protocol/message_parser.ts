/**
 * Parses and checks incoming JSON-RPC 2.0 messages.
 *
 * @see specification/2026-07-28/basic (Messages)
 */
import { isObject } from "../kit/json.ts";
import { type JsonSize, measureJson } from "./json_size.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, nameLimits, PARSE_ERROR } from "./errors.ts";
import { type Batch, type Broken, type Id, type Incoming, isId, type Request, type Response } from "./jsonrpc.ts";
import { countIndexes, KEY_LENGTH, MAX_BYTES, SHORT, toWeight } from "./weight.ts";

/** The result of parsing bytes that are not valid UTF-8. */
export const NOT_UTF8: Broken = broken(PARSE_ERROR, "it is not UTF-8");

/** The usual cause of an empty body is a framework's body parser that has read the body. */
const EMPTY = "it is empty; if the client sends a body, mount the server before body parsers such as express.json()";

export interface MessageLimits {
  /** Levels of nested objects and arrays. */
  readonly depth: number;
  /** JSON values, including nested values. */
  readonly values: number;
  readonly idCharacters: number;
  readonly methodCharacters: number;
}

/** Never throws: an invalid message becomes a {@linkcode Broken}. */
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
    return broken(PARSE_ERROR, text ? "it is not valid JSON" : EMPTY);
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
