/**
 * Channels carry the messages of one connection: over HTTP exchanges, or over one stream in each direction.
 *
 * @module
 */
import type { Message } from "./message.ts";

/** The options of one message. */
export interface SendOptions {
  /** HTTP headers. `null` removes a header. A channel without headers ignores this option. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Stops waiting for the response, and closes the HTTP exchange if there is one. */
  readonly signal?: AbortSignal;
  /** Returns whether to resume a stream that ended too early. Defaults to `true`. */
  readonly resumes?: () => boolean;
  /**
   * Called with each message before the response, on a channel where each request has its own messages. If it returns a
   * promise, the channel reads the next message when the promise settles.
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

/** A stream for messages outside of requests. */
export interface ServerStream {
  readonly status: number;
  /** Settles with the last HTTP status when the stream has ended and cannot be resumed. */
  readonly ended: Promise<number>;
}

/** Carries the messages of one connection. */
export interface Channel {
  /** Sends a message. Returns the response if the message is a request. */
  send(message: Message, options?: SendOptions): Promise<SendResult>;
  /** Opens a stream for messages outside of requests. Exists only on channels where each request has its own stream. */
  openStream?(options: SendOptions): Promise<ServerStream>;
  /** Ends the session. Returns the HTTP status. */
  endSession?(options: SendOptions): Promise<number>;
  /**
   * Returns the milliseconds for which requests have waited for a user to sign in. Exists only on channels that use
   * tokens.
   */
  waitedMs?(): number;
  /** Settles when the server has closed the channel. Exists only on channels where all messages share one stream. */
  readonly ended?: Promise<void>;
  /** Closes the channel. Settles when all connections are closed. */
  close(): Promise<void>;
}

/** Observes everything that is sent and received, before it is processed. */
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
