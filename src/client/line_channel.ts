/**
 * Sends and receives messages as text, one message per line or event: over stdio, over SSE, or within this process.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 */
import { deadline } from "../core/kit/deadline.ts";
import { type Failure, withFailure } from "../core/kit/failure.ts";
import type { Channel, SendOptions, SendResult, Trace } from "./channel.ts";
import { type Message, type ReadMessages, readMessages } from "./message.ts";
import { isOneWay } from "./one_way.ts";

export interface WriteOptions {
  /** Aborts when nobody waits for the message any longer. A transport that cannot withdraw a message ignores it. */
  readonly signal?: AbortSignal;
  /** Whether the message expects no reply. Defaults to `false`. */
  readonly isOneWay?: boolean;
}

export interface LineTransport {
  /** Returns a promise if the caller should wait until the reader has read earlier messages. */
  write(text: string, options?: WriteOptions): Promise<void> | undefined;
  close(): Promise<void>;
}

/**
 * Opens a transport. Calls `receive` with each received text, and `end` with a reason when nothing more can arrive.
 * `failure` contains the facts of this reason. If `receive` returns a promise, the transport waits until the promise has
 * settled before it calls `receive` again.
 */
export type OpenLineTransport = (
  receive: (text: string) => Promise<void> | undefined,
  end: (state: string, failure?: Failure) => void,
) => LineTransport;

export interface LineChannelOptions {
  readonly open: OpenLineTransport;
  /** Called with each message that is not a response to a request that this channel has sent. */
  readonly onMessage: (message: Message) => Promise<void> | undefined | void;
  /** Called with an error for each received text that is not a message. */
  readonly onBroken: (error: unknown) => void;
  readonly trace?: Trace;
  /** Parses the messages of the server. Defaults to {@linkcode readMessages}. */
  readonly read?: ReadMessages;
}

interface Waiter {
  readonly id: Message["id"];
  readonly resolve: (reply: SendResult) => void;
  readonly reject: (reason: unknown) => void;
}

/** When the server closes the transport, waiting requests reject with a `NetworkError`. */
export function lineChannel(options: LineChannelOptions): Channel {
  const { open, onMessage, onBroken, trace, read = readMessages } = options;
  // An array instead of a map, because a test may use the same id twice.
  const waiters: Waiter[] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let lost: DOMException | undefined;
  const lines = open(receive, (state, failure) => {
    lost = new DOMException(`Cannot get the response: ${state}`, "NetworkError");
    if (failure) withFailure(lost, failure);
    for (const { reject } of waiters.splice(0)) reject(lost);
    end();
  });

  function receive(text: string): Promise<void> | undefined {
    let messages;
    try {
      messages = read(text);
    } catch (error) {
      return void onBroken(error);
    }
    let passed: Promise<void> | undefined;
    for (const message of messages) {
      trace?.received?.(message);
      const at = message.method === undefined ? waiters.findIndex(({ id }) => id === message.id) : -1;
      if (at < 0) passed = onMessage(message) ?? passed;
      else waiters.splice(at, 1)[0].resolve({ message });
    }
    return passed;
  }

  async function send(message: Message, { signal }: SendOptions = {}): Promise<SendResult> {
    signal?.throwIfAborted();
    if (lost) throw lost;
    trace?.sent?.(message);
    if (isOneWay(message)) {
      const written = lines.write(JSON.stringify(message), { signal, isOneWay: true });
      if (written) await deadline(written, { signal });
      return {};
    }
    const { promise, resolve, reject } = Promise.withResolvers<SendResult>();
    const waiter = { id: message.id, resolve, reject };
    const forget = () => {
      const at = waiters.indexOf(waiter);
      if (at >= 0) waiters.splice(at, 1);
      reject(signal?.reason);
    };
    waiters.push(waiter);
    signal?.addEventListener("abort", forget, { once: true });
    try {
      const [reply] = await Promise.all([promise, lines.write(JSON.stringify(message), { signal })]);
      return reply;
    } finally {
      signal?.removeEventListener("abort", forget);
    }
  }

  return { send, ended, close: () => lines.close() };
}
