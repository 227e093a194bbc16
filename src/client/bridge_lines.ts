/**
 * Runs a bridge for a client that sends newline-delimited JSON, such as over stdio.
 */
import { LineSplitter } from "../core/line_splitter.ts";
import { Bridge, type BridgeOptions } from "./bridge.ts";
import { deadline } from "../core/kit/deadline.ts";
import type { Message } from "./message.ts";

/** Maximum length of a line from the client, in bytes. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Maximum number of milliseconds that a stopping bridge waits for the client to read the remaining messages. */
const FLUSH_MS = 1000;

export interface BridgeLines {
  readonly input: ReadableStream<Uint8Array>;
  /** Writes bytes to the client. Resolves when the output accepts more bytes. Rejects if the client no longer reads. */
  readonly output: (bytes: Uint8Array) => Promise<unknown>;
  /** Aborting this signal stops the bridge. */
  readonly signal: AbortSignal;
}

/** Runs a bridge until the input ends, the client no longer reads the output, or the signal aborts. */
export async function bridgeLines(
  { input, output, signal }: BridgeLines,
  options: Omit<BridgeOptions, "write">,
): Promise<void> {
  const reader = input.getReader();
  const stopped = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  let written: Promise<void> = Promise.resolve();
  // Apply backpressure: wait until the client has read earlier messages, because messages to a slow client would
  // otherwise fill the memory.
  const write = (message: Message) =>
    written = written.then(async () => {
      await Promise.race([output(encoder.encode(`${JSON.stringify(message)}\n`)), stopped.promise]);
    }).catch(stop);
  const bridge = new Bridge({ ...options, write });
  function stop(): void {
    stopped.resolve();
    reader.cancel().catch(() => {});
    void bridge.close();
  }
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    const splitter = new LineSplitter(MAX_LINE_BYTES);
    for (let isDone = false; !isDone;) {
      const { done, value } = await reader.read();
      isDone = done;
      for (const line of done ? splitter.end() : splitter.push(value)) {
        await bridge.receive("text" in line ? line.text : "");
        if ("problem" in line) {
          options.onWarning(`A line from the client was skipped, because it is ${toProblem(line.problem)}.`);
        }
      }
    }
  } finally {
    signal.removeEventListener("abort", stop);
    await bridge.close();
    await deadline(written, { ms: FLUSH_MS, onTimeout: () => {} });
  }
}

function toProblem(problem: "long" | "encoding"): string {
  return problem === "long" ? `longer than ${MAX_LINE_BYTES} bytes` : "not UTF-8";
}
