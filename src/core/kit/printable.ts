/**
 * Escapes untrusted text, so that it cannot control a terminal or forge log lines.
 */

// Control characters can start escape sequences and forge log lines. Invisible format characters can reorder the
// surrounding text, or hide content from people. Lone surrogates are not valid text.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/u;
const PICTURE = String.raw`\p{Extended_Pictographic}\ufe0f?\p{Emoji_Modifier}?`;
// Matches a whole emoji, or one unprintable character. An emoji can contain invisible characters, which select its form
// or join several emoji.
const PIECES = new RegExp(
  String.raw`[0-9#*]\ufe0f\u20e3|${PICTURE}(?:\u200d${PICTURE})*|${UNPRINTABLE.source}`,
  "gu",
);

/** Escapes control and invisible characters, such as `\u{1b}`, but not line feeds, tabs and the parts of emoji. */
export function toPrintable(text: unknown): string {
  return escapeUnprintable(String(text), "\n\t", (code) => `\\u{${code.toString(16)}}`);
}

/** Like {@linkcode toPrintable}, but also escapes line feeds and tabs, so that the text cannot forge a log line. */
export function toPrintableLine(text: unknown): string {
  return escapeUnprintable(String(text), "", (code) => `\\u{${code.toString(16)}}`);
}

/** Like {@linkcode toPrintable}, but uses JSON escapes, so that JSON text keeps its value. */
export function toPrintableJson(json: string): string {
  return escapeUnprintable(json, "\n\t", toJsonEscape);
}

function toJsonEscape(code: number): string {
  const text = String.fromCodePoint(code);
  let escaped = "";
  for (let i = 0; i < text.length; i++) escaped += `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return escaped;
}

/**
 * Escapes control characters and invisible characters, except for the characters in `kept` and the parts of emoji.
 * `write` returns the visible text for a code point.
 */
export function escapeUnprintable(text: string, kept: string, write: (code: number) => string): string {
  if (!UNPRINTABLE.test(text)) return text;
  return text.replace(PIECES, (piece) => {
    const code = piece.codePointAt(0) ?? 0;
    const isOne = piece.length === (code > 0xffff ? 2 : 1);
    return isOne && UNPRINTABLE.test(piece) && !kept.includes(piece) ? write(code) : piece;
  });
}
