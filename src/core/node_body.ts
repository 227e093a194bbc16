/**
 * Reads the bodies of requests on Node.
 */
import type { NodeIncoming } from "./runtime.ts";

/**
 * The body of a request as a stream. `Readable.toWeb` of Node is no replacement: after the stream is cancelled, Node 22
 * and 24 throw an uncaught exception for a piece that is still buffered, and Node reads no further request on the
 * connection.
 */
export class IncomingBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #incoming: NodeIncoming;
  #controller?: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;

  constructor(incoming: NodeIncoming) {
    this.#incoming = incoming;
    const start = (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      this.#controller = controller;
    };
    const pull = () => void incoming.resume();
    const cancel = () => {
      this.#controller = undefined;
      incoming.resume();
    };
    this.stream = new ReadableStream({ start, pull, cancel }, { highWaterMark: 0 });
    if (incoming.destroyed) this.#fail();
    incoming.on("data", ({ buffer, byteOffset, byteLength }) => {
      if (!this.#controller) return;
      incoming.pause();
      this.#controller.enqueue(new Uint8Array(buffer, byteOffset, byteLength));
    });
    incoming.on("end", () => this.#controller?.close());
    incoming.on("close", () => {
      if (!incoming.readableEnded) this.#fail();
    });
    incoming.pause();
  }

  /** Discards the rest of the body. Fails the stream, so that no reader takes a part of the body for the whole. */
  discard(): void {
    this.#fail();
    this.#incoming.resume();
  }

  #fail(): void {
    this.#controller?.error(new DOMException("The request is over", "AbortError"));
    this.#controller = undefined;
  }
}

/** Rejects if the client disconnects before the end. */
export function readAll(incoming: NodeIncoming): Promise<ArrayBuffer> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    incoming.on("data", (piece) => pieces.push(piece));
    incoming.on("end", () => resolve(join(pieces)));
    incoming.on("close", () => {
      if (!incoming.readableEnded) reject(new DOMException("The client has disconnected", "AbortError"));
    });
  });
}

function join(pieces: readonly Uint8Array<ArrayBuffer>[]): ArrayBuffer {
  // Copy a single piece too, because its buffer may contain other requests.
  if (pieces.length === 1) {
    const [{ buffer, byteOffset, byteLength }] = pieces;
    return buffer.slice(byteOffset, byteOffset + byteLength);
  }
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all.buffer;
}
