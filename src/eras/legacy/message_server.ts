/**
 * Serves the messages of a session.
 *
 * @module
 */
import { toBusy } from "../../protocol/errors.ts";
import type { Batch, Broken, Incoming, Notification, Request, Response } from "../../protocol/jsonrpc.ts";
import type { Call } from "../../core/call/call.ts";
import { type Link, type Reply, toSilent } from "../../core/call/link.ts";
import type { Dialect } from "../../core/pipeline.ts";
import { serveBatch } from "./batch.ts";
import { refuseBusy } from "./error_replies.ts";
import type { DialectParts } from "./legacy_call.ts";
import { SessionDialect } from "./session_dialect.ts";
import { createSession, type Session, toShortId } from "./session_state.ts";
import { isVersion, UNSTATED_VERSION } from "./versions.ts";

/** A message that could be parsed. */
export type Readable = Exclude<Incoming, Broken>;

/** Serves the messages of sessions on every transport. */
export class MessageServer {
  readonly #parts: DialectParts;

  /** Creates what serves the sessions of an era. */
  constructor(parts: DialectParts) {
    this.#parts = parts;
  }

  /** Serves a message of a session. */
  serve(session: Session, message: Readable, link: Link): Reply | Promise<Reply> {
    switch (message.kind) {
      case "request":
        return this.#parts.pipeline.answer(this.#dialectOf(session), message, link);
      case "batch":
        return this.#serveBatch(session, message, link);
      case "response":
        return session.requests.answer(message) ? {} : this.#relay(session, message, link);
      case "notification":
        this.observe(message, link, session);
        return session.inFlight.notify(message) ? {} : this.#relay(session, message, link);
    }
  }

  // The call that the message is about may run on another instance.
  #relay({ client, shared }: Session, message: Response | Notification, link: Link): Reply | Promise<Reply> {
    if (!shared) return {};
    const busy = () => toBusy("pass the message on: the client has sent too many to other instances");
    return shared.relay(message).then((isDone) =>
      isDone ? {} : refuseBusy(this.#parts.engine.core, link, client, busy())
    );
  }

  /** Reports a notification. */
  observe({ method }: Notification, link: Link, session?: Session): void {
    const { id, client } = session ?? {};
    this.#parts.engine.core.observing?.notify(method, link, { ...client, session: id && toShortId(id) });
  }

  #dialectOf(session: Session): Dialect {
    return session.dialect ??= new SessionDialect(this.#parts, session);
  }

  #serveBatch(session: Session, batch: Batch, link: Link): Promise<Reply> {
    const serve = (message: Readable) => this.serve(session, message, link);
    return serveBatch({ core: this.#parts.engine.core, session, link, batch, serve });
  }

  /** Returns the call that represents the client of a session between its requests. */
  callOf(session: Session): Call {
    return session.sessionCall ??= this.#toSessionCall(session);
  }

  /** Creates a call that represents the session's client between its requests. `allow` decides on it. */
  #toSessionCall(session: Session): Call {
    const { client, caller: principal, inFlight, account, transport } = session;
    const link = toSilent({ inFlight, account, principal, transport });
    const message: Request = { kind: "request", id: 0, method: "notifications", weight: 0 };
    return this.#dialectOf(session).open(message, link, client);
  }
  /** Creates a session that ends with its only request. */
  toBare({ inFlight, account, principal, version, transport }: Link): Session {
    const client = { version: isVersion(version) ? version : UNSTATED_VERSION, capabilities: {} };
    return createSession(this.#parts.engine.core, client, {
      account,
      notify: () => {},
      caller: principal,
      inFlight,
      transport,
    });
  }
}
