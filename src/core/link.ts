/**
 * The way back to a client: where a message came from, and where frames go before the answer.
 *
 * @module
 */
import type { Account } from "./account.ts";
import type { Principal } from "./context.ts";
import type { InFlight } from "./in_flight.ts";

/** Fields of a stream event beside its text. */
export interface EventFields {
  readonly id?: string;
  /** The event's type. Defaults to `message`. */
  readonly event?: string;
  /** Milliseconds after which the client should reconnect. */
  readonly retry?: number;
}

/** What an era wants to know of a link while an answer is on its way. */
export interface LinkEvents {
  /** Called when the answer becomes a stream. Returns the fields of the event that opens it, if it has one. */
  opened?(): EventFields | undefined;
  /** Called once when the client can no longer be reached. */
  lost?(): void;
}

/** Where a message came from. Made by a transport; an era may wrap it. */
export interface Link {
  /** The calls of this connection or exchange, where request ids are unique. */
  readonly inFlight: InFlight;
  /** What the client makes the server hold. Looked up when it is first read. */
  readonly account: Account;
  /** The HTTP request that carried the message. */
  readonly http?: Request;
  /** That request's headers. */
  readonly headers?: Headers;
  /** Its `MCP-Protocol-Version` header; `null` if it has none. */
  readonly version?: string | null;
  readonly principal?: Principal;
  /** Whether texts can reach the client before the answer. */
  readonly streams: boolean;
  /** Sends a JSON text before the answer. Returns a promise if the sender should wait for room. */
  send(text: string, event?: EventFields): Promise<void> | undefined;
  /**
   * Says that the answer takes a while. From here on the transport may turn it into a stream, keeps the connection
   * alive and notices when the client is gone. Everything that decides an HTTP status must come before this.
   */
  wait(events?: LinkEvents): void;
  /** Starts the stream without waiting for a text. */
  open(): void;
  /** Ends the connection but not the call. */
  release(event?: EventFields): void;
}

/** The answer to one message. A byte stream ignores the HTTP hints. Without a text there is nothing to say. */
export interface Reply {
  /** One JSON-RPC message as JSON. */
  readonly text?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields of the event that carries the text, if the answer has become a stream. */
  readonly event?: EventFields;
}

/** Goes with a refusal for lack of room: when to come back, in seconds. */
export const LATER = { "retry-after": "1" } as const;
