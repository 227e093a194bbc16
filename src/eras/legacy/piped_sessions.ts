/**
 * Sessions on stdio and sockets. Each session ends with its connection.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { toBusy } from "../../protocol/errors.ts";
import type { Incoming, Notification, Request } from "../../protocol/jsonrpc.ts";
import { countIndexes, toWeight } from "../../protocol/weight.ts";
import type { InFlight } from "../../core/call/in_flight.ts";
import type { Link, Reply } from "../../core/call/link.ts";
import { createNotifier } from "../../core/watching.ts";
import { refuse, refuseBusy } from "./error_replies.ts";
import { initialize, toKnown } from "./initialize.ts";
import type { MessageServer, Readable } from "./message_server.ts";
import type { DialectParts } from "./legacy_call.ts";
import { announce, createSession, endSubscriptions, type Session, type SessionFacts } from "./session_state.ts";

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

export class PipedSessions {
  readonly #parts: DialectParts;
  readonly #server: MessageServer;
  readonly #known = new Map<InFlight, Session>();
  /** Sessions whose response to `initialize` is not written yet. */
  readonly #opening = new Map<InFlight, Opening>();

  constructor(parts: DialectParts, server: MessageServer) {
    this.#parts = parts;
    this.#server = server;
  }

  get known(): Iterable<Session> {
    return this.#known.values();
  }

  find({ inFlight }: Link): Session | undefined {
    return this.#known.get(inFlight);
  }

  /** Serves `initialize`. */
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

  #open(client: SessionFacts, link: Link, data: Session["data"]): undefined {
    if (this.#known.has(link.inFlight)) throw toKnown();
    const { core } = this.#parts.engine;
    const { inFlight, account, principal, transport } = link;
    const notify = createNotifier((text) => link.send(text));
    const session = createSession(core, client, { account, notify, caller: principal, inFlight, transport });
    session.data = data;
    this.#known.set(inFlight, session);
    announce(core, session, "created");
    link.wait({ lost: () => this.#end(session) });
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
    const session = this.#known.get(link.inFlight);
    if (session) return this.#server.serve(session, message, link);
    // Without a session, pass notifications only to the connection, because a notification, such as a cancellation,
    // does not show to which era its call belongs.
    if (message.kind === "notification") {
      this.#server.observe(message, link);
      return takeNotification(link.inFlight, message);
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

  #end(session: Session): void {
    const { inFlight, account, held } = session;
    this.#known.delete(inFlight);
    account.free(held);
    announce(this.#parts.engine.core, session, "ended", "disconnected");
    endSubscriptions(session);
  }
}

/** Returns the memory that a message takes, in bytes. */
function weigh(message: Incoming): number {
  if ("weight" in message) return message.weight;
  const text = JSON.stringify(message);
  return toWeight(text, { max: 0, indexes: countIndexes(text) });
}

function takeNotification(inFlight: InFlight, notification: Notification): Reply {
  inFlight.notify(notification);
  return {};
}
