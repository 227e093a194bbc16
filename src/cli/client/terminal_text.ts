/**
 * Makes text from a server safe for the terminal, and breaks it into lines.
 *
 * @module
 */
import { toPrintable } from "../../kit/printable.ts";

// Colour and weight: many programs write them, and the text is the same without them.
// deno-lint-ignore no-control-regex
const STYLES = /(?:\x1b\[|\x9b)[\d;:]*m/g;

/** Removes styles, and escapes everything else that a terminal would interpret. */
export function toPlain(text: unknown): string {
  return toPrintable(String(text).replaceAll("\r\n", "\n").replace(STYLES, ""));
}

/** The text on one line, truncated to `max` characters. */
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

/** The width of a text, in columns of the terminal. */
export function toWidth(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += /^[\p{M}\p{Cf}]/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

/** Pads text with spaces. */
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
