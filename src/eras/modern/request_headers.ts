/**
 * Checks the headers that repeat the method and the subject of a call for proxies that do not read bodies.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Standard Request Headers)
 * @module
 */
import { HEADER_MISMATCH, McpError, quote } from "../../protocol/errors.ts";
import type { Request } from "../../protocol/jsonrpc.ts";
import { decodeHeaderValue } from "../../protocol/header_value.ts";
import type { HeaderReader } from "../../core/call/link.ts";

// Text that needs no encoding in a header. Bytes beyond ASCII are decoded differently by different programs.
const PLAIN = /^(?!=\?)[ -~]*$/;

/** Tests whether a header repeats a value of the body. */
export function isRepeated(header: string | null, value: string): boolean {
  if (header === value && PLAIN.test(value)) return true;
  return header !== null && decodeHeaderValue(header) === value;
}

/** Checks the headers that repeat the method and the subject of the call. */
export function checkHeaders({ method }: Request, headers: HeaderReader, subject: unknown): void {
  const named = headers.get("mcp-method");
  if (named !== method) throw toMismatch("Mcp-Method", named, method);
  if (typeof subject !== "string") return;
  const name = headers.get("mcp-name");
  // Fast path: most names need no decoding.
  if (name === subject && PLAIN.test(name)) return;
  if (!isRepeated(name, subject)) throw toMismatch("Mcp-Name", name, subject);
}

/** Creates the error for a header that is missing or differs from the body. */
export function toMismatch(name: string, header: string | null | undefined, body: string): McpError {
  const state = header === null || header === undefined ? "is missing" : `is ${quote(header)}`;
  return new McpError(
    HEADER_MISMATCH,
    `Cannot serve the request: header ${name} ${state}, the body has ${quote(body)}`,
  );
}
