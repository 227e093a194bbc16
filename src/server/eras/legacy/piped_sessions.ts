/**
 * Sessions on stdio and sockets. A session ends with its connection, or when the client initializes again.
 *
 * @see specification/2025-11-25/basic/lifecycle
 */
import { toBusy } from "../../../core/protocol/errors.ts";
import type { Incoming, Notification, Request } from "../../../core/protocol/jsonrpc.ts";
import { countIndexes, toWeight } from "../../../core/protocol/weight.ts";
import type { Account } from "../../capacity/account.ts";
import { CancelError } from "../../call/cancel_error.ts";
import type { Principal } from "../../call/context.ts";
import { InFlight } from "../../call/in_flight.ts";
import type { Link, LinkEvents, Reply } from "../../call/link.ts";
import type { SessionEvent, TransportName } from "../../call/observer.ts";
import { createNotifier } from "../../engine/watching.ts";
import { refuse, refuseBusy } from "./error_replies.ts";
import { initialize } from "./initialize.ts";
import type { MessageServer, Readable } from "./message_server.ts";
import type { DialectParts } from "./legacy_call.ts";
import { announce, createSession, endSubscriptions, type Session, type SessionInfo } from "./session_state.ts";

interface Opening {
  /** Callbacks that run once the response to `initialize` is written. */
  readonly waiting: (() => void)[];
}

/** A message that arrives before the response to `initialize` is written. */
interface Early {
  readonly message: Incoming;
  readonly link: Link;
}

/** Maximum number of messages that wait for the response to `initialize`. */
const MAX_EARLY = 8;

// Bound: one per connection.
export class PipedSessions {
  readonly #parts: DialectParts;
  readonly #server: MessageServer;
  /** The session of each connection, by the connection's running calls. */
  readonly #known = new Map<InFlight, PipedSession>();
  /** Sessions whose response to `initialize` is not written yet. */
  readonly #opening = new Map<InFlight, Opening>();

  constructor(parts: DialectParts, server: MessageServer) {
    this.#parts = parts;
    this.#server = server;
  }

  get known(): Iterable<Session> {
    return [...this.#known.values()].map(({ session }) => session);
  }

  find({ inFlight }: Link): Session | undefined {
    return this.#known.get(inFlight)?.session;
  }

  async initialize(message: Request, link: Link): Promise<Reply> {
    const { inFlight } = link;
    const opening: Opening = { waiting: [] };
    this.#opening.set(inFlight, opening);
    const reply = await initialize(this.#parts, { message, link }, {
      open: (client, { data }) => this.#open(client, link, data),
    });
    const onWritten = () => {
      if (this.#opening.get(inFlight) === opening) this.#opening.delete(inFlight);
      for (const serve of opening.waiting) serve();
    };
    return { ...reply, onWritten };
  }

  // A client that initializes again begins a new session, because some gateways connect several clients one after
  // another to the same process. The earlier session ends only now, so that a failed `initialize` does not end it.
  #open(client: SessionInfo, link: Link, data: Session["data"]): undefined {
    const { core } = this.#parts.engine;
    const { inFlight, account, principal, transport } = link;
    const before = this.#known.get(inFlight);
    if (before) this.#end(inFlight, before, "client");
    const scope = new SessionScope();
    const own = new SessionLink(scope, link);
    const session = createSession(core, client, {
      account,
      notify: createNotifier((text) => own.send(text)),
      caller: principal,
      inFlight: scope.inFlight,
      transport,
    });
    session.data = data;
    this.#known.set(inFlight, { session, scope, own, link });
    announce(core, session, "created");
    // Register one callback per connection, so that a client that initializes repeatedly uses no additional memory.
    if (!before) link.wait({ lost: () => this.#disconnect(inFlight) });
  }

  /**
   * Calls `serve` once the response to `initialize` is written, because some clients send messages before they receive
   * that response. Returns `undefined` if the message need not wait.
   */
  serveAfter(message: Incoming, link: Link, serve: () => Reply | Promise<Reply>): Promise<Reply> | undefined {
    const opening = this.#opening.get(link.inFlight);
    if (opening && opening.waiting.length < MAX_EARLY) return this.#serveAfter(opening, { message, link }, serve);
  }

  async #serveAfter({ waiting }: Opening, early: Early, serve: () => Reply | Promise<Reply>): Promise<Reply> {
    const { message, link } = early;
    const { account } = link;
    const bytes = weigh(message);
    if (!account.hold(bytes)) {
      const error = toBusy("serve the request: too much memory is used", "memory.bytesPerClient, memory.bytes");
      return refuseBusy(this.#parts.engine.core, link, { message }, error);
    }
    await new Promise<void>((release) => waiting.push(release));
    account.free(bytes);
    return await serve();
  }

  accept(message: Readable, link: Link): Reply | Promise<Reply> {
    const { inFlight } = link;
    // A message after `initialize` never belongs to the earlier session.
    const known = this.#opening.has(inFlight) ? undefined : this.#known.get(inFlight);
    if (known) return this.#serve(known, message, link);
    // Without a session, pass notifications only to the connection, because a notification, such as a cancellation,
    // does not show to which era its call belongs.
    if (message.kind === "notification") {
      this.#server.observe(message, link);
      return receiveNotification(inFlight, message);
    }
    if (message.kind === "request" && message.method === "ping") {
      return this.#server.serve(this.#server.toBare(link), message, link);
    }
    return refuse(this.#parts.engine.core, link, {
      message,
      status: 400,
      state: "initialize first",
      reason: "session",
    });
  }

  #serve({ session, scope, own, link: first }: PipedSession, message: Readable, link: Link): Reply | Promise<Reply> {
    const reply = this.#server.serve(session, message, link === first ? own : new SessionLink(scope, link));
    return reply instanceof Promise ? reply.then((reply) => scope.isOver ? {} : reply) : reply;
  }

  #disconnect(inFlight: InFlight): void {
    const known = this.#known.get(inFlight);
    if (known) this.#end(inFlight, known, "disconnected");
  }

  #end(inFlight: InFlight, { session, scope }: PipedSession, why: SessionEvent["why"]): void {
    const { account, held } = session;
    this.#known.delete(inFlight);
    scope.end(why === "disconnected" ? why : "session");
    account.free(held);
    announce(this.#parts.engine.core, session, "ended", why);
    endSubscriptions(session);
  }
}

interface PipedSession {
  readonly session: Session;
  readonly scope: SessionScope;
  readonly link: Link;
  readonly own: SessionLink;
}

/** The running calls of a session. When the session ends, they end too, and send nothing more. */
class SessionScope {
  readonly inFlight: InFlight = new InFlight();
  isOver = false;
  #owner?: string;

  /** Secret id of the session, which differs from the ids of earlier sessions on the same connection. */
  get owner(): string {
    return this.#owner ??= crypto.randomUUID();
  }

  end(why: "disconnected" | "session"): void {
    this.isOver = true;
    this.inFlight.end(new CancelError(why));
  }
}

/** Sends nothing after the session has ended. */
class SessionLink implements Link {
  readonly transport: TransportName;
  /** All running calls of the connection. */
  readonly inFlight: InFlight;
  readonly streams: boolean;
  readonly #scope: SessionScope;
  readonly #link: Link;

  constructor(scope: SessionScope, link: Link) {
    this.#scope = scope;
    this.#link = link;
    this.transport = link.transport;
    this.inFlight = link.inFlight;
    this.streams = link.streams;
  }

  get owner(): string {
    return this.#scope.owner;
  }

  get account(): Account {
    return this.#link.account;
  }

  get principal(): Principal | undefined {
    return this.#link.principal;
  }

  get peer(): string | undefined {
    return this.#link.peer;
  }

  send(text: string): Promise<void> | undefined {
    return this.#scope.isOver ? undefined : this.#link.send(text);
  }

  wait(events?: LinkEvents): void {
    this.#link.wait(events);
  }

  open(): void {}

  release(): void {}
}

/** Returns the memory that a message takes, in bytes. */
function weigh(message: Incoming): number {
  if ("weight" in message) return message.weight;
  const text = JSON.stringify(message);
  return toWeight(text, { max: 0, indexes: countIndexes(text) });
}

function receiveNotification(inFlight: InFlight, notification: Notification): Reply {
  inFlight.notify(notification);
  return {};
}
