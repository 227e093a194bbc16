/**
 * JSON-RPC messages, as the client reads them.
 *
 * @module
 */
import { type Id, isObject, type Params } from "../protocol/jsonrpc.ts";

/** A message in either direction. With `method` and `id` it is a request, with `method` alone a notification. */
export interface Message {
  /** Always `2.0`. */
  readonly jsonrpc: "2.0";
  /** The id of the request. `null` or absent in an error response to a request that could not be read. */
  readonly id?: Id | null;
  /** The method, such as `tools/call`. */
  readonly method?: string;
  /** The parameters. */
  readonly params?: Params;
  /** The result of a request. */
  readonly result?: unknown;
  /** The error of a request. */
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A notification from the server. */
export interface Notification {
  /** The method, such as `notifications/progress`. */
  readonly method: string;
  /** The parameters, or an empty object if the notification has no parameters. */
  readonly params: Params;
}

/** Parses one message, or an array of messages. Throws for any other text. */
export function readMessages(text: string): readonly Message[] {
  const value = parse(text);
  const messages = Array.isArray(value) ? value : [value];
  if (!messages.every(isMessage)) {
    throw new Error(`Cannot read the server's message: ${text.slice(0, 500) || "it is empty"}`);
  }
  return messages;
}

// Returns `undefined` for invalid JSON, which is then rejected like any other value that is not a message.
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
