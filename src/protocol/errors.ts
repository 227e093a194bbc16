/**
 * Errors that a client is told about, and the table of codes.
 *
 * @see specification/2026-07-28/basic (Error Codes)
 * @module
 */
import type { Content } from "./types.ts";

/** The text is not JSON. */
export const PARSE_ERROR = -32700;
/** The JSON is not a request, or breaks a limit. */
export const INVALID_REQUEST = -32600;
/** Nobody answers this method. */
export const METHOD_NOT_FOUND = -32601;
/** The parameters are wrong, or name something unknown. */
export const INVALID_PARAMS = -32602;
/** The server's own fault. */
export const INTERNAL_ERROR = -32603;
/** A header does not match the body. */
export const HEADER_MISMATCH = -32020;
/** The client did not declare a capability that the request needs. */
export const MISSING_CAPABILITY = -32021;
/** The protocol version is not spoken here. */
export const UNSUPPORTED_VERSION = -32022;

// Errors are told apart by what their prototypes say, because a handler may come with its own copy of this library.
const KIND: unique symbol = Symbol.for("mcp.error");

/**
 * An error of the protocol. The client receives `code`, `message` and `data` as they are, so put nothing secret in.
 *
 * ```ts
 * import { McpError } from "@x/mcp";
 *
 * const known = McpError.invalidParams("Cannot read the page: no such page", { page: 9 });
 * const own = new McpError(-31001, "Cannot read the page: the archive is closed", { page: 9 });
 * ```
 */
export class McpError extends Error {
  /** `McpError`. */
  override readonly name = "McpError";
  /** A JSON-RPC error code: an integer outside -32768 to -32000, or one that the protocol has given a meaning. */
  readonly code: number;
  /** Any JSON value. */
  readonly data?: unknown;

  /** An error with a code, a text for people, and optional data for programs. */
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }

  /** The parameters are wrong, or name something unknown: code -32602. */
  static invalidParams(message: string, data?: unknown): McpError {
    return new McpError(INVALID_PARAMS, message, data);
  }

  /** The message is no request, or comes at the wrong time: code -32600. */
  static invalidRequest(message: string, data?: unknown): McpError {
    return new McpError(INVALID_REQUEST, message, data);
  }

  /** The server has no such method: code -32601. */
  static methodNotFound(message: string, data?: unknown): McpError {
    return new McpError(METHOD_NOT_FOUND, message, data);
  }

  /** The server failed: code -32603. */
  static internalError(message: string, data?: unknown): McpError {
    return new McpError(INTERNAL_ERROR, message, data);
  }

  /** There is no such resource, or not for this caller: the code that the protocol revision of the client has for it. */
  static resourceNotFound(uri: string): McpError {
    return new McpError(INVALID_PARAMS, "Resource not found", { uri });
  }

  /** @ignore */
  get [KIND](): string {
    return "mcp";
  }
}

/**
 * A failure of a tool that the model should read and can act on. It becomes a result with `isError: true`.
 *
 * ```ts
 * import { ToolError } from "@x/mcp";
 *
 * const error = new ToolError("No flight on that date; try the day after.");
 * ```
 *
 * @see specification/2026-07-28/server/tools (Error Handling)
 */
export class ToolError extends Error {
  /** `ToolError`. */
  override readonly name = "ToolError";
  /** What the model sees. */
  readonly content: readonly Content[];

  /** A failure told as a text, or as content blocks. */
  constructor(content: string | readonly Content[]) {
    const isText = typeof content === "string";
    super(isText ? content : "Tool error");
    this.content = isText ? [{ type: "text", text: content }] : content;
  }

  /** @ignore */
  get [KIND](): string {
    return "tool";
  }
}

/** What a handler returned cannot be sent: the server's fault, and nothing that a model could fix. */
export class ResultError extends Error {
  /** @internal */
  readonly [KIND] = "result";
}

// In the range of the protocol: those that it has given a meaning, in any revision, and those it leaves to libraries.
const KNOWN = /^-32(700|60[0-3]|0([01]\d|2[0-2]|42))$/;

/** Whether an error may be sent: its code is an integer, and outside the range of the protocol or one that it knows. */
export function hasValidCode({ code }: McpError): boolean {
  return Number.isInteger(code) && (code < -32768 || code > -32000 || KNOWN.test(`${code}`));
}

/** Whether an error is an {@linkcode McpError} of any copy of this library. */
export function isMcpError(error: unknown): error is McpError {
  return isOf(error, "mcp");
}

/** Whether an error is a {@linkcode ToolError} of any copy of this library. */
export function isToolError(error: unknown): error is ToolError {
  return isOf(error, "tool");
}

/** Whether an error is a {@linkcode ResultError} of any copy of this library. */
export function isResultError(error: unknown): boolean {
  return isOf(error, "result");
}

function isOf(error: unknown, kind: string): boolean {
  return Object(error)[KIND] === kind;
}

/** A value quoted for an error text: never longer than 200 characters, whatever a client sent. */
export function quote(value: unknown): string {
  const text = typeof value === "string" ? value : typeof value;
  return JSON.stringify(text.length > 200 ? text.slice(0, 200) + "…" : text);
}
