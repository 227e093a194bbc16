/**
 * A streamed response that sends events to the page.
 */
import type { Params } from "../../client/client.ts";

/** Maximum number of bytes to buffer while the page does not read the stream. */
const MAX_BUFFERED_BYTES = 64 * 1024 * 1024;
/** Milliseconds between two heartbeats, because some runtimes close idle streams. */
const HEARTBEAT_MS = 5000;

/** A stream of events. The stream ends when `gone` aborts, when the page stops reading, or when `close` is called. */
export class EventStream {
  readonly response: Response;
  readonly #end = new AbortController();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(gone: AbortSignal) {
    const close = () => this.close();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void (this.#controller = controller),
      cancel: close,
    }, { highWaterMark: 0, size: (chunk) => chunk.length });
    const timer = setInterval(() => this.#write(":\n\n"), HEARTBEAT_MS);
    this.#write(":\n\n");
    gone.addEventListener("abort", close, { once: true });
    this.signal.addEventListener("abort", () => {
      clearInterval(timer);
      gone.removeEventListener("abort", close);
    }, { once: true });
    this.response = new Response(body, { headers: { "content-type": "text/event-stream", ...SAFE } });
  }

  /** Aborts when the stream ends. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Sends an event. Does nothing after the stream has ended. */
  send(event: Params): void {
    this.#write(`data: ${JSON.stringify(event)}\n\n`);
  }

  close(): void {
    if (this.signal.aborted) return;
    this.#end.abort(new DOMException("The page was closed", "AbortError"));
    try {
      this.#controller?.close();
    } catch {
      // Ignore the error: the page has cancelled the stream.
    }
  }

  #write(text: string): void {
    if (this.signal.aborted) return;
    this.#controller?.enqueue(new TextEncoder().encode(text));
    if ((this.#controller?.desiredSize ?? 0) < -MAX_BUFFERED_BYTES) this.close();
  }
}

/** Headers for all responses to the page. */
export const SAFE = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;
