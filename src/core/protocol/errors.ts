/**
 * Errors that reach the client, and their codes.
 *
 * @see specification/2026-07-28/basic (Error Codes)
 */
import { withErrorId } from "../kit/error_id.ts";
import type { Content } from "./types.ts";

/** The text is not JSON. */
export const PARSE_ERROR = -32700;
/** The JSON is not a JSON-RPC request, or exceeds a limit. */
export const INVALID_REQUEST = -32600;
/** The server does not support the method. */
export const METHOD_NOT_FOUND = -32601;
/** The parameters are invalid, or they name a handler, resource or method that does not exist. */
export const INVALID_PARAMS = -32602;
/** A resource does not exist, in revisions with sessions. */
export const RESOURCE_NOT_FOUND = -32002;
/** The user must open pages before the request can succeed. Only in the last revision with sessions. */
export const URLS_REQUIRED = -32042;
/** The server failed unexpectedly. */
export const INTERNAL_ERROR = -32603;
/** A header does not match the body. */
export const HEADER_MISMATCH = -32020;
/** The request needs a capability that the client did not declare. */
export const MISSING_CAPABILITY = -32021;
/** The caller lacks scopes. The code is outside of the range that the specification reserves. */
export const INSUFFICIENT_SCOPE = -31_403;
/** The operation needs an authenticated caller. The code is outside of the range that the specification reserves. */
export const UNAUTHENTICATED = -31_401;
/** The server does not support the protocol version. */
export const UNSUPPORTED_VERSION = -32022;
/** The client sends requests too often. The code is outside of the range that the specification reserves. */
export const RATE_LIMITED = -31_429;
/** The server has reached a limit. The code is outside of the range that the specification reserves. */
export const BUSY = -31_503;

// Marks the errors of this library. `instanceof` does not suffice, because a handler may use another copy of the
// library.
const KIND: unique symbol = Symbol.for("mcp.error");

/**
 * The key of a property with the paths of the limits that caused an error or a refusal. The property's value is a text,
 * such as `calls.running, calls.waiting`. Observers receive the reached limit.
 */
export const REACHED: unique symbol = Symbol.for("mcp.reached");

/** An error or a refusal that a limit may have caused. */
export interface Limited {
  /** @ignore */
  readonly [REACHED]?: string;
}

/**
 * A JSON-RPC error response. The client receives `code`, `message` and `data` unchanged, so never put secrets in them.
 *
 * A client also throws an `McpError` if the server responds with an error. Such an error has `remote: true`. Its code
 * is 0 if the response was not a JSON-RPC message.
 *
 * ```ts
 * import { McpError } from "@x/mcp";
 *
 * const known = McpError.invalidParams("Cannot read the page: no such page", { page: 9 });
 * const own = new McpError(-31001, "Cannot read the page: the archive is closed", { page: 9 });
 * ```
 */
export class McpError extends Error {
  /**
   * The class name, `McpError`. If the error is the abort reason of a signal, the name is `AbortError` or
   * `TimeoutError`.
   */
  override readonly name: string = "McpError";
  /** The JSON-RPC error code, an integer. */
  readonly code: number;
  /** Details of the error for programs: any JSON value. */
  readonly data?: unknown;
  /**
   * Whether the error came from another server: the server responded with an error, or its response was invalid. If a
   * handler does not catch such an error, the call fails with an internal error, so that the error of another server
   * never becomes the response of this server by accident.
   */
  readonly remote: boolean;
  /** The HTTP status of a remote error, if the request was sent over HTTP. */
  readonly status?: number;
  /** @ignore */
  declare readonly [REACHED]?: string;

  /** Creates an error with a code, a human-readable message, and optional machine-readable data. */
  constructor(code: number, message: string, data?: unknown, origin?: {
    /** The HTTP status, if the request was sent over HTTP. */
    readonly status?: number;
  }) {
    super(message);
    this.code = code;
    this.data = data;
    this.remote = origin !== undefined;
    if (origin?.status !== undefined) this.status = origin.status;
  }

  /**
   * Returns a remote error as an error of this server: `throw error.asOwn()` passes its code, message and data on to
   * the client. The code 0, which stands for a response that is not a JSON-RPC message, becomes the code of an internal
   * error, and the code of older revisions for a missing resource becomes the code of the newest revision.
   */
  asOwn(): McpError {
    if (!this.remote) return this;
    const code = this.code === RESOURCE_NOT_FOUND ? INVALID_PARAMS : this.code || INTERNAL_ERROR;
    const own = new McpError(code, this.message, this.data);
    own.cause = this;
    return own;
  }

  /** Creates an error for invalid parameters or an unknown name (code -32602). */
  static invalidParams(message: string, data?: unknown): McpError {
    return new McpError(INVALID_PARAMS, message, data);
  }

  /** Creates an error for a message that is invalid or currently not allowed (code -32600). */
  static invalidRequest(message: string, data?: unknown): McpError {
    return new McpError(INVALID_REQUEST, message, data);
  }

  /** Creates an error for an unknown method (code -32601). */
  static methodNotFound(message: string, data?: unknown): McpError {
    return new McpError(METHOD_NOT_FOUND, message, data);
  }

  /** Creates an error for a failure of the server (code -32603). */
  static internalError(message: string, data?: unknown): McpError {
    return new McpError(INTERNAL_ERROR, message, data);
  }

  /** Creates an error for a text that is not JSON (code -32700). */
  static parseError(message: string, data?: unknown): McpError {
    return new McpError(PARSE_ERROR, message, data);
  }

  /** Creates an error for a header that does not match the body (code -32020). */
  static headerMismatch(message: string, data?: unknown): McpError {
    return new McpError(HEADER_MISMATCH, message, data);
  }

  /** Creates an error for a client that lacks capabilities (code -32021). `data` is `{ requiredCapabilities }`. */
  static missingCapability(message: string, data?: unknown): McpError {
    return new McpError(MISSING_CAPABILITY, message, data);
  }

  /** Creates an error for an unsupported protocol revision (code -32022). `data` is `{ supported, requested }`. */
  static unsupportedVersion(message: string, data?: unknown): McpError {
    return new McpError(UNSUPPORTED_VERSION, message, data);
  }

  /** Creates an error for a caller that is not authenticated (code -31401). */
  static unauthenticated(message: string, data?: unknown): McpError {
    return new McpError(UNAUTHENTICATED, message, data);
  }

  /** Creates an error for a caller that lacks scopes (code -31403). `data` is `{ scopes }`. */
  static insufficientScope(message: string, data?: unknown): McpError {
    return new McpError(INSUFFICIENT_SCOPE, message, data);
  }

  /**
   * Creates an error for a client that sends requests too often (code -31429, HTTP status 429). `Retry-After` is
   * `data.retryAfterMs` converted to seconds, or 1 second.
   */
  static rateLimited(message: string, data?: unknown): McpError {
    return new McpError(RATE_LIMITED, message, data);
  }

  /**
   * Creates an error for a server that has reached a limit (code -31503, HTTP status 503, or 429 in revisions with
   * sessions). `Retry-After` is `data.retryAfterMs` converted to seconds, or 1 second.
   */
  static busy(message: string, data?: unknown): McpError {
    return new McpError(BUSY, message, data);
  }

  /**
   * Creates an error for a resource that does not exist, or is hidden from the caller. The code depends on the client's
   * protocol revision.
   */
  static resourceNotFound(uri: string): McpError {
    return new McpError(INVALID_PARAMS, "Resource not found", { uri });
  }

  /** @ignore */
  get [KIND](): string {
    return this.remote ? "remote" : "mcp";
  }
}

/**
 * A tool failure that the model can read and act on. The client receives a result with `isError: true`.
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
  /** The class name, `ToolError`. */
  override readonly name = "ToolError";
  /** The content blocks that the model reads. */
  readonly content: readonly Content[];

  /** Creates an error with a text or content blocks for the model. */
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

/** Thrown if a handler returns a value that cannot be sent. A model cannot fix this bug of the server. */
export class ResultError extends Error {
  /** @internal */
  readonly [KIND] = "result";
}

/** `problem` completes the message "Cannot …; try again later". `limits` are the paths of the reached limits. */
export function toBusy(problem: string, limits?: string): McpError {
  const { message } = nameLimits(`Cannot ${problem}`, limits, "; try again later");
  return withLimits(new McpError(BUSY, message), limits);
}

/** Returns the text of a tool's result for an unexpected error that was reported. */
export function toFailedText({ message, data }: McpError): string {
  return withErrorId(message, Object(data).errorId);
}

/** Sets the paths of the limits that caused an error, for observers. */
export function withLimits<E extends object>(error: E, limits: string | undefined): E {
  return limits ? Object.assign(error, { [REACHED]: limits }) : error;
}

/** Creates the message of an error or a refusal that limits have caused. The message names the limits in parentheses. */
export function nameLimits(
  state: string,
  limits?: string,
  remedy = "",
): { readonly message: string; readonly [REACHED]?: string } {
  return { message: `${state}${limits ? ` (${limits})` : ""}${remedy}`, [REACHED]: limits };
}

// Codes in the reserved range of JSON-RPC that a server may send: codes that a protocol revision defines, and codes
// that the protocol leaves to implementations.
const KNOWN = /^-32(700|60[0-3]|0([01]\d|2[0-2]|42))$/;

/**
 * Whether a server may send the code of an error. The code must be an integer that {@linkcode KNOWN} matches, or an
 * integer outside of the reserved range of JSON-RPC.
 */
export function hasValidCode({ code }: McpError): boolean {
  return Number.isInteger(code) && (code < -32768 || code > -32000 || KNOWN.test(`${code}`));
}

/**
 * Whether an error is an {@linkcode McpError} of this server, not of a remote server, from any copy of this library.
 */
export function isMcpError(error: unknown): error is McpError {
  return isOf(error, "mcp");
}

/** Whether an error is the {@linkcode McpError} of a remote server, created by any copy of this library. */
export function isRemoteError(error: unknown): error is McpError {
  return isOf(error, "remote");
}

/** Whether an error is a {@linkcode ToolError}, created by any copy of this library. */
export function isToolError(error: unknown): error is ToolError {
  return isOf(error, "tool");
}

/** Whether an error is a {@linkcode ResultError}, created by any copy of this library. */
export function isResultError(error: unknown): boolean {
  return isOf(error, "result");
}

function isOf(error: unknown, kind: string): boolean {
  return Object(error)[KIND] === kind;
}

/** Quotes a value for an error message, in at most 200 characters. */
export function quote(value: unknown): string {
  const text = typeof value === "string" ? value : typeof value;
  return JSON.stringify(text.length > 200 ? text.slice(0, 200) + "…" : text);
}
