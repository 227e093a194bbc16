/**
 * Runs a bridge over lines, such as the lines of stdio.
 *
 * @module
 */
import { LineSplitter } from "../transports/stdio/line_splitter.ts";
import { Bridge, type BridgeOptions } from "./bridge.ts";
import { settleWithin } from "./delay.ts";
import type { Message } from "./message.ts";

/** Maximum length of a line from the client, in bytes. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Milliseconds for which the bridge waits at its end until the client has read the remaining messages. */
const FLUSH_MS = 1000;

/** The input and output of the client, as lines. */
export interface BridgeLines {
  readonly input: ReadableStream<Uint8Array>;
  /** Writes bytes. Settles when the output accepts more. Rejects if the client no longer reads. */
  readonly output: (bytes: Uint8Array) => Promise<unknown>;
  /** Stops the bridge. */
  readonly signal: AbortSignal;
}

/** Bridges a client over lines until its input ends, until it no longer reads, or until the signal aborts. */
export async function bridgeLines(
  { input, output, signal }: BridgeLines,
  options: Omit<BridgeOptions, "write">,
): Promise<void> {
  const reader = input.getReader();
  const stopped = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  let written: Promise<void> = Promise.resolve();
  // Backpressure: wait until the client has read earlier messages, because a slow client would otherwise fill the
  // memory.
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
        if ("problem" in line) options.onWarning(`A line was left out: it is ${toProblem(line.problem)}.`);
      }
    }
  } finally {
    signal.removeEventListener("abort", stop);
    await bridge.close();
    await settleWithin(written, FLUSH_MS);
  }
}

function toProblem(problem: "long" | "encoding"): string {
  return problem === "long" ? `longer than ${MAX_LINE_BYTES} bytes` : "not UTF-8";
}
