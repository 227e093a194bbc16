/**
 * Creates the text copy of structured content: the full JSON, a summary, or no text.
 *
 * @see specification/2026-07-28/server/tools (Structured Content)
 */
import { parseJson } from "../kit/json.ts";
import { isObject, type Result } from "./jsonrpc.ts";
import { MAX_LINE, type TextCopy } from "./text_option.ts";

/**
 * Marks results that lack the full text copy, and the text blocks that replace it. JSON.stringify omits the mark, and
 * copies of a marked object keep the mark.
 */
const SHORT: unique symbol = Symbol.for("mcp.shortText");

/** Maximum length of a summary in characters. */
const MAX_CHARACTERS = 500;

/** Number of characters above which an element of a long text copy has its own elements on separate lines. */
const MAX_ELEMENT = 2048;

/** Number of nested levels whose elements get their own lines, because each level serializes the value again. */
const MAX_LEVELS = 4;

/** Returns the content blocks, and an object to spread into the result, which marks a result without the full copy. */
export function copyText(structured: unknown, kind: TextCopy): { content: Result[]; mark: object } {
  if (kind === "full") return { content: [{ type: "text", text: toJsonText(structured) }], mark: {} };
  const content = kind === "none" ? [] : [{ type: "text", text: summarize(structured), [SHORT]: true }];
  return { content, mark: { [SHORT]: true } };
}

/** Returns a result with the full copy, for recipients that cannot use the structured content. */
export function restoreText(result: Result): Result {
  const { content, structuredContent } = result;
  if (!(SHORT in result) || structuredContent === undefined || !Array.isArray(content)) return result;
  const own = content.filter((block) => !(isObject(block) && SHORT in block));
  return { ...result, content: [...copyText(structuredContent, "full").content, ...own] };
}

/** Returns a result with other structured content, which also replaces the copy in its texts, if there is a copy. */
export function withStructured(result: Result, structuredContent: unknown): Result {
  const { content, structuredContent: before } = result;
  if (!Array.isArray(content)) return { ...result, structuredContent };
  const isCopy = (text: unknown) => typeof text === "string" && isJsonOf(text, before);
  const copied = content.map((block) => {
    if (!isObject(block) || block.type !== "text") return block;
    if (SHORT in block) return { ...block, text: summarize(structuredContent) };
    return isCopy(block.text) ? { ...block, text: toJsonText(structuredContent) } : block;
  });
  return { ...result, content: copied, structuredContent };
}

function isJsonOf(text: string, value: unknown): boolean {
  if (text === toJsonText(value)) return true;
  const parsed = /^\s*[[{]/.test(text) ? parseJson(text) : undefined;
  return parsed !== undefined && JSON.stringify(parsed) === JSON.stringify(value);
}

/** Returns a value as JSON. The elements of a long array or object are on separate lines. */
export function toJsonText(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_LINE ? breakLines(value, text, 1) : text;
}

function breakLines(value: unknown, text: string, level: number): string {
  const isArray = text.startsWith("[");
  // An object with a toJSON method has other elements than its JSON.
  if (level > MAX_LEVELS || !isArray && !text.startsWith("{") || "toJSON" in Object(value)) return text;
  const toElement = (element: unknown) => {
    const text = JSON.stringify(element);
    return text?.length > MAX_ELEMENT ? breakLines(element, text, level + 1) : text;
  };
  if (Array.isArray(value)) return `[\n${value.map((item) => toElement(item) ?? "null").join(",\n")}\n]`;
  const members = Object.entries(Object(value)).flatMap(([name, member]) => {
    const element = toElement(member);
    return element === undefined ? [] : `${JSON.stringify(name)}:${element}`;
  });
  return `{\n${members.join(",\n")}\n}`;
}

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
