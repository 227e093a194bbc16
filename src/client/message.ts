/**
 * JSON-RPC messages, and their parser for the client.
 */
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

/** Parses a message, or an array of messages. Throws if the text is neither. */
export function readMessages(text: string): readonly Message[] {
  const value = parse(text);
  const messages = Array.isArray(value) ? value : [value];
  if (!messages.every(isMessage)) {
    const state = text ? `${JSON.stringify(text.slice(0, 500))} is not a JSON-RPC 2.0 message` : "the text is empty";
    throw new Error(`Cannot read the server's message: ${state}`);
  }
  return messages;
}

// Returns `undefined` for invalid JSON. The caller rejects `undefined`, like any other value that is not a message.
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value) || value.jsonrpc !== "2.0") return false;
  const { method, params, error } = value;
  if (method !== undefined) return typeof method === "string" && (params === undefined || isObject(params));
  if (error === undefined) return "result" in value;
  return isObject(error) && typeof error.code === "number" && typeof error.message === "string" && !("result" in value);
}
