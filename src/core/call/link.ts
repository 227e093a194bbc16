/**
 * The interface between a transport and an era: the source of a message, and its reply.
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
  /** Returns the checks of the caller for a stream, or `undefined` if the caller needs no checks. */
  toChecks?(principal: Principal | undefined): CallerChecks | undefined;
}

/** The source of a message, created by a transport. An era may wrap it. */
export interface Link {
  readonly transport: TransportName;
  /** The running calls of this connection or exchange. Request ids are unique among these calls. */
  readonly inFlight: InFlight;
  /** The account of the client. Looked up on first access. */
  readonly account: Account;
  /** The HTTP request that carried the message. */
  readonly http?: Pick<SeenRequest, "request" | "toChecks">;
  /** Headers of the HTTP request. */
  readonly headers?: HeaderReader;
  /** The `MCP-Protocol-Version` header of the HTTP request, or `null` if it has none. */
  readonly version?: string | null;
  readonly principal?: Principal;
  /**
   * Secret id of the session or the connection, whose messages all come from the same client. `undefined` for an HTTP
   * exchange without a session.
   */
  readonly owner?: string;
  /** Address of the client, if known. */
  readonly peer?: string;
  /** Whether messages can be sent before the response. */
  readonly streams: boolean;
  /**
   * Sends JSON text before the response. Returns a promise if the sender should wait until the client has read more.
   */
  send(text: string, event?: EventFields): Promise<void> | undefined;
  /**
   * Announces that the response takes time. From then on, the transport may turn the response into a stream, send
   * heartbeats, and detect a disconnected client. Errors that set the HTTP status must be sent before.
   */
  wait(events?: LinkEvents): void;
  /** Starts the stream at once, without a message. */
  open(): void;
  /** Closes the connection, while the call continues. */
  release(event?: EventFields): void;
}

/**
 * The response to one message. Only HTTP uses the status, the headers and the event. Without `text`, no message is
 * sent.
 */
export interface Reply {
  /** A JSON-RPC message as JSON. */
  readonly text?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields of the event that carries the text, if the response is a stream. */
  readonly event?: EventFields;
  /** Called by a channel when the text is written, or can no longer be written. */
  readonly onWritten?: () => void;
}

/** Header of a refusal at a limit: the client may retry after 1 second. */
export const RETRY_AFTER = { "retry-after": "1" } as const;

/** Key of the headers for the response to an error. */
export const REPLY_HEADERS: unique symbol = Symbol();

/** An error whose code contains an HTTP status. */
type Hinted = McpError & { readonly [REPLY_HEADERS]?: Reply["headers"] };

/**
 * Returns the HTTP status and the headers of a refusal, whose code is -31000 minus the status. Returns `undefined` for
 * any other error.
 */
export function toHints(error: Hinted): Pick<Reply, "status" | "headers"> | undefined {
  const status = -31_000 - error.code;
  const isBusy = status === 429 || status === 503;
  if (!isBusy && !error[REPLY_HEADERS]) return;
  const { retryAfterMs } = Object(error.data);
  const retry = isBusy && { "retry-after": `${Math.ceil(retryAfterMs / 1000) || 1}` };
  return { status, headers: { ...retry, ...error[REPLY_HEADERS] } };
}

/** Creates a link of the same client that sends nothing. */
export function toSilent(
  { transport, inFlight, account, principal }: Pick<Link, "transport" | "inFlight" | "account" | "principal">,
): Link {
  const send = () => undefined;
  return { transport, inFlight, account, principal, streams: false, send, wait() {}, open() {}, release() {} };
}
