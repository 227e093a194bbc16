/**
 * What a person sees: how wide, how colourful, and in which order on two streams that may be one terminal.
 *
 * @module
 */
import { toPrintableJson } from "../../protocol/printable.ts";
import { platform } from "../platform.ts";
import { toPlain, toWidth } from "./terminal_text.ts";

/** Styles of text; where there are no colours, they leave it as it is. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  cyan(text: string): string;
}

/** The styles of a standard stream. */
export function styleOf(stream: "output" | "errors"): Style {
  const { terminal } = platform;
  const isColourful = terminal.isAt(stream) && !terminal.hasNoColor();
  const paint = (on: number, off: number) => (text: string) =>
    isColourful && text ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return { bold: paint(1, 22), dim: paint(2, 22), red: paint(31, 39), cyan: paint(36, 39) };
}

const USUAL_WIDTH = 80;
const LEAST_WIDTH = 40;

/** How many characters a line of a stream may have. */
export function screenWidth(stream: "output" | "errors" = "output"): number {
  return Math.max(LEAST_WIDTH, platform.terminal.columns(stream) || USUAL_WIDTH);
}

/** Whether a person can be asked, and sees the question. */
export function canAsk(): boolean {
  return platform.terminal.isAt("input") && platform.terminal.isAt("errors");
}

let isShown = false;

/** Shows a line on standard error in place of the last one that was, until something else is told; only to a person. */
export function showStatus(text: string): void {
  if (!platform.terminal.isAt("errors")) return;
  const room = screenWidth("errors") - 1;
  let shown = "";
  for (const character of text) {
    if (toWidth(shown) + 2 > room) break;
    shown += character;
  }
  platform.terminal.tell(`\r\x1b[K${shown}`);
  isShown = true;
}

/** Takes away what `showStatus` shows. */
export function clearStatus(): void {
  if (isShown) platform.terminal.tell("\r\x1b[K");
  isShown = false;
}

/** Tells a person something on standard error; the line goes on after it. */
export function tell(text: string): void {
  clearStatus();
  platform.terminal.tell(text);
}

/** Tells a person a line on standard error. */
export function tellLine(text: string): void {
  tell(`${text}\n`);
}

/** Writes lines to standard output. */
export async function writeLine(text: string): Promise<void> {
  await writeBytes(new TextEncoder().encode(`${text}\n`));
}

/** Writes one JSON document to standard output. */
export async function writeJson(value: unknown): Promise<void> {
  await writeLine(toPrintableJson(JSON.stringify(value, null, 2)));
}

/** Writes text of a server: as it is where a program reads it, and without control characters where a person does. */
export async function writeText(text: string): Promise<void> {
  const shown = platform.terminal.isAt("output") ? toPlain(text) : text;
  await writeLine(shown.replace(/\n$/, ""));
}

/** Writes bytes to standard output. Whoever reads it may have seen enough: then nothing is left to do. */
export async function writeBytes(bytes: Uint8Array): Promise<void> {
  clearStatus();
  try {
    await platform.terminal.write(bytes);
  } catch {
    platform.exit(141);
  }
}
