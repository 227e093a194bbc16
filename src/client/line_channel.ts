/**
 * Messages over one channel for everything: the standard streams of a child process, or both ends in one process.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 * @module
 */
import type { Answer, Channel, SendOptions, Trace } from "./channel.ts";
import { type Message, readMessages } from "./message.ts";

/** The client's end of a channel. */
export interface LineTransport {
  /** Sends one text; settles when there is room for the next. */
  write(text: string): Promise<void> | undefined;
  close(): Promise<void>;
}

/** Opens a channel; `receive` is called with every text that comes, `end` when no more will come, with the reason. */
export type OpenLineTransport = (receive: (text: string) => void, end: (state: string) => void) => LineTransport;

/** What a channel over lines is made of. */
export interface LineChannelOptions {
  readonly open: OpenLineTransport;
  /** Told of every message that answers no request of ours. */
  readonly onMessage: (message: Message) => void;
  /** Told of every text that is no message. */
  readonly onBroken: (error: unknown) => void;
  readonly trace?: Trace;
}

interface Waiter {
  readonly id: Message["id"];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: unknown) => void;
}

/** A channel over lines. When the other side has closed it, what waits fails with a `NetworkError`. */
export function lineChannel({ open, onMessage, onBroken, trace }: LineChannelOptions): Channel {
  // A list, not a map: a test may have the same id in flight twice.
  const waiters: Waiter[] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let lost: DOMException | undefined;
  const lines = open(receive, (state) => {
    lost = new DOMException(`Cannot get the answer: ${state}`, "NetworkError");
    for (const { reject } of waiters.splice(0)) reject(lost);
    end();
  });

  function receive(text: string): void {
    let messages;
    try {
      messages = readMessages(text);
    } catch (error) {
      return onBroken(error);
    }
    for (const message of messages) {
      trace?.received(message);
      const at = message.method === undefined ? waiters.findIndex(({ id }) => id === message.id) : -1;
      if (at < 0) onMessage(message);
      else waiters.splice(at, 1)[0].resolve({ message });
    }
  }

  async function send(message: Message, { signal }: SendOptions = {}): Promise<Answer> {
    signal?.throwIfAborted();
    if (lost) throw lost;
    trace?.sent(message);
    if (message.method === undefined || message.id === undefined) {
      await lines.write(JSON.stringify(message));
      return {};
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const waiter = { id: message.id, resolve, reject };
    const forget = () => {
      const at = waiters.indexOf(waiter);
      if (at >= 0) waiters.splice(at, 1);
      reject(signal?.reason);
    };
    waiters.push(waiter);
    signal?.addEventListener("abort", forget, { once: true });
    try {
      const [answer] = await Promise.all([promise, lines.write(JSON.stringify(message))]);
      return answer;
    } finally {
      signal?.removeEventListener("abort", forget);
    }
  }

  return { send, ended, close: () => lines.close() };
}
