/**
 * Messages over one channel for everything: the standard streams of a child process, or both ends in one process.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 * @module
 */
import type { Answer, Channel, SendOptions } from "./channel.ts";
import { type Message, readMessages } from "./message.ts";
import type { Transcript } from "./transcript.ts";

/** The client's end of a channel. */
export interface Lines {
  /** Sends one text; settles when there is room for the next. */
  write(text: string): Promise<void> | undefined;
  close(): Promise<void>;
}

/** What a channel over lines is made of. */
export interface LineChannelOptions {
  readonly transcript: Transcript;
  /** Told of every message that answers no request of ours. */
  readonly hear: (message: Message) => void;
  /** Opens the channel; `receive` is to be called with every text that comes, `end` when no more will come. */
  open(receive: (text: string) => void, end: () => void): Lines;
}

interface Waiter {
  readonly id: Message["id"];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: unknown) => void;
}

/** A channel over lines. */
export function lineChannel({ transcript, hear, open }: LineChannelOptions): Channel {
  // A list, not a map: a test may have the same id in flight twice.
  const waiters: Waiter[] = [];
  let over = false;
  const lines = open(receive, () => {
    over = true;
    for (const { reject } of waiters.splice(0)) reject(new Error(ENDED));
  });

  function receive(text: string): void {
    for (const message of readMessages(text)) {
      transcript.heard(message);
      const at = message.method === undefined ? waiters.findIndex(({ id }) => id === message.id) : -1;
      if (at < 0) hear(message);
      else waiters.splice(at, 1)[0].resolve({ message });
    }
  }

  async function send(message: Message, { signal }: SendOptions = {}): Promise<Answer> {
    signal?.throwIfAborted();
    if (over) throw new Error(ENDED);
    transcript.sent(message);
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

  return { send, close: () => lines.close() };
}

const ENDED = "Cannot get the answer: the server closed the channel";
