/**
 * The interface of channels. A channel carries the messages of one connection, over HTTP requests or over one stream in
 * each direction.
 */
import type { Message } from "./message.ts";

export interface SendOptions {
  /** HTTP headers to set, or to remove with `null`. A channel without HTTP headers ignores this option. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** When this signal aborts, the channel stops waiting for the response, and over HTTP aborts the HTTP request. */
  readonly signal?: AbortSignal;
  /** Returns whether to resume a stream that ended before the response. By default, the channel resumes the stream. */
  readonly resumes?: () => boolean;
  /**
   * Called with each message that arrives before the response, on a channel where each request has its own stream. If
   * the callback returns a promise, the channel reads the next message after the promise has settled.
   */
  readonly onMessage?: (message: Message) => Promise<void> | undefined | void;
}

export interface SendResult {
  /** The response, if the message was a request. */
  readonly message?: Message;
  readonly status?: number;
  readonly headers?: Headers;
  /** The body of the HTTP response, if it is not a message. */
  readonly text?: string;
}

/** A standalone stream, on which the server sends messages outside of requests. */
export interface ServerStream {
  readonly status: number;
  /** Resolves with the last HTTP status when the stream has ended and cannot be resumed. */
  readonly ended: Promise<number>;
}

/** `undefined` if the client sent no token. */
export interface SentToken {
  readonly token: string | undefined;
}

export interface Tokens {
  /** The latest token. Another object when the token has changed. */
  readonly sent: SentToken;
  readNext(): Promise<string | undefined>;
}

export interface Channel {
  /** Sends a message. For a request, resolves when the response has arrived. */
  send(message: Message, options?: SendOptions): Promise<SendResult>;
  /** Opens a standalone stream. Exists only on channels where each request has its own stream. */
  openStream?(options: SendOptions): Promise<ServerStream>;
  /** Ends the session. Returns the HTTP status. */
  endSession?(options: SendOptions): Promise<number>;
  /** Milliseconds for which requests have waited for a user to sign in. Exists only on channels that use tokens. */
  waitedMs?(): number;
  /** The tokens of requests. Exists only on channels that use tokens. */
  readonly tokens?: Tokens;
  /** Resolves when the server has closed the channel. Exists only on channels where all messages share one stream. */
  readonly ended?: Promise<void>;
  /** Resolves when all connections are closed. */
  close(): Promise<void>;
}

/** Callbacks that observe all messages and HTTP exchanges, before the channel processes them. */
export interface Trace {
  /** Called before an HTTP request is sent. */
  request?(method: string, headers: Headers): void;
  /** Called with each HTTP response, before its body is read. */
  response?(response: Response): void;
  /** Called before a message is sent. */
  sent?(message: Message): void;
  /** Called with each received message. */
  received?(message: Message): void;
  /** Called with each received body that is not a message. */
  other?(text: string): void;
}
