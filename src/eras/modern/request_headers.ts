/**
 * Headers that repeat parameters of a tool, for those between client and server who do not read bodies.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Custom Headers from Tool Parameters)
 * @module
 */
import { HEADER_MISMATCH, McpError, quote } from "../../protocol/errors.ts";
import { isObject, type Request } from "../../protocol/jsonrpc.ts";
import { decodeHeaderValue } from "../../protocol/header_value.ts";
import type { HeaderParam } from "../../schema/header_params.ts";

// Text that stands for itself in a header. A raw byte beyond ASCII is read in one way here and in another elsewhere.
const PLAIN = /^(?!=\?)[ -~]*$/;

/** Whether a header says what the body says. Most names are plain; the rest are decoded. */
function isRepeated(header: string | null, value: string): boolean {
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

/** Checks the headers that a tool's schema asks for against its arguments. */
export function checkParamHeaders(wanted: readonly HeaderParam[], headers: Headers, given: unknown): void {
  for (const { header, path, type } of wanted) {
    const said = headers.get(`mcp-param-${header}`);
    const value = valueAt(given, path);
    const name = `Mcp-Param-${header}`;
    if (value === undefined || value === null) {
      if (said !== null) throw toMismatch(name, said, "nothing");
      continue;
    }
    // A value of the wrong type is left for the tool's schema to name; only what the header claims is compared here.
    // As JSON and not by String(): an object decides what that gives, and can make it throw.
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const same = said !== null && (isRepeated(said, text) || (type === "integer" && isSameNumber(said, value)));
    if (!same) throw toMismatch(name, said, text);
  }
}

/** The error for a header that is missing or says something else than the body. */
export function toMismatch(name: string, header: string | null | undefined, body: string): McpError {
  const state = header === null || header === undefined ? "is missing" : `is ${quote(header)}`;
  return new McpError(
    HEADER_MISMATCH,
    `Cannot serve the request: header ${name} ${state}, the body says ${quote(body)}`,
  );
}

function isSameNumber(header: string, value: unknown): boolean {
  const text = decodeHeaderValue(header)?.trim();
  return /^-?[\d.]+(e[+-]?\d+)?$/i.test(text ?? "") && Number(text) === value;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined, value);
}
