/**
 * Writes to standard output and standard error. Shows a status line on standard error, until other output replaces the
 * line.
 */
import { toState } from "../../core/kit/error_state.ts";
import { hasErrorCode } from "../../core/kit/error_code.ts";
import { toPrintableJson } from "../../core/kit/printable.ts";
import { CliError } from "../cli_error.ts";
import { platform } from "../platform.ts";
import { toPlain, toWidth } from "./terminal_text.ts";

/** Functions that style text. If styles are off, they return the text unchanged. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  cyan(text: string): string;
}

/** Text stays plain if the stream is not a terminal, or if NO_COLOR is set. */
export function createStyle(stream: "output" | "errors"): Style {
  const { terminal } = platform;
  const hasColor = terminal.isAt(stream) && !terminal.hasNoColor();
  const paint = (on: number, off: number) => (text: string) =>
    hasColor && text ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return { bold: paint(1, 22), dim: paint(2, 22), red: paint(31, 39), cyan: paint(36, 39) };
}

const DEFAULT_WIDTH = 80;
const MIN_WIDTH = 40;

/** Returns the width of a stream in columns. Defaults to 80 if the stream is not a terminal. */
export function terminalWidth(stream: "output" | "errors" = "output"): number {
  return Math.max(MIN_WIDTH, platform.terminal.columns(stream) || DEFAULT_WIDTH);
}

export function canPrompt(): boolean {
  return platform.terminal.isAt("input") && platform.terminal.isAt("errors");
}

let hasStatus = false;

/** Other output removes the status line. Does nothing if standard error is not a terminal. */
export function showStatus(text: string): void {
  if (!platform.terminal.isAt("errors")) return;
  const width = terminalWidth("errors") - 1;
  let shown = "";
  for (const character of text) {
    if (toWidth(shown) + 2 > width) break;
    shown += character;
  }
  platform.terminal.writeError(`\r\x1b[K${shown}`);
  hasStatus = true;
}

export function clearStatus(): void {
  if (hasStatus) platform.terminal.writeError("\r\x1b[K");
  hasStatus = false;
}

/** Writes text to standard error, without a line break. */
export function report(text: string): void {
  clearStatus();
  platform.terminal.writeError(text);
}

/** Writes a line to standard error. */
export function reportLine(text: string): void {
  report(`${text}\n`);
}

/** Writes a line to standard output. */
export async function writeLine(text: string): Promise<void> {
  await writeBytes(new TextEncoder().encode(`${text}\n`));
}

export async function writeJson(value: unknown): Promise<void> {
  await writeLine(toPrintableJson(JSON.stringify(value, null, 2)));
}

/** Writes text from a server to standard output. Control characters are escaped if standard output is a terminal. */
export async function writeText(text: string): Promise<void> {
  const shown = platform.terminal.isAt("output") ? toPlain(text) : text;
  await writeLine(shown.replace(/\n$/, ""));
}

/**
 * Writes bytes to standard output. Exits with 141, as after SIGPIPE, if the reader has closed the pipe.
 *
 * @throws {CliError} if the bytes cannot be written.
 */
export async function writeBytes(bytes: Uint8Array): Promise<void> {
  clearStatus();
  try {
    await platform.terminal.write(bytes);
  } catch (error) {
    if (!(error instanceof Error) || hasErrorCode(error) && error.code === "EPIPE") return platform.exit(141);
    throw new CliError(`Cannot write the result: ${toState(error)}; check where standard output goes`);
  }
}
