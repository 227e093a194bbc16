/**
 * Adds an entry to a TOML file without changing the rest of its text.
 *
 * @module
 */
import { parse, stringify } from "smol-toml";
import type { Params } from "../../client/client.ts";
import { isObject } from "../../kit/json.ts";
import { type EditOptions, isEqual } from "./edit_options.ts";
import { CliError } from "../cli_error.ts";

/**
 * Adds the entry as a separate table, and removes the previous entry of the same name.
 *
 * @throws {CliError} if the text is not TOML, or the previous entry cannot be replaced as text.
 */
export function setEntry(text: string, entry: unknown, { file, path: [serversKey, name] }: EditOptions): string {
  const before = parseFile(text, file);
  const servers = before[serversKey] ?? {};
  if (!isObject(servers)) throw createEditError(file, `${serversKey} is not a table`);
  const expected = { ...before, [serversKey]: { ...servers, [name]: entry } };
  const kept = Object.hasOwn(servers, name) ? removeTable(text, [serversKey, name]) : text;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const table = stringify({ [serversKey]: { [name]: entry } }).trim().replaceAll("\n", eol);
  const head = kept.trimEnd();
  const after = `${head}${head && `${eol}${eol}`}${table}${eol}`;
  // Parse the result and compare it. The text is edited line by line, and a line that looks like a header may be part
  // of a string.
  if (isEqual(tryParse(after), expected)) return after;
  throw createEditError(file, `its ${serversKey}.${name} cannot be replaced as text`);
}

/** Returns the value of the file. */
export function parseFile(text: string, file: string): Params {
  try {
    return parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    const [state] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw new CliError(`Cannot read ${file}: ${state}; fix it by hand`);
  }
}

function tryParse(text: string): Params | undefined {
  try {
    return parse(text.replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}

function createEditError(file: string, state: string): CliError {
  return new CliError(`Cannot change ${file}: ${state}; edit it by hand`);
}

/** Removes a table and its subtables. Comments before the next table are kept, because they belong to that table. */
function removeTable(text: string, path: readonly string[]): string {
  const kept: string[] = [];
  let removed: string[] | undefined;
  for (const line of toLines(text)) {
    const header = readHeader(line);
    if (header) {
      if (removed) kept.push(...removed.slice(removed.findLastIndex((each) => !/^\s*(#|$)/.test(each)) + 1));
      removed = path.every((key, i) => header[i] === key) ? [] : undefined;
    }
    (removed ?? kept).push(line);
  }
  return kept.join("");
}

// The pattern matches a whole string, a whole comment, a line break, or any other character. A line break within a
// string does not start a line.
const TOKENS = /"""[^]*?(?<!\\)(?:\\\\)*"""+|\'\'\'[^]*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|\n|[^]/g;

/** Returns the lines of a text with their line breaks. A multi-line string does not end the line. */
function toLines(text: string): readonly string[] {
  const lines = [""];
  for (const [token] of text.matchAll(TOKENS)) {
    lines[lines.length - 1] += token;
    if (token === "\n") lines.push("");
  }
  return lines;
}

/** Returns the keys in the header of a table. Returns `undefined` for other lines. */
function readHeader(line: string): readonly string[] | undefined {
  const [, open, keys] = /^\s*(\[\[?)\s*((?:[^\]"'#]|"(?:[^"\\]|\\.)*"|'[^']*')+)\]/.exec(line) ?? [];
  if (keys === undefined) return;
  const found: string[] = [];
  let table: unknown = tryParse(`${open}${keys}${open.replaceAll("[", "]")}`);
  while (isObject(table) && Object.keys(table).length) {
    const [key] = Object.keys(table);
    found.push(key);
    table = table[key];
  }
  return found.length ? found : undefined;
}
