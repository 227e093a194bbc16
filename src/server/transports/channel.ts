/**
 * A two-way channel for whole messages: stdio, a socket, or a connection within one process.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 */
import { INTERNAL_ERROR, INVALID_REQUEST, REACHED, UNAUTHENTICATED } from "../../core/protocol/errors.ts";
import { type Broken, type Incoming, toFailure } from "../../core/protocol/jsonrpc.ts";
import { NOT_UTF8, parseMessage, toMessage } from "../../core/protocol/message_parser.ts";
import type { Account } from "../capacity/account.ts";
import type { CallerChecks } from "../call/caller_watch.ts";
import type { ContainerHost } from "../call/container.ts";
import type { Principal } from "../call/context.ts";
import type { DevelopmentListener } from "../call/development.ts";
import type { Engine, Era } from "../engine/era.ts";
import { InFlight } from "../call/in_flight.ts";
import { INTERNALS } from "../../core/internals.ts";
import type { Link, LinkEvents, Reply } from "../call/link.ts";
import type { TransportName } from "../call/observer.ts";
import { readPrincipal } from "../call/principal.ts";

/** Writes a message. For backpressure, returns a promise that settles when the client has read more. */
export type Write = (text: string) => Promise<void> | undefined;

export interface Pipe {
  /**
   * Receives a message. For backpressure, returns a promise if the caller should wait before it reads the next message.
   * Set `principal` if each message has its own credentials. The id of `principal` must equal the id of the channel's
   * principal, but the scopes can differ.
   */
  receive(text: string, principal?: Principal): Promise<void> | undefined;
  /** Sends the error for a line that is too long (`"long"`), or that is not UTF-8 (`"encoding"`). */
  reject(problem: "long" | "encoding"): Promise<void> | undefined;
  /** Maximum size of a message, in bytes. */
  readonly lineBytes: number;
  /**
   * The account to which the client's use is charged.
   *
   * @internal
   */
  readonly account: Account;
  /**
   * Calls `end` when the caller's credentials expire or are revoked. Returns a function that stops the checks.
   *
   * @internal
   */
  watchCaller(checks: CallerChecks | undefined, end: () => void): () => void;
  /** Number of messages whose reply is not written yet. */
  readonly unanswered: number;
  /** Settles when at most `count` messages are unanswered. */
  untilAnswered(count: number): Promise<void>;
  /** Ends all subscriptions. Settles when all messages are answered. */
  idle(): Promise<void>;
  /** Cancels all calls, and writes no more. With `error`, each unanswered request first gets this error message. */
  close(error?: string): void;
}

/**
 * A function that opens the server's end of a channel.
 *
 * @internal
 */
export type OpenPipe = (options: PipeOptions) => Pipe;

/**
 * Options of a channel. Without `account`, the principal identifies the client. Without `principal`, the client is
 * local: the client started the server, or runs in the same process.
 *
 * @internal
 */
export interface PipeOptions {
  readonly write: Write;
  readonly principal?: Principal;
  readonly account?: Account;
  readonly peer?: string;
  /** The transport, for observers. Defaults to `"memory"`. */
  readonly transport?: TransportName;
}

/** A server from `createServer`, for the functions that serve it, and for clients in the same process. */
export interface Served {
  /**
   * Internals that transports, clients and the test kit use.
   *
   * @ignore
   */
  readonly [INTERNALS]: {
    readonly openPipe?: OpenPipe;
    readonly served?: ServedParts;
    readonly host?: ContainerHost;
    readonly enter?: (params?: Readonly<Record<string, unknown>>) => Promise<Served>;
    readonly fetch?: unknown;
    readonly http?: { readonly path: string };
    develop?(listener: DevelopmentListener): () => void;
    load?(): Promise<void>;
  };
}

/**
 * The parts of a server that serve the messages of a channel.
 *
 * @internal
 */
export interface ServedParts {
  readonly engine: Engine;
  readonly era: Era;
}

/**
 * Returns the server to which a channel can be opened. If the path has parameters, returns the server of a concrete
 * path.
 *
 * @throws {TypeError} if path parameters are missing or invalid, or if `pathParams` is set and the path has no
 * parameters.
 */
export async function enterServer(
  server: Served,
  params?: Readonly<Record<string, unknown>>,
): Promise<Served> {
  const { enter } = server[INTERNALS];
  if (enter) return await enter(params);
  if (!params) return server;
  throw new TypeError("Cannot open a channel to the server: its path has no parameters; omit pathParams");
}

/**
 * Opens the server's end of a channel. This function is not a method of the server, so that an HTTP server does not
 * load the code of channels.
 *
 * @throws {TypeError} if the principal is invalid, or `server` does not come from `createServer`.
 */
export function openPipe(server: Served, options: PipeOptions): Pipe {
  const { openPipe, served } = server[INTERNALS];
  const { principal } = options;
  const read = principal === undefined ? options : { ...options, principal: readPrincipal(principal, "the channel") };
  if (openPipe) return openPipe(read);
  if (served) return new Channel(served, read);
  throw new TypeError("Cannot open a channel: the object is not a server; pass a server from createServer()");
}

interface Waiting {
  readonly count: number;
  readonly resolve: () => void;
}

/** An open channel, which is also the link of all messages that have no credentials of their own. */
// Bound: `calls.runningPerClient`, because the channel is read no further.
class Channel implements Pipe, Link {
  readonly transport: TransportName;
  readonly inFlight: InFlight = new InFlight();
  principal?: Principal;
  readonly peer?: string;
  readonly streams = true;
  readonly #engine: Engine;
  readonly #era: Era;
  readonly #write: Write;
  #reportEnd?: (why: "disconnected") => void;
  /** The account of the channel. An account without a key is used only by this channel. */
  readonly #own: Account;
  #owner?: string;
  #waiting: Waiting[] = [];
  readonly #losers: (() => void)[] = [];
  readonly #unanswered = new Set<Incoming>();
  #isOpen = true;
  #room?: Promise<void>;

  constructor({ engine, era }: ServedParts, { write, principal, account, peer, transport = "memory" }: PipeOptions) {
    this.transport = transport;
    this.#engine = engine;
    this.#era = era;
    this.#write = write;
    this.principal = principal;
    this.peer = peer;
    this.#reportEnd = engine.core.observing?.openStream(transport);
    const key = account ? account.key : principal && `principal ${principal.id}`;
    const isOwn = account && (key !== undefined || engine.tenant === undefined);
    engine.host.lives?.start(false);
    this.#own = isOwn ? account : engine.accounts.find(key, engine.tenant);
  }

  get owner(): string {
    return this.#owner ??= crypto.randomUUID();
  }

  get account(): Account {
    const { key } = this.#own;
    return key === undefined ? this.#own : this.#engine.accounts.find(key, this.#engine.tenant);
  }

  watchCaller(checks: CallerChecks | undefined, end: () => void): () => void {
    const onRenewed = (principal: Principal) => void (this.principal = principal);
    return this.#engine.core.callers.watch({ principal: this.principal, checks, onRenewed }, end);
  }

  get unanswered(): number {
    return this.#unanswered.size;
  }

  get lineBytes(): number {
    return this.#engine.core.limits.request.lineBytes;
  }

  receive(text: string, principal = this.principal): Promise<void> | undefined {
    if (!this.#isOpen) return;
    const { limits, observing } = this.#engine.core;
    observing?.message("in", this, text);
    const link = principal === this.principal ? this : new MessageLink(this, principal);
    this.#accept(parseMessage(text, limits.request), link);
    // Backpressure: stop reading from a client that does not read its responses, or whose queue of calls is full.
    if (!this.#engine.scheduler.waiting) return this.#room;
    const { account } = this;
    return account.waiting.size >= limits.calls.runningPerClient ? account.untilRoom() : this.#room;
  }

  reject(problem: "long" | "encoding"): Promise<void> | undefined {
    this.#accept(problem === "long" ? tooLong(this.lineBytes) : NOT_UTF8);
    return this.#room;
  }

  idle(): Promise<void> {
    this.inFlight.endSubscriptions();
    return this.untilAnswered(0);
  }

  untilAnswered(count: number): Promise<void> {
    if (this.unanswered <= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }

  close(error?: string): void {
    if (error !== undefined) this.#refuseUnanswered(error);
    this.#reportEnd?.("disconnected");
    this.#reportEnd = undefined;
    this.#isOpen = false;
    this.inFlight.end();
    this.#losers.splice(0).forEach((lost) => lost());
  }

  send(text: string): Promise<void> | undefined {
    if (!this.#isOpen) return;
    this.#engine.core.observing?.message("out", this, text);
    return this.#write(text);
  }

  wait(events?: LinkEvents): void {
    if (!events?.lost) return;
    this.#isOpen ? this.#losers.push(events.lost) : events.lost();
  }

  open(): void {}

  release(): void {}

  #accept(message: Incoming, link: Link = this): void {
    const fail = (error: unknown) =>
      toFailure(message.kind === "request" ? message.id : undefined, this.#engine.core.report(error));
    let reply;
    try {
      if (this.#isLate(link)) {
        return this.#answer(message.kind === "request" ? toFailure(message.id, EXPIRED) : undefined);
      }
      reply = this.#era.accept(message, link);
    } catch (error) {
      return this.#answer(fail(error));
    }
    if (!(reply instanceof Promise)) return this.#finish(reply);
    this.#unanswered.add(message);
    reply.then((reply) => this.#end(message, reply), (error) => this.#end(message, { text: fail(error) }));
  }

  // Check the expiry of the credentials for each message, because the transport may have no timer that ends the
  // channel.
  #isLate({ principal }: Link): boolean {
    return principal?.expiresAt !== undefined && principal.expiresAt <= this.#engine.core.ticker.clock.date();
  }

  #refuseUnanswered(message: string): void {
    const { request } = this.#engine.core.limits;
    const refuse = (each: Incoming): string | undefined => {
      if (each.kind === "request") return toFailure(each.id, { code: INTERNAL_ERROR, message });
      if (each.kind !== "batch") return;
      const texts = each.items.flatMap((item) => refuse(toMessage(item, request)) ?? []);
      return texts.length ? `[${texts.join(",")}]` : undefined;
    };
    for (const each of this.#unanswered) this.#answer(refuse(each));
  }

  #end(message: Incoming, reply: Reply): void {
    this.#finish(reply);
    this.#unanswered.delete(message);
    if (this.#waiting.length) this.#resume();
  }

  #resume(): void {
    const isDone = ({ count }: Waiting) => this.unanswered <= count;
    for (const { resolve } of this.#waiting.filter(isDone)) resolve();
    this.#waiting = this.#waiting.filter((each) => !isDone(each));
  }

  #finish({ text, onWritten }: Reply): void {
    this.#answer(text);
    onWritten?.();
  }

  #answer(text: string | undefined): void {
    if (text === undefined || !this.#isOpen) return;
    const wait = this.send(text);
    if (!wait || this.#room) return;
    this.#room = wait.finally(() => {
      this.#room = undefined;
    });
  }
}

const EXPIRED = { code: UNAUTHENTICATED, message: "Cannot serve the request: the credentials have expired" };

class MessageLink implements Link {
  readonly principal?: Principal;
  readonly #channel: Channel;

  constructor(channel: Channel, principal?: Principal) {
    this.#channel = channel;
    this.principal = principal;
  }

  get transport(): TransportName {
    return this.#channel.transport;
  }

  get peer(): string | undefined {
    return this.#channel.peer;
  }

  get owner(): string {
    return this.#channel.owner;
  }

  get inFlight(): InFlight {
    return this.#channel.inFlight;
  }

  get account(): Account {
    return this.#channel.account;
  }

  get streams(): boolean {
    return this.#channel.streams;
  }

  send(text: string): Promise<void> | undefined {
    return this.#channel.send(text);
  }

  wait(events?: LinkEvents): void {
    this.#channel.wait(events);
  }

  open(): void {}

  release(): void {}
}

function tooLong(bytes: number): Broken {
  const limit = "request.lineBytes";
  return {
    kind: "broken",
    code: INVALID_REQUEST,
    message: `Cannot read the message: the line is longer than ${bytes} bytes (${limit})`,
    [REACHED]: limit,
  };
}
