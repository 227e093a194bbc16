/**
 * Adapts Node's standard streams and pipes to web streams.
 */
import type { NodeGlobal, NodeOutput, NodeReadable } from "./runtime.ts";

/** Converts a Node stream to a web stream, with backpressure. */
export function readNodeStream(stream: NodeReadable): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOver = false;
  return new ReadableStream({
    start(controller) {
      const end = (finish: () => void) => {
        if (isOver) return;
        isOver = true;
        finish();
      };
      stream.on("data", (bytes) => {
        if (isOver) return;
        // Copy the bytes, because they may be part of a larger buffer.
        controller.enqueue(new Uint8Array(bytes));
        if ((controller.desiredSize ?? 0) <= 0) stream.pause();
      });
      stream.on("error", (error) => end(() => controller.error(error)));
      stream.on("end", () => end(() => controller.close()));
      // Listen to "close" too, because a destroyed stream emits no "end".
      stream.on("close", () => end(() => controller.close()));
      stream.pause();
    },
    pull: () => void stream.resume(),
    cancel() {
      isOver = true;
      stream.destroy();
    },
  });
}

/** Resolves when the stream accepts more bytes. Rejects if the reader has closed the stream. */
export function writeNodeStream(write: NodeOutput["write"], bytes: Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  write(bytes, (error) => error ? reject(error) : resolve());
  return promise;
}

let write: NodeOutput["write"] | undefined;

/**
 * Returns the original `write` of standard output. The first call must come before the redirection to standard error.
 */
export function findNodeWrite({ stdout }: NodeGlobal): NodeOutput["write"] {
  if (!write) {
    write = stdout.write.bind(stdout);
    // Ignore errors. Without a listener, an error would end the process when the client no longer reads.
    stdout.on("error", () => {});
  }
  return write;
}
