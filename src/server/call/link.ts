/**
 * The interface between a transport and an era: the link from which a message arrives, and the reply to the message.
 */
import type { McpError } from "../../core/protocol/errors.ts";
import type { Account } from "../capacity/account.ts";
import type { CallerChecks } from "./caller_watch.ts";
import type { Principal } from "./context.ts";
import type { Reads } from "./handler_call.ts";
import type { InFlight } from "./in_flight.ts";
import type { TransportName } from "./observer.ts";

/** Fields of a server-sent event, except for `data`. */
export interface EventFields {
  readonly id?: string;
  /** Event type. Defaults to `message`. */
  readonly event?: string;
  /** Delay in milliseconds before the client should reconnect. */
  readonly retry?: number;
}

/** Callbacks for events on a link while a call runs. */
export interface LinkEvents {
  /** Called when the response becomes a stream. May return the fields of the first event. */
  opened?(): EventFields | undefined;
  /** Called once when the client disconnects. */
  lost?(): void;
}

export type HeaderReader = Pick<Headers, "get">;

/** An HTTP request without credentials, as handlers receive it. */
export interface SeenRequest {
  readonly request: Request;
  readonly headers: HeaderReader;
  /** Returns functions that check the caller of a stream, or `undefined` if no check is needed. */
  toChecks?(principal: Principal | undefined): CallerChecks | undefined;
}

/** The connection or HTTP exchange of a message. A transport creates the link, and an era may wrap the link. */
export interface Link {
  readonly transport: TransportName;
  /** The running calls of this connection or exchange. A cancellation can refer only to these calls. */
  readonly inFlight: InFlight;
  /** Looked up on first access. */
  readonly account: Account;
  /** The HTTP request that contained the message. `undefined` on other transports. */
  readonly http?: Pick<SeenRequest, "request" | "toChecks">;
  /** Headers of the HTTP request. `undefined` on other transports. */
  readonly headers?: HeaderReader;
  /** The `MCP-Protocol-Version` header of the HTTP request, or `null` if the request lacks the header. */
  readonly version?: string | null;
  readonly principal?: Principal;
  /** Whether the caller has all scopes although it has no principal. Set only for calls by extensions. */
  readonly hasAllScopes?: boolean;
  /**
   * Secret id of the session or the connection. All messages with one id come from the same client. `undefined` for an
   * HTTP exchange without a session.
   */
  readonly owner?: string;
  /** Address of the client, if known. */
  readonly peer?: string;
  /** Aborts if the program that passed the request to `fetch` in this process aborts the request. */
  readonly signal?: AbortSignal;
  /** Whether the server can send messages before the response. */
  readonly streams: boolean;
  /** Sends JSON text before the response. For a slow client, returns a promise that resolves when it has read more. */
  send(text: string, event?: EventFields): Promise<void> | undefined;
  /**
   * Announces that the response will not be sent immediately. After this call, the transport may turn the response into
   * a stream, send heartbeats, and detect a disconnect. An error that sets the HTTP status must be sent before this
   * call.
   */
  wait(events?: LinkEvents): void;
  /** Starts the stream immediately, before the first message. */
  open(): void;
  /** Closes the response stream without ending the call. Sends `event` first. */
  release(event?: EventFields): void;
  /** Announces work after the response, because Workers would end the work together with the response. */
  waitUntil?(work: Promise<unknown>): void;
  /** Called before a handler reads a resource that not every caller may read. `add` adds the resource to a list. */
  onRead?(add: (reads: Reads | undefined) => Reads): void;
}

/** The members of a link that sends nothing. */
export const SILENT = { streams: false, send: () => undefined, wait() {}, open() {}, release() {} } as const;

/** The response to one message. Only HTTP uses `status`, `headers` and `event`. Without `text`, no message is sent. */
export interface Reply {
  /** A JSON-RPC message as JSON text. */
  readonly text?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields of the event that contains `text`, if the response is a stream. */
  readonly event?: EventFields;
  /** A channel calls this function when the text has been written, or can no longer be written. */
  readonly onWritten?: () => void;
}

/** Header for a request that is refused because of a limit. The client may retry after 1 second. */
export const RETRY_AFTER = { "retry-after": "1" } as const;

/** Key under which an error stores headers for its HTTP response. */
export const REPLY_HEADERS: unique symbol = Symbol();

type Hinted = McpError & { readonly [REPLY_HEADERS]?: Reply["headers"] };

/** The error code of a refusal is -31000 minus the status. Returns `undefined` for any other error. */
export function toHints(error: Hinted): Pick<Reply, "status" | "headers"> | undefined {
  const status = -31_000 - error.code;
  const isBusy = status === 429 || status === 503;
  if (!isBusy && !error[REPLY_HEADERS]) return;
  const { retryAfterMs } = Object(error.data);
  const retry = isBusy && { "retry-after": `${Math.ceil(retryAfterMs / 1000) || 1}` };
  return { status, headers: { ...retry, ...error[REPLY_HEADERS] } };
}

/** Creates a link that belongs to the same client, but sends nothing. */
export function toSilent(
  { transport, inFlight, account, principal }: Pick<Link, "transport" | "inFlight" | "account" | "principal">,
): Link {
  const send = () => undefined;
  return { transport, inFlight, account, principal, streams: false, send, wait() {}, open() {}, release() {} };
}
