/**
 * Headers that repeat the method and what the call is about, for those between client and server who do not read bodies.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Standard Request Headers)
 * @module
 */
import { HEADER_MISMATCH, McpError, quote } from "../../protocol/errors.ts";
import type { Request } from "../../protocol/jsonrpc.ts";
import { decodeHeaderValue } from "../../protocol/header_value.ts";

// Text that stands for itself in a header. A raw byte beyond ASCII is read in one way here and in another elsewhere.
const PLAIN = /^(?!=\?)[ -~]*$/;

/** Whether a header says what the body says. Most names are plain; the rest are decoded. */
export function isRepeated(header: string | null, value: string): boolean {
  if (header === value && PLAIN.test(value)) return true;
  return header !== null && decodeHeaderValue(header) === value;
}

/** Checks the headers that repeat the method and the parameter that the call is about. */
export function checkHeaders({ method }: Request, headers: Headers, subject: unknown): void {
  const named = headers.get("mcp-method");
  if (named !== method) throw toMismatch("Mcp-Method", named, method);
  if (typeof subject !== "string") return;
  const name = headers.get("mcp-name");
  // Most names are plain.
  if (name === subject && PLAIN.test(name)) return;
  if (!isRepeated(name, subject)) throw toMismatch("Mcp-Name", name, subject);
}

/** The error for a header that is missing or says something else than the body. */
export function toMismatch(name: string, header: string | null | undefined, body: string): McpError {
  const state = header === null || header === undefined ? "is missing" : `is ${quote(header)}`;
  return new McpError(
    HEADER_MISMATCH,
    `Cannot serve the request: header ${name} ${state}, the body says ${quote(body)}`,
  );
}
