/**
 * The text copy of structured content: whole, as a summary, or none.
 *
 * @see specification/2026-07-28/server/tools (Structured Content)
 * @module
 */
import { isObject, type Result } from "./jsonrpc.ts";
import type { TextCopy } from "./text_option.ts";

/** Marks results and blocks of text that have no whole copy. JSON omits it, and copies of an object keep it. */
const SHORT: unique symbol = Symbol.for("mcp.shortText");

/** Characters of a summary. */
const MAX_CHARACTERS = 500;

/** Returns the content blocks with a copy of structured content, and the mark of the result. */
export function copyText(structured: unknown, kind: TextCopy): { content: Result[]; mark: object } {
  if (kind === "full") return { content: [{ type: "text", text: JSON.stringify(structured) }], mark: {} };
  const content = kind === "none" ? [] : [{ type: "text", text: summarize(structured), [SHORT]: true }];
  return { content, mark: { [SHORT]: true } };
}

/** Returns a result with the whole copy, for those who cannot use the structured content. */
export function restoreText(result: Result): Result {
  const { content, structuredContent } = result;
  if (!(SHORT in result) || structuredContent === undefined || !Array.isArray(content)) return result;
  const own = content.filter((block) => !(isObject(block) && SHORT in block));
  return { ...result, content: [...copyText(structuredContent, "full").content, ...own] };
}

/** Describes the top level of a value. */
function summarize(value: unknown): string {
  if (!isObject(value)) return toKind(value);
  const keys = Object.keys(value);
  let text = `object with ${keys.length} ${keys.length === 1 ? "key" : "keys"}`;
  for (const [at, key] of keys.entries()) {
    const part = `${at ? ", " : ": "}${key.length > 60 ? `${key.slice(0, 60).toWellFormed()}…` : key} ${
      toKind(value[key])
    }`;
    const rest = `, … ${keys.length - at} more`;
    if (text.length + part.length + rest.length > MAX_CHARACTERS) return text + rest;
    text += part;
  }
  return text;
}

/** Returns the type of a JSON value, and its length if it has one. */
function toKind(value: unknown): string {
  if (Array.isArray(value)) return `array (${value.length})`;
  if (typeof value === "string") return `string (${value.length})`;
  if (isObject(value)) return `object (${Object.keys(value).length})`;
  return value === null || value === undefined ? "null" : typeof value;
}
