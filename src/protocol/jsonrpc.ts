/**
 * JSON-RPC 2.0 messages: text in, a checked message out, and the texts of answers.
 *
 * @see specification/2026-07-28/basic (Messages)
 * @module
 */
import { INVALID_PARAMS, INVALID_REQUEST, type McpError, PARSE_ERROR } from "./errors.ts";
import { countIndexes, KEY_LENGTH, MOST_BYTES, SHORT, toWeight } from "./weight.ts";

/** A request's id: a string or an integer. */
export type Id = string | number;

/** The named parameters of a message. */
export type Params = { readonly [key: string]: unknown };

/** The outcome of a method: a JSON object. */
export type Result = { readonly [key: string]: unknown };

/** A message that waits for an answer. */
export interface Request {
  readonly kind: "request";
  readonly id: Id;
  readonly method: string;
  readonly params?: Params;
  /** Bytes that the parameters take in memory; the most that they may take if there is a `text`. */
  readonly weight: number;
  /** The text of a short message, which is weighed when it matters: that takes a tenth of a small call. */
  readonly text?: string;
}

/** A message that has no answer. */
export interface Notification {
  readonly kind: "notification";
  readonly method: string;
  readonly params?: Params;
}

/** The other side's answer to a request of ours. */
export interface Response {
  readonly kind: "response";
  readonly id: Id;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Several messages in one array, not looked at yet. */
export interface Batch {
  readonly kind: "batch";
  readonly items: readonly unknown[];
  /** Bytes that all items take in memory. */
  readonly weight: number;
}

/** Something that is not a message, and what is wrong with it; the id where it could be read. */
export interface Broken {
  readonly kind: "broken";
  readonly id?: Id;
  readonly code: number;
  readonly message: string;
}

/** What one text from the other side turned out to be. */
export type Incoming = Request | Notification | Response | Batch | Broken;

/** A text that cannot be decoded. */
export const NOT_UTF8: Broken = broken(PARSE_ERROR, "it is not UTF-8");

/** How large the parts of a message may be. */
export interface MessageLimits {
  /** Levels of nested objects and arrays. */
  readonly depth: number;
  /** Values of all kinds, nested ones included. */
  readonly values: number;
  /** Characters of an id. */
  readonly idCharacters: number;
  /** Characters of a method name. */
  readonly methodCharacters: number;
}

/** Reads one text. It never throws: what is wrong comes back as a {@linkcode Broken}. */
export function parseMessage(text: string, limits: MessageLimits): Incoming {
  const excess = findExcess(text, limits);
  if (excess) return broken(INVALID_REQUEST, excess);
  const isShort = text.length <= SHORT && text.length / KEY_LENGTH <= limits.values / 50;
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
  if (Array.isArray(value)) {
    const weight = toWeight(text, { most: limits.values, indexes: countIndexes(text) });
    return { kind: "batch", items: value, weight };
  }
  const weight = isShort ? text.length * MOST_BYTES : toWeight(text, { most: limits.values, indexes });
  return toMessage(value, limits, { weight, text: isShort ? text : undefined });
}

/** Checks one JSON value. Without a weight, what it takes in memory is counted elsewhere. */
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

/** The text of a successful answer; `result` is JSON text already. */
export function toSuccess(id: Id, result: string): string {
  return `{"jsonrpc":"2.0","id":${toIdText(id)},"result":${result}}`;
}

/** The text of a failed answer. `null` is an id that could not be read, `undefined` leaves the id out. */
export function toFailure(id: Id | null | undefined, error: Pick<McpError, "code" | "message" | "data">): string {
  const { code, message, data } = error;
  const toText = (data?: unknown) => JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } });
  try {
    return toText(data);
  } catch {
    // Data that JSON cannot hold must not cost the client its answer.
    return toText();
  }
}

/** The text of a notification. */
export function toNotification(method: string, params?: Params): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

/** An id as JSON text. */
export function toIdText(id: Id): string {
  return typeof id === "number" ? `${id}` : JSON.stringify(id);
}

/** Whether a value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value can be an id. A fraction or a number past 2^53 would not come back as it was sent. */
export function isId(value: unknown): value is Id {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function isErrorObject(value: unknown): value is NonNullable<Response["error"]> {
  return isObject(value) && Number.isInteger(value.code) && typeof value.message === "string";
}

function broken(code: number, state: string, id?: Id): Broken {
  return { kind: "broken", id, code, message: `Cannot read the message: ${state}` };
}

/** What a text has too much of. Found before JSON.parse builds anything: four million brackets cost a scan, no memory. */
function findExcess(text: string, { depth: mostLevels, values: mostValues }: MessageLimits): string | undefined {
  // A value takes two characters at least, and a level that is an object some four. Most messages are too short for too
  // many of either, or hold too few brackets, which the engine's own search finds in no time.
  const arrays = count(text, "[", mostLevels);
  const isFlat = arrays + text.length / 4 <= mostLevels || arrays + count(text, "{", mostLevels) <= mostLevels;
  if (isFlat && text.length < 2 * mostValues) return;

  let depth = 0;
  // Every comma is followed by one more value, and every bracket that is not closed at once by the first of its own.
  let values = 1;
  let opened = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Digits and spaces, of which there are most, are left soonest.
    if (code < 34 || code > 44 && code < 91) continue;
    if (code === 34) {
      i = findQuote(text, i + 1);
      if (i < 0) return; // the text ends within a string: not JSON
    } else if (code === 44) {
      if (++values > mostValues) break;
    } else if (code === 123 || code === 91) {
      if (++depth > mostLevels) return `nested deeper than ${mostLevels} levels (request.depth)`;
      values++;
      opened = i;
    } else if (code === 125 || code === 93) {
      depth--;
      if (opened >= 0 && !text.slice(opened + 1, i).trim()) values--;
      opened = -1;
    }
  }
  if (values > mostValues) return `more than ${mostValues} values (request.values)`;
}

/** The quote that ends a string, or -1: one behind an even number of backslashes. */
function findQuote(text: string, from: number): number {
  let slashes;
  do {
    from = slashes = text.indexOf('"', from);
    while (text.charCodeAt(slashes - 1) === 92) slashes--;
  } while ((from++ - slashes) % 2);
  return from - 1;
}

/** How often a character occurs; counting stops when it is too often. */
function count(text: string, character: string, most: number): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0 && found <= most; at = text.indexOf(character, at + 1)) found++;
  return found;
}
