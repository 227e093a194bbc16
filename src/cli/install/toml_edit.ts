/**
 * Adds an entry to a TOML file. The rest of the text stays unchanged.
 */
import { parse, stringify } from "smol-toml";
import type { Params } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import { type EditOptions, isEqual } from "./edit_options.ts";
import { CliError } from "../cli_error.ts";

/**
 * Adds the entry as a separate table, and removes the previous entry with the same name.
 *
 * @throws {CliError} if the text is not TOML, or if the previous entry cannot be removed line by line.
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
  // Parse the result and compare the values, because the edit works line by line, and a line that looks like a table
  // header may be part of a string.
  if (isEqual(tryParse(after), expected)) return after;
  throw createEditError(file, `the entry ${serversKey}.${name} is written in a form that the command cannot replace`);
}

export function parseFile(text: string, file: string): Params {
  try {
    return parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    const [state] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw new CliError(`Cannot read ${file}: ${state}; fix the file by hand`);
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
  return new CliError(`Cannot change ${file}: ${state}; edit the file by hand`);
}

/** Removes a table and its subtables, but not the comments before the next table, which belong to that table. */
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

// Matches a whole string, a whole comment, a line break, or any other character, because a line break within a string
// does not start a line.
const TOKENS = /"""[^]*?(?<!\\)(?:\\\\)*"""+|\'\'\'[^]*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|\n|[^]/g;

/** Splits a text into lines with their line breaks. A multi-line string does not end the line. */
function toLines(text: string): readonly string[] {
  const lines = [""];
  for (const [token] of text.matchAll(TOKENS)) {
    lines[lines.length - 1] += token;
    if (token === "\n") lines.push("");
  }
  return lines;
}

/** Returns the keys in a table header. Returns `undefined` if the line is not a table header. */
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
