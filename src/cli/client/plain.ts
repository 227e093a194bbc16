/**
 * Text that a server sent, so that a terminal can show it: no control characters, lines no longer than they may be.
 *
 * @module
 */

// A terminal does what escape sequences say: it moves its cursor, sets its title, answers as if it were typed. Some
// that hold a text end with it. What turns the direction of writing makes a line look like another one.
const SEQUENCES =
  // deno-lint-ignore no-control-regex
  /\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_](?:[^\x07\x1b]*(?:\x07|\x1b\\))?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]?/g;
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The text without what a terminal would take for a command. */
export function toPlain(text: unknown): string {
  return String(text).replaceAll("\r\n", "\n").replace(SEQUENCES, "").replace(CONTROLS, "");
}

/** The text in one line, cut off after so many characters. */
export function toLine(text: unknown, most = 500): string {
  const line = toPlain(String(text).slice(0, 4 * most)).replace(/\s+/g, " ").trim();
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
