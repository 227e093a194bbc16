/**
 * The protocol revisions and the error codes.
 *
 * @see specification/2026-07-28/basic (Error Codes)
 * @module
 */
import type { Revision } from "../library.ts";

/** The text is not JSON. */
export const PARSE_ERROR = -32700;
/** The JSON is not a JSON-RPC request. */
export const INVALID_REQUEST = -32600;
/** The server does not support the method. */
export const METHOD_NOT_FOUND = -32601;
/** The parameters are invalid, or refer to something unknown. */
export const INVALID_PARAMS = -32602;
/** The program failed unexpectedly. */
export const INTERNAL_ERROR = -32603;
/** A header does not match the body. */
export const HEADER_MISMATCH = -32020;
/** The server does not support the protocol revision. */
export const UNSUPPORTED_VERSION = -32022;
/** The operation requires an authenticated caller. This code is specific to this library. */
export const UNAUTHENTICATED = -31_401;
/** The caller lacks scopes. This code is specific to this library. */
export const INSUFFICIENT_SCOPE = -31_403;

/** The revision without handshakes. */
export const MODERN = "2026-07-28" satisfies Revision;

/** The revisions with a handshake, newest first. The oldest revision also has a different transport. */
export const LEGACY: readonly string[] = [
  "2025-11-25",
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
] satisfies readonly Revision[];

/** All revisions, newest first. */
export const REVISIONS: readonly string[] = [MODERN, ...LEGACY];
