/**
 * Makes text from a server safe for the terminal, and breaks it into lines and tables.
 */
import { toPrintable } from "../../core/kit/printable.ts";

// Matches the escape sequences of styles such as colors. Styles are removed instead of escaped, because many programs
// write styles, and the text is complete without styles.
// deno-lint-ignore no-control-regex
const STYLES = /(?:\x1b\[|\x9b)[\d;:]*m/g;

/** Removes styles, and escapes everything else that a terminal would interpret. */
export function toPlain(text: unknown): string {
  return toPrintable(String(text).replaceAll("\r\n", "\n").replace(STYLES, ""));
}

/** Converts text to one line of at most `max` characters. */
export function toLine(text: unknown, max = 500): string {
  const line = toPlain(String(text).slice(0, 4 * max).replace(/[ \t\r\n\u2028\u2029]+/g, " ")).trim();
  return truncate(line, max);
}

/** Truncates text to `max` characters, the last of which is an ellipsis. */
export function truncate(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Returns the width of a text in terminal columns. */
export function toWidth(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += /^[\p{M}\p{Cf}]/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

/** Pads text with spaces at the end, up to a width in columns. */
export function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - toWidth(text)));
}

/** Breaks text into lines no wider than `width`, between words where possible. */
export function toLines(text: string, width: number): readonly string[] {
  return text.split("\n").flatMap((line) => toWidth(line) <= width ? line.trimEnd() : breakLine(line, width));
}

function breakLine(line: string, width: number): readonly string[] {
  const lines: string[] = [];
  let current = "";
  let used = 0;
  for (const word of line.split(/\s+/)) {
    for (const piece of toWidth(word) > width ? breakWord(word, width) : [word]) {
      const size = toWidth(piece);
      if (used && used + 1 + size > width) {
        lines.push(current);
        current = "";
        used = 0;
      }
      current += used ? ` ${piece}` : piece;
      used += used ? size + 1 : size;
    }
  }
  return current ? [...lines, current] : lines;
}

function* breakWord(word: string, width: number): Generator<string> {
  let piece = "";
  let used = 0;
  for (const character of word) {
    const size = toWidth(character);
    if (used + size > width && piece) {
      yield piece;
      piece = "";
      used = 0;
    }
    piece += character;
    used += size;
  }
  yield piece;
}

export interface TableOptions {
  /** The width of the table including its indent, in columns. */
  readonly width: number;
  /** The number of spaces before each line. */
  readonly indent: number;
  /** The style of each column. Cells of a column without a style are plain. */
  readonly styles?: readonly (((text: string) => string) | undefined)[];
}

/** Maximum width of each column except the last, so that long names leave space for their descriptions. */
const MAX_WIDTH = 32;
/** Minimum width of the last column. If there is less space, the last column continues on separate lines. */
const MIN_LAST_WIDTH = 20;
const GAP = 2;

/** Returns the lines of a table. The last column fills the remaining space. */
export function toTable(rows: readonly (readonly string[])[], options: TableOptions): readonly string[] {
  const { indent, width, styles = [] } = options;
  const space = width - indent;
  const count = Math.max(0, ...rows.map(({ length }) => length));
  const widths = Array.from({ length: count }, (_, at) => {
    let widest = 0;
    for (const row of rows) widest = Math.max(widest, toWidth(row[at] ?? ""));
    return at === count - 1 ? widest : Math.min(widest, MAX_WIDTH, Math.max(8, Math.floor(space / 2) - GAP));
  });
  // Shrink the columns, because together several wide columns may be wider than the terminal.
  const toSum = () => widths.slice(0, -1).reduce((sum, each) => sum + (each && each + GAP), 0) - GAP;
  while (toSum() > space) {
    const widest = widths.indexOf(Math.max(...widths.slice(0, -1)));
    if (widths[widest] <= 8) break;
    widths[widest]--;
  }
  const before = widths.slice(0, -1).reduce((sum, each) => sum + (each && each + GAP), 0);
  const isBelow = widths[count - 1] > space - before && space - before < MIN_LAST_WIDTH;
  const last = Math.max(1, isBelow ? space - 2 * GAP : space - before);
  const toCell = (text: string, at: number) => toLines(text, at === count - 1 ? last : widths[at]);
  return rows.flatMap((row) => {
    const cells = row.map(toCell);
    const beside = isBelow ? cells.slice(0, count - 1) : cells;
    const height = Math.max(...beside.map(({ length }) => length));
    const lines = Array.from({ length: height }, (_, line) =>
      beside.map((cell, at) => {
        const text = cell[line] ?? "";
        const shown = styles[at]?.(text) ?? text;
        return widths[at] ? shown + " ".repeat(Math.max(0, widths[at] + GAP - toWidth(text))) : "";
      }).join("").trimEnd());
    const below = isBelow && row[count - 1] ? cells[count - 1].map((text) => " ".repeat(2 * GAP) + text) : [];
    return [...lines, ...below].map((line) => padTo("", indent) + line);
  });
}
