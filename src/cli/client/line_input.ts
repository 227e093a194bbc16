/**
 * Lines that a person types.
 *
 * @module
 */
import { platform } from "../platform.ts";
import { toPlain } from "./terminal_text.ts";
import { tell } from "./terminal_output.ts";

const LONGEST = 100_000;

let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
let reading: ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]> | undefined;
let typed = "";
const decoder = new TextDecoder();

/** Asks for a line; nothing if there will be none. Throws when `signal` is aborted: what is typed then goes to the next. */
export async function askLine(prompt: string, signal: AbortSignal): Promise<string | undefined> {
  tell(prompt);
  reader ??= platform.terminal.input().getReader();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", stop);
  try {
    while (!typed.includes("\n") && typed.length < LONGEST) {
      const { done, value } = await Promise.race([reading ??= reader.read(), aborted]);
      reading = undefined;
      if (done) {
        tell("\n");
        return;
      }
      typed += decoder.decode(value, { stream: true });
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
  const [line] = typed.split("\n", 1);
  typed = typed.slice(line.length + 1);
  return toPlain(line).trim();
}
