/**
 * HTTP sessions in the memory of a process. The server restores a session from its sealed id.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 */
import { BoundedMap } from "../../../core/kit/bounded_map.ts";
import { INVALID_REQUEST, toBusy } from "../../../core/protocol/errors.ts";
import type { Notification, Response } from "../../../core/protocol/jsonrpc.ts";
import { toBytes } from "../../../core/protocol/weight.ts";
import type { Account, Accounts, Holding, Pot } from "../../capacity/account.ts";
import { CancelError } from "../../call/cancel_error.ts";
import { canStream } from "../../engine/announced.ts";
import type { Core } from "../../engine/core.ts";
import type { Link, Reply } from "../../call/link.ts";
import { withholdQuestions } from "../../call/question.ts";
import { keep } from "../../capacity/charges.ts";
import { toMarkTtl } from "../../engine/marking.ts";
import type { SessionEvent } from "../../call/observer.ts";
import type { SessionState, SharedSession } from "../../engine/store.ts";
import type { Sweep } from "../../../core/timers.ts";
import { freezeJson } from "../../call/session_data.ts";
import { mayCall } from "./call_access.ts";
import { LostMessages, SessionWatch } from "./lost_messages.ts";
import { type OpenedId, SessionIds } from "./session_ids.ts";
import { applyState, type CountSubscriber } from "./session_methods.ts";
import { Streams } from "./replay.ts";
import { refuseAccess } from "./error_replies.ts";
import type { DialectParts } from "./legacy_call.ts";
import { ReplayLink, type Streamed } from "./replay_link.ts";
import {
  announce,
  createSession,
  endSubscriptions,
  type Session,
  type SessionInfo,
  toShortId,
} from "./session_state.ts";
import { hasPriming } from "./versions.ts";

/** An HTTP session, which has an id and resumable streams. */
export interface HttpSession extends Session {
  readonly streams: Streams;
  /** The session's charge in the pot that limits the sessions in memory. */
  readonly place: Holding;
  /** The sessions of the endpoint on which the session was opened. */
  readonly home: Sessions;
}

/**
 * The result of a request to end a session. `"ended"`: the session has ended. `"waiting"`: the store has not confirmed
 * the end yet. `"full"`: too many sessions wait for this confirmation, so the session stays open. `"unknown"`: the
 * session does not exist.
 */
export type End = "ended" | "waiting" | "full" | "unknown";

export interface SessionsParts {
  readonly parts: DialectParts;
  readonly count: CountSubscriber;
}

interface Adding {
  readonly link: Link;
  readonly shared: SharedSession | undefined;
  /** Whether the request is a DELETE, which ends the session. */
  readonly isEnding: boolean;
}

/** The endpoints of a server share one table, so that each limit applies to the whole server. */
// Bound: `connections.sessions`, `sessions.ended`, and `calls.running` for requests that end a session.
class SessionTable {
  /** Sessions in memory, by id. The least recently used session is first. */
  readonly known: Map<string, HttpSession> = new Map();
  /** Counts the sessions in memory, per client. */
  readonly places: Pot;
  /** The ended sessions whose ids have not expired, by short id. */
  readonly ended: Set<string> = new Set();
  /** Counts the ended sessions, per client. */
  readonly endedPlaces: Pot;
  /** Ids of sessions that a request is ending. Other requests cannot open these sessions. */
  readonly ending: Set<string> = new Set();
  /** The most recently used session. Using this session again does not change the order of use. */
  newest?: HttpSession;
  sweep?: Sweep;

  constructor(accounts: Accounts, { limits: { sessions, connections } }: Core) {
    this.endedPlaces = accounts.pot({ name: "sessions.ended", total: ENDED, share: ENDED_PER_CLIENT, isCache: true });
    this.places = accounts.pot({
      name: "connections.sessions",
      total: connections.sessions,
      share: sessions.openPerClient,
      shareName: "sessions.openPerClient",
      isCache: true,
    });
  }
}

/**
 * The HTTP sessions of one endpoint. The sealed id contains everything that was negotiated, so that a client can
 * continue its session after a restart, and on any instance with the same secret. A session that is evicted from memory
 * does not end.
 */
export class Sessions {
  readonly #parts: DialectParts;
  readonly #core: Core;
  readonly #table: SessionTable;
  readonly #ids: SessionIds;
  readonly #lost?: LostMessages;
  /** Unused ids of this process, for which the observer receives "created" instead of "resumed". */
  readonly #unused: BoundedMap<string, void>;
  readonly #count: CountSubscriber;

  constructor({ parts, count }: SessionsParts) {
    const { engine, versions } = parts;
    const { core, accounts } = engine;
    this.#parts = parts;
    this.#core = core;
    this.#lost = LostMessages.of(core);
    this.#ids = new SessionIds(engine, versions, this.#lost);
    this.#table = core.state.slot(SessionTable, () => new SessionTable(accounts, core));
    this.#table.sweep ??= (now) => this.#tidy(now);
    this.#unused = new BoundedMap({ full: "evict", max: core.limits.connections.sessions });
    this.#count = count;
  }

  get known(): readonly HttpSession[] {
    return [...this.#table.known.values()].filter(({ home }) => home === this);
  }

  /** The ids of evicted sessions stay valid. */
  evictIdle(): void {
    for (const session of this.known) if (!isBusy(session)) this.#forget(session, "evicted");
  }

  /** Throws if the negotiated facts are too long. */
  async create(info: SessionInfo, link: Link, data?: unknown): Promise<string> {
    const id = await this.#ids.seal(info, { link, data });
    if (this.#core.observer.session) this.#unused.set(toShortId(id));
    return id;
  }

  /** Returns the session with this id if the session is in memory. */
  find(id: string, { principal }: Link): HttpSession | undefined {
    const session = this.#table.known.get(id);
    if (session?.home !== this || session.principal !== principal?.id) return;
    session.seen = this.#core.ticker.clock.now();
    session.caller = principal;
    if (session !== this.#table.newest) session.place.touch();
    this.#table.newest = session;
    return session;
  }

  /**
   * Returns `undefined` if the id is invalid or belongs to another principal, or if the session has expired or ended.
   * Throws if the server has no room for the session's state.
   */
  async open(id: string, link: Link, options?: { readonly isEnding?: boolean }): Promise<HttpSession | undefined> {
    const found = this.find(id, link);
    if (found) return found;
    const opened = await this.#ids.open(id, link);
    if (!opened) return;
    const isEnding = options?.isEnding ?? false;
    if (isEnding) this.#table.ending.add(id);
    const shared = await this.#core.shared?.openSession({ id, ms: opened.leftMs, account: link.account });
    try {
      return this.#add(id, opened, { link, shared, isEnding });
    } finally {
      // Disconnect the record if its session was not added, because such a record needs no notifications from the
      // store.
      if (shared && this.#table.known.get(id)?.shared !== shared) shared.leave();
    }
  }

  // Adds the session of an opened id, unless the session has ended or another request has added the session in the
  // meantime.
  #add(id: string, opened: OpenedId, { link, shared, isEnding }: Adding): HttpSession | undefined {
    const { leftMs, data } = opened;
    const info = canStream(this.#core, link) ? opened.info : withoutQuestions(opened.info);
    if (shared?.isEnded) return;
    // Two requests may open the same session concurrently. Both requests get the session that was added first. If that
    // session has ended, neither request gets a session.
    const raced = this.find(id, link);
    if (raced || this.#table.ended.has(toShortId(id))) return raced;
    if (!isEnding && this.#table.ending.has(id)) return;
    // Evict the session of an earlier endpoint object, which was dropped from memory while the session was busy.
    const before = this.#table.known.get(id);
    if (before) before.home.#forget(before, "evicted");
    const { ticker } = this.#core;
    const { account } = link;
    const place = this.#charge(id, account);
    const streams = new Streams(this.#core, hasPriming(info.version), account, shared);
    const session: HttpSession = {
      ...createSession(this.#core, info, {
        account,
        caller: link.principal,
        notify: (text, key) => streams.listener?.notify?.(text, key),
        transport: link.transport,
        shared,
        watch: this.#lost && new SessionWatch(this.#core, this.#lost, opened.isForeign),
      }),
      id,
      held: toHeld(id),
      place,
      ends: ticker.clock.now() + leftMs,
      streams,
      home: this,
    };
    if (data !== undefined) session.data = [freezeJson(data)];
    if (shared) this.#join(session, shared);
    if (!isEnding) shared?.touch();
    this.#table.known.set(id, session);
    this.#table.newest = session;
    announce(this.#core, session, this.#unused.delete(toShortId(id)) ? "created" : "resumed");
    this.#scheduleSweep();
    return session;
  }

  #scheduleSweep(): void {
    if (this.#table.sweep) this.#core.ticker.schedule(this.#table.sweep, SWEEP_MS);
  }

  // Apply the changes that other instances make to the session.
  #join(session: HttpSession, shared: SharedSession): void {
    const apply = (state: SessionState) => {
      try {
        applyState(session, state, { core: this.#core, count: this.#count });
      } catch {
        // This process has less free memory than the other instance had, so the session watches fewer resources here.
      }
    };
    apply(shared.state);
    shared.join({
      end: () => this.end(session, "client"),
      apply,
      receive(message) {
        // The casts are safe, because only instances of this server can seal messages, and `kind` determines the
        // message type.
        const { kind } = message as { readonly kind?: unknown };
        // The instance that received the response has checked the rights of its sender.
        if (kind === "response") session.requests.answer(message as Response); // see above
        if (kind === "notification") session.inFlight.notify(message as Notification); // see above
      },
      disconnectStream: (stream) => session.streams.disconnectStream(stream),
    });
  }

  /**
   * Serves a GET request that `admit` accepts. The request opens a standalone stream, or resumes a stream if the caller
   * may make the call to which the stream belongs. Returns when the connection should close.
   */
  async attach(session: HttpSession, link: Link): Promise<Reply> {
    const { client, streams, watch } = session;
    let stopWatching: (() => void) | undefined;
    try {
      await this.#core.admit?.({ method: "GET", link, client, pathParams: this.#core.pathParams });
      stopWatching = watch?.watchStream();
      const lastEvent = link.headers?.get("last-event-id") ?? null;
      await streams.attach(link, lastEvent, (calls) => mayCall(this.#parts, { session, link }, calls));
      return {};
    } catch (error) {
      return refuseAccess(this.#core, link, client, error);
    } finally {
      stopWatching?.();
    }
  }

  wrap(session: HttpSession, streamed: Streamed): ReplayLink {
    return new ReplayLink(session, streamed);
  }

  isWrapped(link: Link): boolean {
    return link instanceof ReplayLink;
  }

  /** Ends the session with this id on all instances, at the client's request. */
  async close(id: string, link: Link): Promise<End> {
    let session;
    try {
      session = await this.open(id, link, { isEnding: true });
      if (session?.shared?.reserveEnd() === false) return "full";
      if (session) this.end(session, "client");
    } finally {
      this.#table.ending.delete(id);
    }
    if (!session) return await this.#findEnd(id, link);
    return !session.shared || await session.shared.end() ? "ended" : "waiting";
  }

  // If the store did not confirm the end of a session, the client can retry the DELETE request.
  async #findEnd(id: string, link: Link): Promise<End> {
    const { shared } = this.#core;
    if (!shared || !await this.#ids.open(id, link)) return "unknown";
    return await shared.findEnd(id) ?? "unknown";
  }

  /** Ends a session permanently in this process, and cancels its calls. */
  end(session: HttpSession, why: "client" | "idle" | "expired"): void {
    this.#forget(session, why);
    this.#remember(session);
  }

  // Remembers an ended session until its id expires. If the client has ended too many sessions, forgets its oldest one.
  // Anyone with the id can then continue that session, which grants no more rights than a new session.
  #remember({ id = "", account, ends }: HttpSession): void {
    const { ended, endedPlaces } = this.#table;
    const short = toShortId(id);
    const ttlMs = toMarkTtl(Math.max(0, ends - this.#core.ticker.clock.now()));
    const charge = !ended.has(short) &&
      keep(this.#core, account, [[endedPlaces, 1]], { ttlMs, drop: () => ended.delete(short) });
    if (charge) ended.add(short);
  }

  // Charges the client for a session. At the limit, evicts another session.
  #charge(id: string, account: Account): Holding {
    const { places } = this.#table;
    const place = places.keep(account, 1, () => this.#drop(id));
    if (!place) {
      const limit = places.hasShare(account) ? "connections.sessions" : "sessions.openPerClient";
      throw toBusy("open the session: too many sessions are busy", limit);
    }
    if (account.hold(toHeld(id))) return place;
    place.end();
    throw toBusy("open the session: too much memory is used", "memory.bytesPerClient, memory.bytes");
  }

  // Evicts a session from memory, unless the session is busy. Its id stays valid.
  #drop(id: string): boolean {
    const session = this.#table.known.get(id);
    // A busy session moves to the end of the order of use, so `newest` is no longer the last session.
    this.#table.newest = undefined;
    if (!session || isBusy(session)) return false;
    session.home.#forget(session, "evicted");
    return true;
  }

  #forget(session: HttpSession, why: SessionEvent["why"]): void {
    announce(this.#core, session, "ended", why);
    if (why === "evicted") this.#lost?.recordEviction();
    endSubscriptions(session);
    const { id = "" } = session;
    if (session === this.#table.newest) this.#table.newest = undefined;
    if (this.#table.known.delete(id)) session.account.free(session.held);
    session.held = 0;
    session.place.end();
    session.shared?.leave();
    const text = "Cannot finish the call: the session has ended";
    // An evicted session has no running calls, so end only its streams.
    if (why === "evicted") return session.streams.end();
    session.inFlight.end(new CancelError("session", text, INVALID_REQUEST));
    session.streams.end();
  }

  #tidy(now: number): number | undefined {
    const { limits } = this.#core;
    for (const session of this.#table.known.values()) {
      if (isBusy(session)) session.seen = now;
      const isExpired = session.ends < now;
      if (isExpired || now - session.seen > limits.connections.sessionIdleMs) {
        this.#core.observing?.reach(isExpired ? "sessions.lifeMs" : "connections.sessionIdleMs", session.account.key);
        session.home.#retire(session, isExpired ? "expired" : "idle");
      } else if (session.shared && now - session.seen < SWEEP_MS) session.shared.touch();
      session.streams.sweep(now);
    }
    return this.#table.known.size ? SWEEP_MS : undefined;
  }

  // Do not end an idle session on other instances, because another instance may have used the session recently.
  #retire(session: HttpSession, why: "idle" | "expired"): void {
    if (!session.shared || why === "expired") return this.end(session, why);
    this.#forget(session, why);
    session.shared.retire();
  }
}

function withoutQuestions(info: SessionInfo): SessionInfo {
  return { ...info, capabilities: withholdQuestions(info.capabilities, NO_QUESTIONS) };
}

const NO_QUESTIONS = "in a session, requests to the client need event streams, which this server does not send " +
  "(streams: false); use a client of revision 2026-07-28, or a platform with streams";

const SWEEP_MS = 60_000;

/** Number of ended sessions that are remembered for all clients together, and for one client. */
const ENDED = 65_536;
const ENDED_PER_CLIENT = 256;

/** Estimated size of a session's state without its id, in bytes. Measurements gave 3,100 to 4,400 bytes. */
const SESSION_BYTES = 4096;

function toHeld(id: string): number {
  return SESSION_BYTES + 4 * toBytes(id);
}

function isBusy({ inFlight, streams }: HttpSession): boolean {
  return inFlight.size > 0 || streams.isOpen;
}
