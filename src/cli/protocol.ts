/**
 * The protocol revisions and error codes that commands use.
 *
 * @see specification/2026-07-28/basic (Error Codes)
 */
import type { Revision } from "../library.ts";

/** Error code: the text is not JSON. */
export const PARSE_ERROR = -32700;
/** Error code: the JSON is not a JSON-RPC request. */
export const INVALID_REQUEST = -32600;
/** Error code: the server does not support the method. */
export const METHOD_NOT_FOUND = -32601;
/** Error code: the parameters are invalid, or refer to an unknown item. */
export const INVALID_PARAMS = -32602;
/** Error code: the handler failed unexpectedly. */
export const INTERNAL_ERROR = -32603;
/** Error code: a header does not match the body. */
export const HEADER_MISMATCH = -32020;
/** Error code: the server does not support the protocol revision. */
export const UNSUPPORTED_VERSION = -32022;
/** Error code, specific to this library: the operation requires an authenticated caller. */
export const UNAUTHENTICATED = -31_401;
/** Error code, specific to this library: the caller's token lacks scopes. */
export const INSUFFICIENT_SCOPE = -31_403;

/** The revision without handshakes. */
export const MODERN = "2026-07-28" satisfies Revision;

/** The revisions with a handshake, newest first. The oldest revision also uses a different HTTP transport. */
export const LEGACY: readonly string[] = [
  "2025-11-25",
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
] satisfies readonly Revision[];

/** All revisions, newest first. */
export const REVISIONS: readonly string[] = [MODERN, ...LEGACY];
