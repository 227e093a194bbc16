/**
 * The JSON-RPC 2.0 messages, and their serialization.
 *
 * @see specification/2026-07-28/basic (Messages)
 */
import { isObject } from "../kit/json.ts";
import type { Limited, McpError } from "./errors.ts";

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

/** Also reads the `resultType` that another copy of the library has set with {@linkcode toTypedResult}. */
export function readResultType(result: Result): string | undefined {
  return Object(result)[RESULT_TYPE];
}

/** Beginning of the metadata keys that the protocol and its extensions define. */
const RESERVED = "io.modelcontextprotocol/";

/**
 * Returns the result of a handler without what only the library and extensions can set: the `resultType`, and reserved
 * keys in `_meta`. A result that another server has sent can contain both.
 *
 * @see specification/2026-07-28/basic (`_meta`)
 */
export function withoutReserved<R extends Result>(result: R): R {
  const { resultType, _meta, ...rest } = result;
  if (resultType === undefined && _meta === undefined || readResultType(result) !== undefined) return result;
  const kept = isObject(_meta) ? Object.entries(_meta).filter(([key]) => !key.startsWith(RESERVED)) : [];
  const meta = !isObject(_meta) ? { _meta } : kept.length ? { _meta: Object.fromEntries(kept) } : {};
  // The cast is safe, because only optional members were left out.
  return { ...rest, ..._meta !== undefined && meta } as unknown as R;
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

/** `result` is already JSON text. */
export function toSuccess(id: Id, result: string): string {
  return `{"jsonrpc":"2.0","id":${toIdText(id)},"result":${result}}`;
}

/** Pass `null` as the id if the id could not be read, or `undefined` to omit the id. */
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

export function toNotification(method: string, params?: Params): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

export function toIdText(id: Id): string {
  return typeof id === "number" ? `${id}` : JSON.stringify(id);
}

/** A fraction or a number above 2^53 is not valid, because it could lose digits in the response. */
export function isId(value: unknown): value is Id {
  return typeof value === "string" || Number.isSafeInteger(value);
}
