/**
 * The lines between `---` at the head of a Markdown file: a small part of YAML.
 *
 * @module
 */

/** A value, and where it stands. */
export type Value =
  & { readonly line: number }
  & (
    | { readonly text: string }
    | { readonly list: readonly string[] }
    | { readonly map: ReadonlyMap<string, Value> }
  );

/** A file that was taken apart. */
export interface Document {
  readonly head: ReadonlyMap<string, Value>;
  readonly body: string;
  /** The line on which the body begins; lines count from 1. */
  readonly bodyLine: number;
}

/** A line that cannot be read. */
export class FrontMatterError extends Error {
  override readonly name = "FrontMatterError";
  /** Which it is; lines count from 1. */
  readonly line: number;

  constructor(line: number, state: string) {
    super(state);
    this.line = line;
  }
}

interface Line {
  readonly line: number;
  readonly indent: number;
  readonly text: string;
}

/**
 * Reads `key: value`, lists as `[a, b]` or lines with `- `, and further keys that are set in by spaces.
 *
 * @throws {FrontMatterError} for anything else.
 */
export function readFrontMatter(text: string): Document {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== "---") return { head: new Map(), body: lines.join("\n"), bodyLine: 1 };
  const end = lines.findIndex((line, i) => i > 0 && line.trimEnd() === "---");
  if (end < 0) throw new FrontMatterError(1, "--- is not closed; write a second --- below the last key");
  const rows = lines.slice(1, end).flatMap((text, i): Line | [] => {
    if (/^\s*(#|$)/.test(text)) return [];
    const [indent] = /^\s*/.exec(text) ?? [""];
    if (indent.includes("\t")) throw new FrontMatterError(i + 2, "it is set in by a tab; use spaces");
    return { line: i + 2, indent: indent.length, text: text.trim() };
  });
  return { head: readMap(rows), body: lines.slice(end + 1).join("\n"), bodyLine: end + 2 };
}

function readMap(rows: readonly Line[]): ReadonlyMap<string, Value> {
  const map = new Map<string, Value>();
  const indent = rows[0]?.indent;
  for (let i = 0; i < rows.length;) {
    const { line, text } = rows[i];
    const [, quoted, plain, rest] = /^(?:"([^"]*)"|([^\s:"'[\]{}#&*!|>%@`-][^:#]*?))\s*:(?:\s+(.*))?$/.exec(text) ?? [];
    const key = quoted ?? plain;
    if (key === undefined || rows[i].indent !== indent) {
      throw new FrontMatterError(line, `${JSON.stringify(text)} is no key with a value; write it as key: value`);
    }
    if (map.has(key)) throw new FrontMatterError(line, `${key} is there already; keep one of the two`);
    const after = rows.findIndex((row, j) => j > i && row.indent <= rows[i].indent && !isItem(row, rows[i]));
    const inner = rows.slice(i + 1, after < 0 ? undefined : after);
    map.set(key, { line, ...readValue(line, rest?.replace(/(^|\s)#.*$/, "").trim() ?? "", inner) });
    i += 1 + inner.length;
  }
  return map;
}

// YAML lets the items of a list stand as far out as their key.
function isItem(row: Line, key: Line): boolean {
  return row.indent === key.indent && /^-(\s|$)/.test(row.text);
}

function readValue(
  line: number,
  rest: string,
  inner: readonly Line[],
): { text: string } | { list: string[] } | { map: ReadonlyMap<string, Value> } {
  if (inner.length && rest) {
    throw new FrontMatterError(inner[0].line, "it is set in below a key that has a value; write one line per value");
  }
  if (inner.length && inner.every(({ text }) => /^-\s/.test(text))) {
    return { list: inner.map(({ line, text }) => readScalar(line, text.slice(1).trim())) };
  }
  if (inner.length) return { map: readMap(inner) };
  const [, items] = /^\[(.*)\]$/.exec(rest) ?? [];
  if (items === undefined) return { text: readScalar(line, rest) };
  const words = items.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^,]+/g) ?? [];
  return { list: words.map((word) => readScalar(line, word.trim())).filter(Boolean) };
}

function readScalar(line: number, text: string): string {
  const [first] = text;
  if (first === '"') {
    try {
      return String(JSON.parse(text));
    } catch {
      throw new FrontMatterError(line, `${text} does not end as it begins; close the quotes`);
    }
  }
  if (first === "'") {
    if (!/^'(?:[^']|'')*'$/.test(text)) {
      throw new FrontMatterError(line, `${text} does not end as it begins; close the quotes`);
    }
    return text.slice(1, -1).replaceAll("''", "'");
  }
  if (first !== undefined && "{[&*!|>%@`".includes(first)) {
    throw new FrontMatterError(
      line,
      `${JSON.stringify(text)} begins with ${first}; put the value in quotes, on one line`,
    );
  }
  return text;
}
