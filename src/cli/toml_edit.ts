/**
 * Puts an entry into a TOML file, and leaves everything else as it is.
 *
 * @module
 */
import { parse, stringify } from "smol-toml";
import { isObject, type Params } from "../protocol/jsonrpc.ts";
import type { EditOptions } from "./edit_options.ts";
import { Problem } from "./problem.ts";

/**
 * The text with the entry in it as a table of its own, in the place of one of the same name if there is one.
 *
 * @throws {Problem} if the text is not TOML, or holds the entry in a way that cannot be replaced as text.
 */
export function setEntry(text: string, entry: unknown, { file, path: [holder, name] }: EditOptions): string {
  const before = read(text, file);
  const held = before[holder] ?? {};
  if (!isObject(held)) throw refuse(file, `${holder} is not a table`);
  const expected = { ...before, [holder]: { ...held, [name]: entry } };
  if (Object.hasOwn(held, name) && isEqual(held[name], entry)) return text;
  const kept = Object.hasOwn(held, name) ? removeTable(text, [holder, name]) : text;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const table = stringify({ [holder]: { [name]: entry } }).trim().replaceAll("\n", eol);
  const head = kept.trimEnd();
  const after = `${head}${head && `${eol}${eol}`}${table}${eol}`;
  // The text is edited by lines, which TOML also allows inside of values: what was made is read again.
  if (isEqual(tryRead(after), expected)) return after;
  throw refuse(file, `its ${holder}.${name} cannot be replaced as text`);
}

function read(text: string, file: string): Params {
  try {
    return parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    const [state] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw new Problem(`Cannot read ${file}: ${state}; fix it by hand`);
  }
}

function tryRead(text: string): Params | undefined {
  try {
    return parse(text.replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}

function refuse(file: string, state: string): Problem {
  return new Problem(`Cannot change ${file}: ${state}; edit it by hand`);
}

/** The text without a table and the tables in it. Comments in front of the next table belong to that one. */
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

// Strings and comments as wholes, a line's end, or any other character: what follows a line's end begins a line.
const TOKENS = /"""[^]*?(?<!\\)(?:\\\\)*"""+|\'\'\'[^]*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|\n|[^]/g;

/** The lines of a text, each with its end; a string of several lines is part of one. */
function toLines(text: string): readonly string[] {
  const lines = [""];
  for (const [token] of text.matchAll(TOKENS)) {
    lines[lines.length - 1] += token;
    if (token === "\n") lines.push("");
  }
  return lines;
}

/** The keys in the header of a table; nothing if the line is none. */
function readHeader(line: string): readonly string[] | undefined {
  const [, open, keys] = /^\s*(\[\[?)\s*((?:[^\]"'#]|"(?:[^"\\]|\\.)*"|'[^']*')+)\]/.exec(line) ?? [];
  if (keys === undefined) return;
  const found: string[] = [];
  let table: unknown = tryRead(`${open}${keys}${open.replaceAll("[", "]")}`);
  while (isObject(table) && Object.keys(table).length) {
    const [key] = Object.keys(table);
    found.push(key);
    table = table[key];
  }
  return found.length ? found : undefined;
}

function isEqual(a: unknown, b: unknown): boolean {
  return toCanonical(a) === toCanonical(b);
}

function toCanonical(value: unknown): string {
  return JSON.stringify(
    value,
    (_, each: unknown) =>
      isObject(each) && !(each instanceof Date)
        ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => a < b ? -1 : 1))
        : each,
  ) ?? "";
}
