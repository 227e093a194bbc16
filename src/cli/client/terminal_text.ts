/**
 * Text that a server sent, so that a terminal can show it: no control characters, lines no longer than they may be.
 *
 * @module
 */
import { toPrintable } from "../../protocol/printable.ts";

// Colours and weights: many programs write them, and without them their text is the same.
// deno-lint-ignore no-control-regex
const STYLES = /(?:\x1b\[|\x9b)[\d;:]*m/g;

/** The text without styles, and with everything else that a terminal would take for a command escaped. */
export function toPlain(text: unknown): string {
  return toPrintable(String(text).replaceAll("\r\n", "\n").replace(STYLES, ""));
}

/** The text in one line, cut off after so many characters. */
export function toLine(text: unknown, most = 500): string {
  const line = toPlain(String(text).slice(0, 4 * most).replace(/[ \t\r\n\u2028\u2029]+/g, " ")).trim();
  return cut(line, most);
}

/** The text, cut off with dots after so many characters. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** How many columns of a terminal a text takes. */
export function toWidth(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += /^[\p{M}\p{Cf}]/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

/** The text filled up with spaces. */
export function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - toWidth(text)));
}

/** The lines of a text, none wider than `width`; it is broken between words where that can be. */
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
