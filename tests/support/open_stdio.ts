// Serves stdio within this process, with an input that stays open.
import { serveStdio, type StdioOptions } from "../../src/server/transports/stdio/stdio.ts";

/** The client's end of a server that serves stdio. */
export interface OpenStdio {
  /** The output so far. */
  text: string;
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  /** Settles when the server has stopped serving. */
  readonly serving: Promise<void>;
  /** Writes messages, each on a line of its own. */
  write(...messages: readonly unknown[]): Promise<void>;
}

/** Starts to serve a server. */
export function openStdio(server: Parameters<typeof serveStdio>[0], options: StdioOptions = {}): OpenStdio {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const decoder = new TextDecoder();
  const output = (bytes: Uint8Array) => Promise.resolve(void (open.text += decoder.decode(bytes, { stream: true })));
  const open: OpenStdio = {
    text: "",
    writer,
    write: (...messages) =>
      writer.write(new TextEncoder().encode(messages.map((each) => `${JSON.stringify(each)}\n`).join(""))),
    serving: serveStdio(server, { input: readable, output, ...options }),
  };
  return open;
}
