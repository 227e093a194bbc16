/**
 * Channels carry the messages of one connection: over HTTP exchanges, or over one stream in each direction.
 *
 * @module
 */
import type { Message } from "./message.ts";

/** The options of one message. */
export interface SendOptions {
  /** HTTP headers; `null` removes one. A channel without headers ignores them. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Stops waiting, and closes the HTTP exchange if there is one. */
  readonly signal?: AbortSignal;
  /** Whether to resume a stream that ended too early. Defaults to `true`. */
  readonly resumes?: () => boolean;
  /**
   * Called with each message before the response, on a channel where messages belong to requests. If it returns a promise,
   * the channel reads on when that settles.
   */
  readonly onMessage?: (message: Message) => Promise<void> | undefined | void;
}

/** The outcome of a message. */
export interface SendResult {
  /** The response to a request. */
  readonly message?: Message;
  readonly status?: number;
  readonly headers?: Headers;
  /** A body that is not a message. */
  readonly text?: string;
}

/** A stream for messages that belong to no request. */
export interface ServerStream {
  readonly status: number;
  /** Settles when the stream has ended for good, with the last HTTP status. */
  readonly ended: Promise<number>;
}

/** Carries the messages of one connection. */
export interface Channel {
  /** Sends a message. Returns the response if the message is a request. */
  send(message: Message, options?: SendOptions): Promise<SendResult>;
  /** Opens a stream for messages that belong to no request. Exists only where each request has its own stream. */
  openStream?(options: SendOptions): Promise<ServerStream>;
  /** Ends the session. Returns the HTTP status. */
  endSession?(options: SendOptions): Promise<number>;
  /** The milliseconds that requests have waited for a user who signs in. Exists only where requests can be refused. */
  waitedMs?(): number;
  /** Settles when the server has closed the channel. Exists only where all messages share one. */
  readonly ended?: Promise<void>;
  /** Closes the channel. Settles when nothing is open any more. */
  close(): Promise<void>;
}

/** Sees everything that is sent and received, before it is processed. */
export interface Trace {
  /** The head of an HTTP request. */
  request(method: string, headers: Headers): void;
  /** The head of an HTTP response. */
  response(response: Response): void;
  /** A message before it is sent. */
  sent(message: Message): void;
  /** A received message. */
  received(message: Message): void;
  /** A received body that is not a message. */
  other(text: string): void;
}
