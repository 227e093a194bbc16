/**
 * Puts an entry into a JSON file with comments, and leaves everything else as it is.
 *
 * @module
 */
import type { Node } from "jsonc-parser";
import { findProperty, formatPosition, type Jsonc, readJsonc } from "./config/jsonc.ts";
import type { EditOptions } from "./install_edit.ts";
import { Problem } from "./problem.ts";

/**
 * The text with the entry in it, in the place of one of the same name if there is one.
 *
 * @throws {Problem} with file, line and column if the text is not JSON with comments, or holds something else there.
 */
export function setEntry(text: string, entry: unknown, { file, path: [holder, name] }: EditOptions): string {
  if (!text.trim()) return `${JSON.stringify({ [holder]: { [name]: entry } }, null, 2)}\n`;
  const jsonc = readJsonc(text, file);
  const bom = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const { root } = jsonc;
  checkObject(jsonc, root, file);
  const holding = findProperty(root, holder)?.children?.[1];
  if (!holding) return bom + insert(jsonc, root, holder, { [name]: entry });
  checkObject(jsonc, holding, file);
  const property = findProperty(holding, name);
  const old = property?.children?.[1];
  if (!old) return bom + insert(jsonc, holding, name, entry);
  return bom + jsonc.text.slice(0, old.offset) + write(jsonc, entry, property.offset) + jsonc.text.slice(toEnd(old));
}

function checkObject({ text }: Jsonc, { type, offset }: Node, file: string): void {
  if (type === "object") return;
  throw new Problem(
    `Cannot change ${formatPosition(file, text, offset)}: there is something else than an object; mend it by hand`,
  );
}

function toEnd({ offset, length }: Node): number {
  return offset + length;
}

// The parser's own insertion would put the entry between the last one and a comment that belongs to that one.
function insert(jsonc: Jsonc, object: Node, key: string, value: unknown): string {
  const { text } = jsonc;
  const closing = toEnd(object) - 1;
  const last = object.children?.at(-1);
  // The comma goes behind the value, and the entry behind any comment that follows it.
  const rest = text.slice(last ? toEnd(last) : object.offset + 1, closing);
  const isFollowed = /^(?:\s|\/\/[^\r\n]*|\/\*[^]*?\*\/)*,/.test(rest);
  const head = last ? text.slice(0, toEnd(last)) + (isFollowed ? "" : ",") : text.slice(0, object.offset + 1);
  const outer = toIndent(text, (last ?? object).offset);
  const isOwnLine = last && toLineStart(text, last.offset) !== toLineStart(text, object.offset);
  const inner = isOwnLine ? outer : outer + toUnit(jsonc);
  const end = toIndent(text, closing === toFirst(text, closing) ? closing : object.offset);
  const eol = toEol(text);
  const member = `${inner}${JSON.stringify(key)}: ${write(jsonc, value, undefined, inner)}`;
  return `${head}${rest.trimEnd()}${eol}${member}${eol}${end}${text.slice(closing)}`;
}

function write(jsonc: Jsonc, value: unknown, at: number | undefined, indent = ""): string {
  const before = at === undefined ? indent : toIndent(jsonc.text, at);
  return JSON.stringify(value, null, toUnit(jsonc)).replaceAll("\n", toEol(jsonc.text) + before);
}

function toEol(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** By how much the members of the whole are set in. */
function toUnit({ text, root }: Jsonc): string {
  const first = root.children?.[0];
  return (first && toIndent(text, first.offset)) || "  ";
}

function toLineStart(text: string, at: number): number {
  return Math.max(text.lastIndexOf("\n", at - 1), text.lastIndexOf("\r", at - 1)) + 1;
}

function toIndent(text: string, at: number): string {
  return /^[ \t]*/.exec(text.slice(toLineStart(text, at), at))?.[0] ?? "";
}

/** The first character of the line that is no space. */
function toFirst(text: string, at: number): number {
  return toLineStart(text, at) + toIndent(text, at).length;
}
