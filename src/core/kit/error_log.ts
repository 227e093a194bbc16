/**
 * Formats and prints unexpected errors for logs.
 */
import { toPrintable, toPrintableLine } from "./printable.ts";
import { readStack, toPrintedFrames } from "./stack.ts";

/**
 * Prints an unexpected error to standard error. `about` is printed first, and says where the error occurred. Escapes
 * the text of the error, because it could otherwise control the terminal.
 */
export function printFault(about: string, error: unknown): void {
  console.error(`Error ${toPrintableLine(about)}:\n${formatError(error)}`);
}

/**
 * Formats an unexpected error for a log: a line with the error's name and message, then its stack frames in the author's
 * files, one per line, and then its causes.
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
  const { name, message } = error;
  const { frames } = readStack(error);
  const parts: readonly unknown[] = error instanceof AggregateError ? error.errors.slice(0, MAX_ERRORS) : [];
  return [
    `${toPrintableLine(name)}: ${toPrintableLine(message)}`,
    ...toPrintedFrames(frames).map((frame) => toPrintable(frame)),
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
