/**
 * Adds an entry to a file in JSON with comments. The rest of the text stays unchanged.
 */
import type { Node } from "jsonc-parser";
import { findProperty, formatPosition, type Jsonc, readJsonc } from "../config/jsonc.ts";
import type { EditOptions } from "./edit_options.ts";
import { CliError } from "../cli_error.ts";

/** Parses the file. Returns an empty object if the text is blank. */
export function parseFile(text: string, file: string): unknown {
  return text.trim() ? readJsonc(text, file).value : {};
}

/**
 * Adds the entry, or replaces the entry with the same name.
 *
 * @throws {CliError} with file, line and column if the text is not JSON with comments, or if the value of the servers
 * key is not an object.
 */
export function setEntry(text: string, entry: unknown, { file, path: [serversKey, name] }: EditOptions): string {
  if (!text.trim()) return `${JSON.stringify({ [serversKey]: { [name]: entry } }, null, 2)}\n`;
  const jsonc = readJsonc(text, file);
  const bom = toBom(text);
  const { root } = jsonc;
  checkObject(jsonc, root, file);
  const servers = findProperty(root, serversKey)?.children?.[1];
  if (!servers) return bom + insert(jsonc, root, serversKey, { [name]: entry });
  checkObject(jsonc, servers, file);
  const property = findProperty(servers, name);
  const old = property?.children?.[1];
  if (!old) return bom + insert(jsonc, servers, name, entry);
  return bom + jsonc.text.slice(0, old.offset) + write(jsonc, entry, property.offset) + jsonc.text.slice(toEnd(old));
}

/**
 * Adds an item to the list with a key of the root object. Adds the list if it is missing.
 *
 * @throws {CliError} with file, line and column if the text is not JSON with comments, or if the value is not a list.
 */
export function addItem(text: string, item: unknown, { file, key }: ItemOptions): string {
  const jsonc = readJsonc(text, file);
  const bom = toBom(text);
  const { root } = jsonc;
  checkObject(jsonc, root, file);
  const list = findProperty(root, key)?.children?.[1];
  if (!list) return bom + insert(jsonc, root, key, [item]);
  checkType(jsonc, list, { file, type: "array", word: "a list" });
  return bom + insert(jsonc, list, undefined, item);
}

/** Adds a member to the root object. */
export function addMember(text: string, value: unknown, { file, key }: ItemOptions): string {
  const jsonc = readJsonc(text, file);
  return toBom(text) + insert(jsonc, jsonc.root, key, value);
}

/** The name of the file in error messages, and a key of the root object. */
export interface ItemOptions {
  readonly file: string;
  readonly key: string;
}

/** Returns the byte order mark of a text, which `Jsonc.text` does not contain. Returns "" if there is none. */
function toBom(text: string): string {
  return text.startsWith("\uFEFF") ? "\uFEFF" : "";
}

function checkObject(jsonc: Jsonc, node: Node, file: string): void {
  checkType(jsonc, node, { file, type: "object", word: "an object" });
}

function checkType(
  { text }: Jsonc,
  { type, offset }: Node,
  expected: { readonly file: string; readonly type: Node["type"]; readonly word: string },
): void {
  if (type === expected.type) return;
  throw new CliError(
    `Cannot change ${formatPosition(expected.file, text, offset)}: the value is not ${expected.word}; edit the file ` +
      "by hand",
  );
}

function toEnd({ offset, length }: Node): number {
  return offset + length;
}

// Inserts an entry into an object, or into a list if there is no key. The entry follows the comments after the last entry.
// `jsonc-parser` would insert the entry before these comments.
function insert(jsonc: Jsonc, object: Node, key: string | undefined, value: unknown): string {
  const { text } = jsonc;
  const closing = toEnd(object) - 1;
  const last = object.children?.at(-1);
  // Put the comma directly after the last value, and the entry after the comments that follow the value.
  const rest = text.slice(last ? toEnd(last) : object.offset + 1, closing);
  const isFollowed = /^(?:\s|\/\/[^\r\n]*(?=[\r\n]|$)|\/\*(?:(?!\*\/)[^])*\*\/)*,/.test(rest);
  const head = last ? text.slice(0, toEnd(last)) + (isFollowed ? "" : ",") : text.slice(0, object.offset + 1);
  const outer = toIndent(text, (last ?? object).offset);
  const isOwnLine = last && toLineStart(text, last.offset) !== toLineStart(text, object.offset);
  const inner = isOwnLine ? outer : outer + toIndentUnit(jsonc);
  const end = toIndent(text, closing === toFirstCharacter(text, closing) ? closing : object.offset);
  const eol = toEol(text);
  const start = key === undefined ? "" : `${JSON.stringify(key)}: `;
  const member = `${inner}${start}${write(jsonc, value, undefined, inner)}`;
  return `${head}${rest.trimEnd()}${eol}${member}${eol}${end}${text.slice(closing)}`;
}

function write(jsonc: Jsonc, value: unknown, at: number | undefined, indent = ""): string {
  const before = at === undefined ? indent : toIndent(jsonc.text, at);
  return JSON.stringify(value, null, toIndentUnit(jsonc)).replaceAll("\n", toEol(jsonc.text) + before);
}

function toEol(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** Returns the whitespace that indents one level. */
function toIndentUnit({ text, root }: Jsonc): string {
  const first = root.children?.[0];
  return (first && toIndent(text, first.offset)) || "  ";
}

function toLineStart(text: string, at: number): number {
  return Math.max(text.lastIndexOf("\n", at - 1), text.lastIndexOf("\r", at - 1)) + 1;
}

function toIndent(text: string, at: number): string {
  return /^[ \t]*/.exec(text.slice(toLineStart(text, at), at))?.[0] ?? "";
}

/** Returns the offset of a line's first character other than white space. */
function toFirstCharacter(text: string, at: number): number {
  return toLineStart(text, at) + toIndent(text, at).length;
}
