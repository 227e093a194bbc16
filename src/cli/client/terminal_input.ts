/**
 * Reads lines that the user types in the terminal.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { platform } from "../platform.ts";
import { report } from "./terminal_output.ts";
import { toPlain } from "./terminal_text.ts";

const MAX_LENGTH = 100_000;

let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
let pendingRead: ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]> | undefined;
let buffer = "";
const decoder = new TextDecoder();

/**
 * Prints a prompt and reads a line. Returns `undefined` at the end of the input. Throws when `signal` aborts; the next
 * call then reads the pending input.
 */
export async function promptLine(prompt: string, signal: AbortSignal): Promise<string | undefined> {
  report(prompt);
  reader ??= platform.terminal.input().getReader();
  signal.throwIfAborted();
  while (!buffer.includes("\n") && buffer.length < MAX_LENGTH) {
    const { done, value } = await deadline(pendingRead ??= reader.read(), { signal });
    pendingRead = undefined;
    if (done) {
      report("\n");
      return;
    }
    buffer += decoder.decode(value, { stream: true });
  }
  const [line] = buffer.split("\n", 1);
  buffer = buffer.slice(line.length + 1);
  return toPlain(line).trim();
}
