/**
 * Starts worker threads with the web API `Worker` on Deno and Bun, and with `worker_threads` on Node.
 */
import { node, type NodeGlobal } from "../../core/runtime.ts";

export interface ThreadEvents {
  readonly onMessage: (message: unknown) => void;
  /** Called when the thread has sent a value that cannot be copied. */
  readonly onUnreadable: (state: string) => void;
  /** Called when an uncaught error has stopped the thread's code. */
  readonly onFailure: (state: string) => void;
  /** Called when the thread has ended, except on Deno, which has no such event. */
  readonly onEnd: () => void;
}

export interface RunningThread {
  post(message: unknown): void;
  terminate(): void;
  /** Has no effect on Deno, where a thread always keeps the process alive. */
  keepAlive(isKept: boolean): void;
}

const NOT_COPIED = "the thread sent a value that cannot be copied";

/** @throws if the runtime cannot start the thread. */
export function startThread(url: URL, name: string, events: ThreadEvents): RunningThread {
  return node ? startOnNode(node, { url, name }, events) : startOnWeb({ url, name }, events);
}

interface ThreadFile {
  readonly url: URL;
  readonly name: string;
}

function startOnWeb(
  { url, name }: ThreadFile,
  { onMessage, onUnreadable, onFailure, onEnd }: ThreadEvents,
): RunningThread {
  const worker = new Worker(url, { type: "module", name });
  worker.addEventListener("message", ({ data }) => onMessage(data));
  worker.addEventListener("error", (event) => {
    // Prevent the default, because an uncaught error in a thread would otherwise end the process.
    event.preventDefault();
    onFailure(toLine(event.message));
  });
  worker.addEventListener("messageerror", () => onUnreadable(NOT_COPIED));
  // Only Bun sends this event.
  worker.addEventListener("close", onEnd);
  return {
    post: (message) => worker.postMessage(message),
    terminate: () => worker.terminate(),
    keepAlive(isKept) {
      // Only Bun's `Worker` has these methods.
      const change: unknown = Reflect.get(worker, isKept ? "ref" : "unref");
      if (typeof change === "function") change.call(worker);
    },
  };
}

function startOnNode(
  node: NodeGlobal,
  { url, name }: ThreadFile,
  { onMessage, onUnreadable, onFailure, onEnd }: ThreadEvents,
): RunningThread {
  const { Worker } = node.getBuiltinModule("worker_threads");
  const worker = new Worker(url, { name });
  worker.on("message", onMessage);
  worker.on("error", (error) => onFailure(toLine(error instanceof Error ? error.message : error)));
  worker.on("messageerror", () => onUnreadable(NOT_COPIED));
  worker.on("exit", onEnd);
  return {
    post: (message) => worker.postMessage(message),
    terminate: () => void worker.terminate(),
    keepAlive: (isKept) => isKept ? worker.ref() : worker.unref(),
  };
}

// Extracts the line with the message, because Bun's message is a whole report with source code.
function toLine(message: unknown): string {
  const text = String(message);
  return /^error: (.*)$/m.exec(text)?.[1] ?? (text || "an error without a message");
}
