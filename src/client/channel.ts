/**
 * How the messages of one connection travel: over HTTP exchanges, or over one channel for everything.
 *
 * @module
 */
import type { Message } from "./message.ts";

/** What goes along with one message. */
export interface SendOptions {
  /** HTTP headers; `null` takes one away. A channel without headers ignores them. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Stops waiting, and closes the exchange where there is one. */
  readonly signal?: AbortSignal;
  /** Whether a stream that ended too early is to be read on; yes, unless said otherwise. */
  readonly resumes?: () => boolean;
  /** Told of every message that comes before the answer, on a channel where that can be known. */
  readonly onMessage?: (message: Message) => void;
}

/** What a message came to. */
export interface Answer {
  /** The answer to a request. */
  readonly message?: Message;
  readonly status?: number;
  readonly headers?: Headers;
  /** A body that is no message. */
  readonly text?: string;
}

/** A stream that no request asked for. */
export interface ServerStream {
  readonly status: number;
  /** Settles when the stream has ended for good, with the status of the last answer. */
  readonly ended: Promise<number>;
}

/** How the messages of one connection travel. */
export interface Channel {
  /** Sends a message. What comes back for a request is its answer. */
  send(message: Message, options?: SendOptions): Promise<Answer>;
  /** Opens a stream that no request asked for; only where every request has a stream of its own. */
  openStream?(options: SendOptions): Promise<ServerStream>;
  /** Ends what `visit` and the handshake began, and tells the status. */
  endSession?(options: SendOptions): Promise<number>;
  /** Settles when the other side has closed the channel; only where all messages share one. */
  readonly ended?: Promise<void>;
  /** Settles when nothing is open any more. */
  close(): Promise<void>;
}

/** Sees everything that goes over the wire, before anything is done about it. */
export interface Trace {
  /** The head of an HTTP request. */
  request(method: string, headers: Headers): void;
  /** The head of an HTTP response. */
  response(response: Response): void;
  /** A message that is sent. */
  sent(message: Message): void;
  /** A message that came. */
  received(message: Message): void;
  /** A body that is no message. */
  other(text: string): void;
}
