/**
 * How wide and how colourful what is shown may be.
 *
 * @module
 */
import { host } from "../host.ts";
import { toPlain } from "./plain.ts";

/** Styles of text; where there are no colours, they leave it as it is. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  cyan(text: string): string;
}

/** The styles of a standard stream. */
export function styleOf(stream: "output" | "errors"): Style {
  const { terminal } = host;
  const isColourful = terminal.isAt(stream) && !terminal.hasNoColor();
  const paint = (on: number, off: number) => (text: string) =>
    isColourful && text ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return { bold: paint(1, 22), dim: paint(2, 22), red: paint(31, 39), cyan: paint(36, 39) };
}

const USUAL_WIDTH = 80;
const LEAST_WIDTH = 40;

/** How many characters a line on standard output may have. */
export function screenWidth(): number {
  return Math.max(LEAST_WIDTH, host.terminal.columns() || USUAL_WIDTH);
}

/** Tells the user a line on standard error. */
export function tellLine(text: string): void {
  host.terminal.tell(`${text}\n`);
}

/** Writes lines to standard output. */
export async function writeLine(text: string): Promise<void> {
  await writeBytes(new TextEncoder().encode(`${text}\n`));
}

/** Writes text of a server: as it is where a program reads it, and without control characters where a person does. */
export async function writeText(text: string): Promise<void> {
  const shown = host.terminal.isAt("output") ? toPlain(text) : text;
  await writeLine(shown.replace(/\n$/, ""));
}

/** Writes bytes to standard output. Whoever reads it may have seen enough: then nothing is left to do. */
export async function writeBytes(bytes: Uint8Array): Promise<void> {
  try {
    await host.terminal.write(bytes);
  } catch {
    host.exit(141);
  }
}
