/**
 * The legacy era: translates revisions with a handshake and sessions to calls.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { INVALID_REQUEST, isMcpError, McpError, toBusy } from "../../protocol/errors.ts";
import {
  type Batch,
  type Broken,
  type Id,
  type Incoming,
  isId,
  isObject,
  type Notification,
  type Request,
  type Response,
  toFailure,
  toNotification,
  toSuccess,
} from "../../protocol/jsonrpc.ts";
import { countIndexes, toWeight } from "../../protocol/weight.ts";
import { watchCaller } from "../../core/caller_watch.ts";
import { Call } from "../../core/call.ts";
import type { Change } from "../../core/changes.ts";
import type { Engine, Era } from "../../core/era.ts";
import type { Outcome } from "../../core/feature.ts";
import type { InFlight } from "../../core/in_flight.ts";
import { type Link, type Reply, toHints } from "../../core/link.ts";
import { wantsLevel } from "../../core/log.ts";
import type { RequestReport } from "../../core/observer.ts";
import { type Dialect, Pipeline } from "../../core/pipeline.ts";
import { readSessionData } from "../../core/session_data.ts";
import { countSubscriber, createNotifier, mayNotify } from "../../core/watching.ts";
import { refuse, refuseBusy, toErrorReply, toFacts, UNKNOWN_SESSION } from "./error_replies.ts";
import { readOffer, toAgreement } from "./handshake.ts";
import type { HttpSession, Sessions } from "./session.ts";
import { type DialectParts, SessionCarrier, SessionDialect } from "./session_dialect.ts";
import {
  announce,
  createSession,
  endSubscriptions,
  type Session,
  type SessionFacts,
  toShortId,
} from "./session_state.ts";
import { isVersion, toNoId, UNSTATED_VERSION, VERSIONS } from "./versions.ts";

/** Creates the era of the revisions up to 2025-11-25. */
export function legacyEra(engine: Engine): Era {
  return new LegacyEra(engine);
}

/** A message that could be parsed. */
type Readable = Exclude<Incoming, Broken>;

/** A message and where it came from. */
interface Received {
  readonly message: Readable;
  readonly link: Link;
}

/** A request and where it came from. */
interface ReceivedRequest extends Received {
  readonly message: Request;
}

/** A session over HTTP, or the reply if it is not found. */
type FoundSession =
  | { readonly session: HttpSession; readonly refusal?: undefined }
  | { readonly session?: undefined; readonly refusal: Reply };

/** A session that is being opened. */
interface Opening {
  /** The response to `initialize`. */
  readonly reply: Promise<Reply>;
  /** Number of messages that wait for it. */
  waiting: number;
}

/** Maximum number of messages that wait for the response to `initialize`. */
const MAX_EARLY = 8;

class LegacyEra implements Era {
  readonly #engine: Engine;
  /**
   * Sessions over HTTP, loaded with the first request that needs them. Without them, stdio starts in two thirds of the
   * time.
   */
  #sessions?: Sessions;
  #loading?: Promise<Sessions>;
  /** Sessions on stdio and sockets. They end with their connection. */
  readonly #piped = new Map<InFlight, Session>();
  /** Sessions on stdio and sockets that are being opened. */
  readonly #opening = new Map<InFlight, Opening>();
  readonly #onChange = (change: Change): void => this.#announce(change);
  readonly #parts: DialectParts;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#parts = {
      engine,
      pipeline: new Pipeline(engine),
      release: ({ link }, retryMs) => {
        if (this.#sessions?.isWrapped(link)) link.release(retryMs === undefined ? undefined : { retry: retryMs });
      },
    };
  }

  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    if (message.kind === "broken") {
      this.#engine.core.observing?.refuse(link, { ...toFacts(message), status: 400, reason: "message" });
      return { text: toFailure(message.id ?? toNoId(this.#versionOf(link)), message), status: 400 };
    }
    const { http, headers, version } = link;
    if (typeof version === "string" && !isVersion(version)) {
      const supported = VERSIONS.join(", ");
      const state = `MCP-Protocol-Version must be one of ${supported}`;
      return refuse(this.#engine.core, link, { message, version, status: 400, state, reason: "revision" });
    }
    const id = headers?.get("mcp-session-id");
    if (message.kind === "request" && message.method === "initialize") {
      return http ? this.#initialize(message, link, id) : this.#initializePiped(message, link);
    }
    if (!http) return this.#acceptPiped(message, link);
    if (typeof id !== "string") return this.#acceptBare(message, link);
    const session = this.#sessions?.find(id, link);
    return session && this.#sessions
      ? this.#serveReplayed(this.#sessions, session, { message, link })
      : this.#openAndServe(id, message, link);
  }

  /** The revision that a client speaks, before its message is read. */
  #versionOf(link: Link): string | null | undefined {
    const id = link.headers?.get("mcp-session-id");
    const session = link.http ? id ? this.#sessions?.find(id, link) : undefined : this.#piped.get(link.inFlight);
    return session ? session.client.version : link.version;
  }

  async attach(link: Link): Promise<Reply> {
    const { session, refusal } = await this.#find(link);
    if (!session) return refusal;
    const { account } = link;
    // The client can open it again, and continue with the last event that it has.
    const stream = account.openStream(() => {
      link.release();
      return true;
    });
    if (!stream) {
      const problem = "open the stream: too many are open (streams.open, streams.openPerClient)";
      return refuseBusy(this.#engine.core, link, session.client, toBusy(problem));
    }
    const { principal, http } = link;
    const caller = { principal, recheck: http?.toRecheck?.(principal) };
    const stopExpiry = watchCaller(this.#engine.core.ticker, caller, () => link.release());
    try {
      await session.streams.attach(link, link.headers?.get("last-event-id") ?? null);
      return {};
    } catch (error) {
      if (!isMcpError(error)) throw error;
      this.#engine.core.observing?.refuse(link, { ...toFacts(error), status: 400, reason: "session" });
      return { text: toFailure(toNoId(session.client.version), error), status: 400 };
    } finally {
      stream.end();
      stopExpiry();
    }
  }

  async detach(link: Link): Promise<Reply> {
    const { headers, version } = link;
    const id = headers?.get("mcp-session-id");
    if (typeof id !== "string") return this.#refuseBare(link);
    const { core } = this.#engine;
    try {
      switch (await (await this.#openSessions()).close(id, link)) {
        case "ended":
          return { status: 204 };
        case "waiting":
          throw toBusy("end the session at all instances: the store does not answer, and the end waits for it");
        case "full":
          throw toBusy("end the session: too many ends wait for the store, so it goes on");
        case "unknown":
          return refuse(core, link, { ...UNKNOWN_SESSION, version });
      }
    } catch (error) {
      return refuseBusy(core, link, { version }, error);
    }
  }

  rest(): void {
    this.#sessions?.rest();
  }

  async #find(link: Link): Promise<FoundSession> {
    const { headers, version } = link;
    const id = headers?.get("mcp-session-id");
    if (typeof id !== "string") return { refusal: this.#refuseBare(link) };
    this.#engine.changes.listeners.add(this.#onChange);
    const sessions = await this.#openSessions();
    try {
      const session = await sessions.open(id, link);
      return session ? { session } : { refusal: refuse(this.#engine.core, link, { ...UNKNOWN_SESSION, version }) };
    } catch (error) {
      return { refusal: refuseBusy(this.#engine.core, link, { version }, error) };
    }
  }

  async #openSessions(): Promise<Sessions> {
    const count = (session: Session, uri: string) => countSubscriber(this.#engine, uri, this.#sessionCallOf(session));
    const { core, accounts } = this.#engine;
    const parts = { core, accounts, count };
    const load = async () => new (await import("./session.ts")).Sessions(parts);
    try {
      return this.#sessions = await (this.#loading ??= load());
    } catch (error) {
      // A later attempt may succeed.
      this.#loading = undefined;
      throw error;
    }
  }

  async #openAndServe(id: string, message: Readable, link: Link): Promise<Reply> {
    const { version } = link;
    let session;
    this.#engine.changes.listeners.add(this.#onChange);
    const sessions = await this.#openSessions();
    try {
      session = await sessions.open(id, link);
    } catch (error) {
      return refuseBusy(this.#engine.core, link, { message, version }, error);
    }
    return session
      ? await this.#serveReplayed(sessions, session, { message, link })
      : refuse(this.#engine.core, link, { ...UNKNOWN_SESSION, message, version });
  }

  #initializePiped(message: Request, link: Link): Promise<Reply> {
    const { inFlight } = link;
    const reply = this.#initialize(message, link, undefined).finally(() => {
      if (this.#opening.get(inFlight) === opening) this.#opening.delete(inFlight);
    });
    const opening: Opening = { reply, waiting: 0 };
    this.#opening.set(inFlight, opening);
    return reply;
  }

  // Some clients send more before they have the response to `initialize`.
  async #acceptAfter(opening: Opening, message: Readable, link: Link): Promise<Reply> {
    const { account } = link;
    const bytes = weigh(message);
    if (!account.hold(bytes)) {
      const problem = "serve the request: too much memory is used (memory.bytesPerClient, memory.bytes)";
      return refuseBusy(this.#engine.core, link, { message }, toBusy(problem));
    }
    opening.waiting++;
    try {
      await opening.reply;
    } finally {
      account.free(bytes);
    }
    // The response is written first.
    for (let turns = 8; turns; turns--) await undefined;
    return await this.#acceptPiped(message, link);
  }

  #acceptPiped(message: Readable, link: Link): Reply | Promise<Reply> {
    const session = this.#piped.get(link.inFlight);
    if (session) return this.#serve(session, message, link);
    const opening = this.#opening.get(link.inFlight);
    if (opening && opening.waiting < MAX_EARLY) return this.#acceptAfter(opening, message, link);
    // On stdio and sockets, a cancellation does not show which era it belongs to.
    if (message.kind === "notification") {
      this.#observe(message, link);
      return takeNotification(link.inFlight, message);
    }
    if (message.kind === "request" && message.method === "ping") return this.#serve(this.#toBare(link), message, link);
    return refuse(this.#engine.core, link, { message, status: 400, state: "initialize first", reason: "session" });
  }

  // Some clients lose their session id. Each of their requests is served by itself, as if the client had no
  // capabilities.
  #acceptBare(message: Readable, link: Link): Reply | Promise<Reply> {
    if (this.#engine.core.requiresSession) return this.#refuseBare(link, message);
    return this.#serve(this.#toBare(link), message, link);
  }

  #toBare({ inFlight, account, principal, version, transport }: Link): Session {
    const client = { version: isVersion(version) ? version : UNSTATED_VERSION, capabilities: {} };
    return createSession(this.#engine.core, client, {
      account,
      notify: () => {},
      caller: principal,
      inFlight,
      transport,
    });
  }

  #refuseBare(link: Link, message?: Readable): Reply {
    const rejected = { message, version: link.version, reason: "session" } as const;
    if (this.#engine.core.requiresSession) {
      return refuse(this.#engine.core, link, {
        ...rejected,
        status: 400,
        state: "it has no Mcp-Session-Id; initialize first",
      });
    }
    const state = "without an Mcp-Session-Id, use POST";
    return { ...refuse(this.#engine.core, link, { ...rejected, status: 405, state }), headers: { allow: "POST" } };
  }

  async #initialize(message: Request, link: Link, id: string | null | undefined): Promise<Reply> {
    const { core, changes } = this.#engine;
    const observed = core.observing?.observe(message, link);
    changes.listeners.add(this.#onChange);
    // Over HTTP, the first request in the session connects.
    const ready = link.http ? undefined : changes.connect?.();
    if (ready) await ready;
    try {
      const isKnown = link.http && typeof id === "string" && await (await this.#openSessions()).open(id, link);
      if (isKnown) throw toKnown();
      const client = readOffer(message.params);
      observed?.identify(client);
      await core.admit?.({ method: message.method, link, client, observed });
      const runs = core.hasMiddleware || core.session;
      if (!runs) observed?.start();
      const home: Pick<Session, "data"> = {};
      const outcome = runs
        ? await this.#agree({ message, link }, client, { home, observed })
        : { result: toAgreement(this.#engine, client) };
      if (!outcome) {
        observed?.cancel();
        return {};
      }
      // Without status 400, because clients would then fall back to the HTTP+SSE transport.
      if (outcome.error) return toErrorReply(message, outcome.error, observed);
      if (!link.http && this.#piped.has(link.inFlight)) throw toKnown();
      const text = toSuccess(message.id, JSON.stringify(outcome.result));
      if (link.http) {
        const sessions = await this.#openSessions();
        const headers = { "mcp-session-id": await sessions.create(client, link, home.data?.[0]) };
        observed?.succeed(outcome.result);
        return { text, headers };
      }
      const { inFlight, account, principal, transport } = link;
      const notify = createNotifier((text) => link.send(text));
      const session = createSession(core, client, { account, notify, caller: principal, inFlight, transport });
      session.data = home.data;
      this.#piped.set(inFlight, session);
      announce(core, session, "created");
      link.wait({ lost: () => this.#endPiped(session) });
      observed?.succeed(outcome.result);
      return { text };
    } catch (error) {
      const known = isMcpError(error) ? error : core.report(error, { method: message.method });
      const { status = 400, headers } = toHints(known) ?? {};
      observed?.fail(known, status);
      return { text: toFailure(message.id, known), status, headers };
    }
  }

  // The response has the session id in a header, so no stream may start before it.
  async #agree(
    { message, link }: ReceivedRequest,
    client: SessionFacts,
    { home, observed }: { readonly home: Pick<Session, "data">; readonly observed?: RequestReport },
  ): Promise<Outcome> {
    const { http, headers, version } = link;
    const carrier = new SessionCarrier(this.#parts, home);
    const call = new Call(carrier, { ...toSilent(link), http, headers, version }, message, client);
    if (observed) call.observe(observed, undefined);
    const run = () => {
      const data = readSessionData(this.#engine.core, call);
      if (data !== undefined) home.data = [data];
      return toAgreement(this.#engine, client);
    };
    return await this.#engine.scheduler.run(call, { run });
  }

  #endPiped(session: Session): void {
    const { inFlight, account, held } = session;
    this.#piped.delete(inFlight);
    account.free(held);
    announce(this.#engine.core, session, "ended", "disconnected");
    endSubscriptions(session);
  }

  // A response that becomes a stream can be resumed over another connection. The responses of a batch share one stream.
  #serveReplayed(sessions: Sessions, session: HttpSession, { message, link }: Received): Reply | Promise<Reply> {
    if (message.kind !== "request" && message.kind !== "batch") return this.#serve(session, message, link);
    const replayed = sessions.wrap(session, link);
    const reply = this.#serve(session, message, replayed);
    const id = message.kind === "request" ? message.id : findId(message);
    return reply instanceof Promise ? reply.then((reply) => replayed.finish(reply, id)) : replayed.finish(reply, id);
  }

  #serve(session: Session, message: Readable, link: Link): Reply | Promise<Reply> {
    switch (message.kind) {
      case "request":
        return this.#parts.pipeline.answer(this.#dialectOf(session), message, link);
      case "batch":
        return this.#serveBatch(session, message, link);
      case "response":
        return session.requests.answer(message) ? {} : this.#relay(session, message, link);
      case "notification":
        this.#observe(message, link, session);
        return session.inFlight.notify(message) ? {} : this.#relay(session, message, link);
    }
  }

  // The call that the message is about may run on another instance.
  #relay({ client, shared }: Session, message: Response | Notification, link: Link): Reply | Promise<Reply> {
    if (!shared) return {};
    const busy = () => toBusy("pass the message on: the client has sent too many to other instances");
    return shared.relay(message).then((isDone) => isDone ? {} : refuseBusy(this.#engine.core, link, client, busy()));
  }

  #observe({ method }: Notification, link: Link, session?: Session): void {
    const { id, client } = session ?? {};
    this.#engine.core.observing?.notify(method, link, { ...client, session: id && toShortId(id) });
  }

  #dialectOf(session: Session): Dialect {
    return session.dialect ??= new SessionDialect(this.#parts, session);
  }

  // Loaded on demand, because one revision only has batches.
  async #serveBatch(session: Session, batch: Batch, link: Link): Promise<Reply> {
    const { serveBatch } = await import("./batch.ts");
    const serve = (message: Readable) => this.#serve(session, message, link);
    return await serveBatch({ core: this.#engine.core, session, link, batch, serve });
  }

  // Subscribes to changes only once a client is connected, so that earlier changes start no timer.
  #announce(change: Change): void {
    const text = toAnnouncement(change);
    for (const session of [...this.#sessions?.known ?? [], ...this.#piped.values()]) {
      if (change.kind === "log") {
        const { client, caller } = session;
        if (wantsLevel(client, change.level) && change.to({ client, principal: caller })) session.notify(text, "log");
        continue;
      }
      // Responses of running calls have their own streams.
      if (change.kind === "close") this.#endWith(session);
      else if (change.kind === "list" || session.watched.has(change.uri)) this.#notify(session, change, text);
    }
  }

  #endWith(session: Session): void {
    session.streams?.disconnect();
    announce(this.#engine.core, session, "ended", "closing");
    endSubscriptions(session);
  }

  #sessionCallOf(session: Session): Call {
    return session.sessionCall ??= this.#toSessionCall(session);
  }

  #notify(session: Session, change: Change, text: string): void {
    const seen = mayNotify(this.#engine, change, this.#sessionCallOf(session));
    if (seen === true) session.notify(text);
    else if (seen) seen.then((seen) => seen && session.notify(text));
  }

  /** Creates a call that represents the session's client between its requests. `allow` decides on it. */
  #toSessionCall(session: Session): Call {
    const { client, caller: principal, inFlight, account, transport } = session;
    const link = toSilent({ inFlight, account, principal, transport });
    const message: Request = { kind: "request", id: 0, method: "notifications", weight: 0 };
    return new Call(this.#dialectOf(session).carrier, link, message, client);
  }
}

/** A link to the same client over which nothing is sent. */
function toSilent(
  { transport, inFlight, account, principal }: Pick<Link, "transport" | "inFlight" | "account" | "principal">,
): Link {
  const send = () => undefined;
  return { transport, inFlight, account, principal, streams: false, send, wait() {}, open() {}, release() {} };
}

function toKnown(): McpError {
  return new McpError(INVALID_REQUEST, "Cannot initialize: this session is initialized already");
}

/** Returns the bytes of memory that a message takes. */
function weigh(message: Readable): number {
  if ("weight" in message) return message.weight;
  const text = JSON.stringify(message);
  return toWeight(text, { max: 0, indexes: countIndexes(text) });
}

function takeNotification(inFlight: InFlight, notification: Notification): Reply {
  inFlight.notify(notification);
  return {};
}

/** The id of the first request of a batch. */
function findId({ items }: Batch): Id | undefined {
  for (const item of items) if (isObject(item) && "method" in item && isId(item.id)) return item.id;
}

function toAnnouncement(change: Change): string {
  if (change.kind === "close") return "";
  if (change.kind === "log") return change.text;
  return change.kind === "list"
    ? toNotification(`notifications/${change.feature}/list_changed`)
    : toNotification("notifications/resources/updated", { uri: change.uri });
}
