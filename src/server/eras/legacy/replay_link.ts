/**
 * The link of a resumable response. Writes messages as events of a stream.
 *
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 */
import { INVALID_REQUEST, McpError } from "../../../core/protocol/errors.ts";
import { type Batch, type Id, type Params, type Request, toFailure } from "../../../core/protocol/jsonrpc.ts";
import type { Account } from "../../capacity/account.ts";
import type { Principal } from "../../call/context.ts";
import type { InFlight } from "../../call/in_flight.ts";
import type { EventFields, HeaderReader, Link, LinkEvents, Reply } from "../../call/link.ts";
import type { HandlerCall, Reads } from "../../call/handler_call.ts";
import type { TransportName } from "../../call/observer.ts";
import { toHandlerCall, toHandlerCalls } from "./handler_calls.ts";
import { type Stream, type Streams, toEventId } from "./replay.ts";

const CANCELLED = new McpError(INVALID_REQUEST, "Cannot finish the call: the client cancelled it");

/** A request or a batch whose response is a stream that the client can resume, and its connection. */
export interface Streamed {
  readonly message: Request | Batch;
  readonly link: Link;
}

/** If the server sends a stream, the client can resume the stream over another connection. */
export class ReplayLink implements Link, LinkEvents {
  // Keeps the hidden class of these links in memory, as in `Call`. Without this object, a call in a session takes 6 %
  // more CPU time on Deno, measured with `deno task bench --against=REV --only W2 --pairs 40`.
  static readonly #model: ReplayLink = new ReplayLink(
    {} as { streams: Streams; account: Account }, // The casts are safe, because the model never runs.
    { message: {} as Request, link: {} as Link },
  );
  readonly transport: TransportName;
  readonly inFlight: InFlight;
  readonly http?: Link["http"];
  readonly headers?: HeaderReader;
  readonly version?: string | null;
  readonly principal?: Principal;
  readonly signal?: AbortSignal;
  readonly owner?: string;
  readonly streams: boolean;
  readonly #streams: Streams;
  readonly #session: Account;
  readonly #link: Link;
  // Keep no reference to the message, because the call may drop the message's text while it runs.
  readonly #method?: string;
  readonly #params?: Params;
  readonly #items?: readonly unknown[];
  #stream?: Stream;
  /** The resources that the handlers of the calls have read. */
  #reads?: Reads;
  #events?: LinkEvents;
  #isWaiting?: boolean;
  /** Whether the connection is about to close. */
  #isEnding?: boolean;

  /** Wraps the link of `message`. If the client of the link is unknown, the session's `account` is charged. */
  constructor(
    { id, streams, account }: { readonly id?: string; readonly streams: Streams; readonly account: Account },
    { message, link }: Streamed,
  ) {
    this.owner = id;
    this.#streams = streams;
    this.#session = account;
    this.#link = link;
    if (message.kind === "batch") this.#items = message.items;
    else {
      this.#method = message.method;
      this.#params = message.params;
    }
    this.transport = link.transport;
    this.inFlight = link.inFlight;
    this.http = link.http;
    this.headers = link.headers;
    this.version = link.version;
    this.principal = link.principal;
    this.signal = link.signal;
    this.streams = link.streams;
  }

  get peer(): string | undefined {
    return this.#link.peer;
  }

  get account(): Account {
    const { account } = this.#link;
    return account.key === undefined ? this.#session : account;
  }

  send(text: string): Promise<void> | undefined {
    if (!this.streams) return;
    this.wait();
    return this.#open().write(text);
  }

  wait(events?: LinkEvents): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#events = events;
    this.#link.wait(this);
  }

  // A stream that carries only the reply has no event id, so that clients do not try to resume the stream.
  opened(): EventFields | undefined {
    return this.#isEnding && !this.#stream ? undefined : this.#open().toOpening(0);
  }

  lost(): void {
    if (this.#stream?.reader === this.#link) this.#stream.disconnect();
    this.#events?.lost?.();
  }

  open(): void {
    this.wait();
    this.#link.open();
  }

  /**
   * Closes the connection. The client can resume the stream over another connection. Does nothing in revisions without
   * an empty first event, because clients of these revisions take the end of a connection for the end of the stream.
   */
  release(event?: EventFields): void {
    if (!this.streams || !this.#streams.hasPriming) return;
    this.open();
    this.#isEnding = true;
    if (this.#stream?.reader === this.#link) this.#stream.disconnect();
    this.#link.release(event);
  }

  waitUntil(work: Promise<unknown>): void {
    this.#link.waitUntil?.(work);
  }

  onRead(add: (reads: Reads | undefined) => Reads): void {
    const reads = add(this.#reads);
    if (reads === this.#reads) return;
    this.#reads = reads;
    this.#stream?.limit(this.#toCalls());
  }

  /**
   * Returns the reply for this connection, including its event id. Returns an empty reply if another connection has
   * resumed the stream.
   *
   * If the request `id` was cancelled, the client gets no response. A client that does not accept streams gets an error
   * instead.
   */
  finish(reply: Reply, id?: Id): Reply {
    const stream = this.#stream;
    const { text } = reply;
    this.#isEnding = true;
    if (!stream) {
      if (text !== undefined || id === undefined) return reply;
      if (!this.streams) return { text: toFailure(id, CANCELLED) };
      this.open();
      return reply;
    }
    if (stream.reader !== this.#link) {
      if (text !== undefined) stream.write(text);
      stream.end();
      return {};
    }
    if (text !== undefined) {
      this.#streams.keep(stream, text);
      stream.written = stream.last;
    }
    const event = { id: toEventId(stream.name, stream.last) };
    stream.end();
    return { ...reply, event };
  }

  // Find the calls only when the stream opens, because most calls send only a response.
  #toCalls(): readonly HandlerCall[] {
    const calls = this.#items ? toHandlerCalls(this.#items) : [toHandlerCall(this.#method ?? "", this.#params)];
    // The stream carries the replies of all calls, so it does not matter which handler has read a resource.
    return this.#reads ? calls.map((call) => ({ ...call, reads: this.#reads })) : calls;
  }

  #open(): Stream {
    if (this.#stream) return this.#stream;
    const { principal } = this;
    const stream = this.#stream = this.#streams.create({ calls: this.#toCalls(), principal });
    stream.connect(this.#link, () => this.#isEnding || this.#link.release());
    return stream;
  }
}
