/**
 * The contract between a transport and an era: the source of a message, and its reply.
 *
 * @module
 */
import type { McpError } from "../../protocol/errors.ts";
import type { Account } from "../capacity/account.ts";
import type { CallerChecks } from "./caller_watch.ts";
import type { Principal } from "./context.ts";
import type { InFlight } from "./in_flight.ts";
import type { TransportName } from "./observer.ts";

/** Fields of a server-sent event beside its data. */
export interface EventFields {
  readonly id?: string;
  /** Event type. Defaults to `message`. */
  readonly event?: string;
  /** Delay in milliseconds before the client should reconnect. */
  readonly retry?: number;
}

/** Events of a link during a call. */
export interface LinkEvents {
  /** Called when the response becomes a stream. May return the fields of the first event. */
  opened?(): EventFields | undefined;
  /** Called once when the client disconnects. */
  lost?(): void;
}

/** Reads headers. */
export type HeaderReader = Pick<Headers, "get">;

/** An HTTP request as handlers see it, without credentials. */
export interface SeenRequest {
  readonly request: Request;
  readonly headers: HeaderReader;
  /** Returns the checks of its caller for a stream, unless the caller needs none. */
  toChecks?(principal: Principal | undefined): CallerChecks | undefined;
}

/** The source of a message, created by a transport. An era may wrap it. */
export interface Link {
  readonly transport: TransportName;
  /** The calls of this connection or exchange, within which request ids are unique. */
  readonly inFlight: InFlight;
  /** The client's account. It is looked up on first access. */
  readonly account: Account;
  /** The HTTP request that carried the message. */
  readonly http?: Pick<SeenRequest, "request" | "toChecks">;
  /** Headers of that request. */
  readonly headers?: HeaderReader;
  /** Its `MCP-Protocol-Version` header, or `null` if it has none. */
  readonly version?: string | null;
  readonly principal?: Principal;
  /**
   * Secret id of the session or the connection, whose messages all come from one client. `undefined` for an exchange that
   * has neither.
   */
  readonly owner?: string;
  /** Address of the client, if known. */
  readonly peer?: string;
  /** Whether messages can be sent before the response. */
  readonly streams: boolean;
  /** Sends a JSON text before the response. Returns a promise if the sender should wait for room. */
  send(text: string, event?: EventFields): Promise<void> | undefined;
  /**
   * Announces that the response takes time. From here on, the transport may turn the response into a stream, send
   * heartbeats and detect a disconnected client. Errors with their own HTTP status must come before.
   */
  wait(events?: LinkEvents): void;
  /** Starts the stream at once, without a message. */
  open(): void;
  /** Closes the connection but not the call. */
  release(event?: EventFields): void;
}

/** The response to one message. Only HTTP uses the status, the headers and the event. Without a text, no message is sent. */
export interface Reply {
  /** A JSON-RPC message as JSON. */
  readonly text?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields of the event that carries the text, if the response is a stream. */
  readonly event?: EventFields;
  /** Called by a channel once the text is written, or can no longer be. */
  readonly onWritten?: () => void;
}

/** Headers of a refusal at a limit: retry after one second. */
export const RETRY_AFTER = { "retry-after": "1" } as const;

/** Key of the headers that the response to an error has. */
export const REPLY_HEADERS: unique symbol = Symbol();

/** An error that an HTTP status stands for. */
type Hinted = McpError & { readonly [REPLY_HEADERS]?: Reply["headers"] };

/**
 * Returns the HTTP status of a refusal and its headers. Its code is -31000 minus the status. Returns `undefined` for any
 * other error.
 */
export function toHints(error: Hinted): Pick<Reply, "status" | "headers"> | undefined {
  const status = -31_000 - error.code;
  const isBusy = status === 429 || status === 503;
  if (!isBusy && !error[REPLY_HEADERS]) return;
  const { retryAfterMs } = Object(error.data);
  const retry = isBusy && { "retry-after": `${Math.ceil(retryAfterMs / 1000) || 1}` };
  return { status, headers: { ...retry, ...error[REPLY_HEADERS] } };
}

/** A link to the same client over which nothing is sent. */
export function toSilent(
  { transport, inFlight, account, principal }: Pick<Link, "transport" | "inFlight" | "account" | "principal">,
): Link {
  const send = () => undefined;
  return { transport, inFlight, account, principal, streams: false, send, wait() {}, open() {}, release() {} };
}
