/**
 * Text from outside, made safe to print: a terminal or a log shows what it holds, and does nothing that it says.
 *
 * @module
 */

// Control characters start escape sequences, and forge lines of a log. Format and ignorable characters are invisible:
// they reorder what stands around them, or carry text that only programs see. Lone surrogates are no text at all.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/u;
const PICTURE = String.raw`\p{Extended_Pictographic}\ufe0f?\p{Emoji_Modifier}?`;
// Within an emoji, invisible characters choose its form, and join several to one.
const PIECES = new RegExp(
  String.raw`[0-9#*]\ufe0f\u20e3|${PICTURE}(?:\u200d${PICTURE})*|${UNPRINTABLE.source}`,
  "gu",
);

/**
 * The text with all control and invisible characters escaped as `\u{1b}`, but for line feeds and tabs. Emoji stay as
 * they are.
 */
export function toPrintable(text: unknown): string {
  return escape(String(text), "\n\t", (code) => `\\u{${code.toString(16)}}`);
}

/** As {@linkcode toPrintable}, with line feeds and tabs escaped too, so that the text cannot forge another line. */
export function toPrintableLine(text: unknown): string {
  return escape(String(text), "", (code) => `\\u{${code.toString(16)}}`);
}

/** JSON text with the same characters escaped as JSON does, so that its value stays the same. */
export function toPrintableJson(json: string): string {
  return escape(json, "\n\t", toJsonEscape);
}

/**
 * Prints an unexpected error. Its texts may come from anywhere, and control characters in them could steer a terminal.
 * `about` tells which error it is.
 */
export function printFault(about: string, error: unknown): void {
  console.error(`Error ${toPrintableLine(about)}:\n${describeError(error)}`);
}

/**
 * An unexpected error for a log: its name and message in one line, then where it happened and what caused it, each
 * frame on a line of its own.
 */
export function describeError(error: unknown): string {
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
const MOST_ERRORS = 10;

function describeOne(error: unknown): string {
  if (!(error instanceof Error)) return toPrintableLine(toText(error));
  const { name, message, stack = "" } = error;
  // The stack begins with the message, whose lines are not to be taken for frames. Some have no such beginning.
  const at = message ? stack.indexOf(message) : -1;
  const rest = at < 0 ? stack : stack.slice(at + message.length);
  const frames = rest.split("\n").filter((line) => /^\s+at |^[^\s@]*@\S+:\d+/.test(line));
  const parts: readonly unknown[] = error instanceof AggregateError ? error.errors.slice(0, MOST_ERRORS) : [];
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
    return "a value that has no text";
  }
}

function toJsonEscape(code: number): string {
  const text = String.fromCodePoint(code);
  let escaped = "";
  for (let i = 0; i < text.length; i++) escaped += `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return escaped;
}

function escape(text: string, kept: string, write: (code: number) => string): string {
  if (!UNPRINTABLE.test(text)) return text;
  return text.replace(PIECES, (piece) => {
    const code = piece.codePointAt(0) ?? 0;
    const isOne = piece.length === (code > 0xffff ? 2 : 1);
    return isOne && UNPRINTABLE.test(piece) && !kept.includes(piece) ? write(code) : piece;
  });
}
