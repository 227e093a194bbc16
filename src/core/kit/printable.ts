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

/**
 * Escapes control characters and invisible characters, for example as `\u{1b}`. Keeps line feeds, tabs and the parts of
 * emoji.
 */
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

/**
 * Prints an unexpected error to standard error. `about` is printed first, and says where the error occurred. Escapes
 * the text of the error, because it could otherwise control the terminal.
 */
export function printFault(about: string, error: unknown): void {
  console.error(`Error ${toPrintableLine(about)}:\n${formatError(error)}`);
}

/**
 * Formats an unexpected error for a log: a line with the error's name and message, then its stack frames, one per line,
 * and then its causes.
 */
export function formatError(error: unknown): string {
  const lines: string[] = [];
  let current = error;
  for (let depth = 0; depth < DEEPEST; depth++) {
    lines.push(`${depth ? "Caused by: " : ""}${describeOne(current)}`);
    if (!(current instanceof Error) || current.cause === undefined) break;
    current = current.cause;
  }
  return lines.join("\n");
}

const DEEPEST = 8;
const MAX_ERRORS = 10;

function describeOne(error: unknown): string {
  if (!(error instanceof Error)) return toPrintableLine(toText(error));
  const { name, message, stack = "" } = error;
  // Skip the error message at the beginning of the stack, because a line of the message could look like a frame.
  const at = message ? stack.indexOf(message) : -1;
  const rest = at < 0 ? stack : stack.slice(at + message.length);
  const frames = rest.split("\n").filter((line) => /^\s+at |^[^\s@]*@\S+:\d+/.test(line));
  const parts: readonly unknown[] = error instanceof AggregateError ? error.errors.slice(0, MAX_ERRORS) : [];
  return [
    `${toPrintableLine(name)}: ${toPrintableLine(message)}`,
    ...frames.map((frame) => toPrintable(frame)),
    ...parts.map((part) => `  - ${describeOne(part).replaceAll("\n", "\n    ")}`),
  ].join("\n");
}

function toText(value: unknown): string {
  try {
    return typeof value === "object" ? JSON.stringify(value) ?? String(value) : String(value);
  } catch {
    return "a value that cannot be converted to text";
  }
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
