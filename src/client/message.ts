/**
 * JSON-RPC messages, and their parser for the client.
 */
import { mayRound, parseExactly, toRawNumber } from "../core/kit/exact_json.ts";
import { type Id, isObject, type Params } from "../core/protocol/jsonrpc.ts";

/**
 * A message in either direction. A request has `method` and `id`, a notification has only `method`, and a response has
 * neither `method` nor `params`.
 */
export interface Message {
  /** Always `2.0`. */
  readonly jsonrpc: "2.0";
  /** The id of the request. `null` or absent in the error response to a request that the server could not read. */
  readonly id?: Id | null;
  /** The method, such as `tools/call`. */
  readonly method?: string;
  /** The parameters. */
  readonly params?: Params;
  /** The result, in a successful response. */
  readonly result?: unknown;
  /** The error, in an error response. */
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A notification from the server. */
export interface Notification {
  /** The method, such as `notifications/progress`. */
  readonly method: string;
  /** The parameters, or an empty object if the notification has no parameters. */
  readonly params: Params;
}

export type ReadMessages = (text: string) => readonly Message[];

/** Parses a message, or an array of messages. Throws if the text is neither. */
export const readMessages: ReadMessages = (text) => toMessages(text, parse(text));

/** A whole number beyond 2^53 keeps its digits when `JSON.stringify` writes the message again, but is not a number. */
export const readForwarded: ReadMessages = (text) => toMessages(text, parse(text, toRawNumber));

function toMessages(text: string, value: unknown): readonly Message[] {
  const messages = Array.isArray(value) ? value : [value];
  if (!messages.every(isMessage)) {
    const state = text ? `${JSON.stringify(text.slice(0, 500))} is not a JSON-RPC 2.0 message` : "the text is empty";
    throw new Error(`Cannot read the server's message: ${state}`);
  }
  return messages;
}

// Returns `undefined` for invalid JSON. The caller rejects `undefined`, like any other value that is not a message.
function parse(text: string, toNumber?: (digits: string) => unknown): unknown {
  try {
    if (toNumber) return parseExactly(text, toNumber);
    const value: unknown = JSON.parse(text);
    if (mayRound(text) && isRounded(text, value)) noteExact(value, parseExactly(text, String));
    return value;
  } catch {
    return undefined;
  }
}

/** Whether a value has lost digits of its text. A whole number beyond 2^53 may be exact, such as a sum of a server. */
function isRounded(text: string, value: unknown): boolean {
  return JSON.stringify(parseExactly(text, toRawNumber)) !== JSON.stringify(value);
}

/** The structured content with the digits of all numbers, by the structured content whose numbers are rounded. */
const exactContents = new WeakMap<object, unknown>();

/** Returns structured content with texts instead of rounded numbers, or `undefined` if no number was rounded. */
export function findExactContent(content: unknown): unknown {
  return isObject(content) || Array.isArray(content) ? exactContents.get(content) : undefined;
}

/** Remembers the exact structured content of a message: of the result of a tool, or of a task. */
function noteExact(value: unknown, exact: unknown): void {
  if (!isObject(value) || !isObject(exact)) return;
  const { structuredContent } = value;
  if (typeof structuredContent === "object" && structuredContent !== null) {
    const isChanged = JSON.stringify(structuredContent) !== JSON.stringify(exact.structuredContent);
    if (isChanged) exactContents.set(structuredContent, exact.structuredContent);
  }
  for (const key of ["result", "params"]) noteExact(value[key], exact[key]);
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value) || value.jsonrpc !== "2.0") return false;
  const { method, params, error } = value;
  if (method !== undefined) return typeof method === "string" && (params === undefined || isObject(params));
  if (error === undefined) return "result" in value;
  return isObject(error) && typeof error.code === "number" && typeof error.message === "string" && !("result" in value);
}
