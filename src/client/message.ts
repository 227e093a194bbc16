/**
 * JSON-RPC messages as the client's end of a connection sees them.
 *
 * @module
 */
import { type Id, isObject, type Params } from "../protocol/jsonrpc.ts";

/** One message in either direction: with `method` and `id` a request, with `method` alone a notification. */
export interface Message {
  /** The same in every message. */
  readonly jsonrpc: "2.0";
  /** `null` or absent in an error whose request could not be read. */
  readonly id?: Id | null;
  /** Such as `tools/call`. */
  readonly method?: string;
  /** What it is about. */
  readonly params?: Params;
  /** What a request came to. */
  readonly result?: unknown;
  /** Why a request came to nothing. */
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Something the server told without being asked. */
export interface Notification {
  /** Such as `notifications/progress`. */
  readonly method: string;
  /** What it says; empty if it says no more than its name. */
  readonly params: Params;
}

/** Reads what the server sent: one message, or several in an array. Throws if it is neither. */
export function readMessages(text: string): readonly Message[] {
  const value = parse(text);
  const messages = Array.isArray(value) ? value : [value];
  if (!messages.every(isMessage)) throw new Error(`Cannot read the server's message: ${text.slice(0, 500)}`);
  return messages;
}

// Nothing for what is no JSON: that is no message either.
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
