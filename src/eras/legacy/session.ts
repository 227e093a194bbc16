/**
 * Sessions over HTTP: an id that holds all that was agreed, and a little state beside it. Loaded with the first of them.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 * @module
 */
import { INVALID_PARAMS, INVALID_REQUEST, McpError } from "../../protocol/errors.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation } from "../../protocol/types.ts";
import { toBytes } from "../../protocol/weight.ts";
import type { Account } from "../../core/account.ts";
import type { Core } from "../../core/core.ts";
import type { Link } from "../../core/link.ts";
import { BUSY } from "../../core/scheduler.ts";
import { type Kept, ReplayLink, Streams } from "./replay.ts";
import { createSession, type Session, type SessionFacts } from "./session_state.ts";
import { hasPriming, isVersion, type Version } from "./versions.ts";

/** A session that has an id, and streams that can be read again. */
export interface HttpSession extends Session {
  readonly streams: Streams;
}

/** What is sealed into an id. Short names, because it travels with every request. */
interface Sealed {
  /** When the session began, in milliseconds since 1970. */
  readonly t: number;
  readonly v: Version;
  readonly i?: Implementation;
  readonly c: ClientCapabilities;
  readonly p?: string;
}

/** An id that is no longer good. */
interface Ended {
  /** When it would have expired anyway. */
  readonly until: number;
  readonly account: Account;
  /** Bytes that the client is charged with. */
  readonly held: number;
  /** Whether it counts against the client. */
  readonly isByClient: boolean;
}

/**
 * All sessions over HTTP. The id is sealed and holds everything, so that a session survives a restart and works on
 * any instance with the same secret; what is kept here is what changed since, and its loss does not end a session.
 */
export class Sessions {
  readonly #core: Core;
  readonly #known = new Map<string, HttpSession>();
  /** Those of each client: one of them must not take the room of all. */
  readonly #owned = new Map<string, Map<string, HttpSession>>();
  readonly #kept: Kept = { bytes: 0 };
  readonly #ended = new Map<string, Ended>();
  /** How many ids of each client have ended. */
  readonly #endedOf = new Map<string, number>();
  readonly #sweep = (now: number): number | undefined => this.#tidy(now);
  /** The session that was used last, which is at the end of the maps already. */
  #newest?: HttpSession;
  #isForeignKnown = false;

  /** No sessions yet. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** Every session this process knows. */
  get known(): Iterable<HttpSession> {
    return this.#known.values();
  }

  /** Makes an id for what was agreed. Throws if there is too much of it, or this client has ended too many sessions. */
  async create({ version, info, capabilities }: SessionFacts, { principal, account }: Link): Promise<string> {
    const { limits, sealer, ticker } = this.#core;
    // An ended id must be refused until it expires: there is no room for a session whose end could not be kept.
    const ended = account.key === undefined ? 0 : this.#endedOf.get(account.key) ?? 0;
    if (
      ended >= limits.sessions.openPerClient * ENDED_SHARE || this.#ended.size >= limits.sessions.open * ENDED_SHARE
    ) {
      throw new McpError(
        BUSY,
        "Cannot initialize: too many sessions have ended (sessions.openPerClient, sessions.open)",
      );
    }
    const small = info && { name: info.name.slice(0, 200), version: info.version.slice(0, 100) };
    const sealed: Sealed = { t: ticker.clock.date(), v: version, i: small, c: capabilities, p: principal?.id };
    const id = await sealer.seal(PURPOSE, sealed);
    if (id.length <= MOST_ID) return id;
    throw new McpError(INVALID_PARAMS, "Cannot initialize: capabilities are too long for a session id");
  }

  /** The session of an id that was used before, without a pause. */
  find(id: string, { principal }: Link): HttpSession | undefined {
    const session = this.#known.get(id);
    if (!session || session.principal !== principal?.id) return;
    session.seen = this.#core.ticker.clock.now();
    if (session.caller !== principal) {
      session.caller = principal;
      session.watcher = undefined;
    }
    if (session !== this.#newest) this.#keep(id, session);
    return session;
  }

  /**
   * The session of an id; `undefined` if the id was changed, has expired or was ended, or is somebody else's. Throws if
   * there is no room for its state.
   */
  async open(id: string, link: Link): Promise<HttpSession | undefined> {
    const found = this.find(id, link);
    if (found || id.length > MOST_ID) return found;
    const { limits, sealer, ticker } = this.#core;
    const sealed = await sealer.open(PURPOSE, id);
    if (!isSealed(sealed)) return this.#warnOfForeign(id);
    if (sealed.p !== link.principal?.id) return;
    // From here on time is counted, and not read from the system's clock: that may be set while the session lives.
    const leftMs = sealed.t + limits.sessions.lifeMs - ticker.clock.date();
    if (leftMs < 0) return;
    // Two requests may open the same session at once: both must get the one that is kept, or none if it was ended.
    const raced = this.find(id, link);
    if (raced || this.#ended.has(toEnd(id))) return raced;
    const facts = { version: sealed.v, info: sealed.i, capabilities: sealed.c };
    const account = this.#charge(id, link);
    const streams = new Streams(this.#core, hasPriming(facts.version), this.#kept);
    const session: HttpSession = {
      ...createSession(this.#core, facts, { account, caller: link.principal, notify: streams.notify }),
      id,
      held: toHeld(id),
      ends: ticker.clock.now() + leftMs,
      streams,
    };
    this.#keep(id, session);
    ticker.wake(this.#sweep, SWEEP_MS);
    return session;
  }

  /** Wraps the link of a request, so that its answer can be read again if it becomes a stream. */
  wrap(session: HttpSession, link: Link): ReplayLink {
    return new ReplayLink(session, link);
  }

  /** Whether a link was wrapped. */
  isWrapped(link: Link): boolean {
    return link instanceof ReplayLink;
  }

  /** Ends a session for good, with all that runs in it. Those that a client ends count against it. */
  end(session: HttpSession, isByClient = false): void {
    this.#forget(session);
    if (session.id === undefined) return;
    const { account } = session;
    const { limits, ticker } = this.#core;
    const held = account.hold(ENDED_BYTES) ? ENDED_BYTES : 0;
    this.#ended.set(toEnd(session.id), {
      until: ticker.clock.now() + limits.sessions.lifeMs,
      account,
      held,
      isByClient,
    });
    if (isByClient && account.key !== undefined) {
      this.#endedOf.set(account.key, (this.#endedOf.get(account.key) ?? 0) + 1);
    }
  }

  // Charges the client with a session, for which another one may have to make room.
  #charge(id: string, link: Link): Account {
    const { limits } = this.#core;
    // Clients that are not known are not told apart, and share the room of all.
    const { key } = link.account;
    const owned = key === undefined ? undefined : this.#owned.get(key);
    if (owned && owned.size >= limits.sessions.openPerClient) this.#makeRoom(owned, "sessions.openPerClient");
    if (this.#known.size >= limits.sessions.open) this.#makeRoom(this.#known, "sessions.open");
    const { account } = link;
    if (account.hold(toHeld(id))) return account;
    throw new McpError(BUSY, "Cannot open the session: too much is held already (memory.bytesPerClient, memory.bytes)");
  }

  // The maps are in the order of last use, so that the first of them can make room.
  #keep(id: string, session: HttpSession): void {
    this.#newest = session;
    this.#known.delete(id);
    this.#known.set(id, session);
    const { key } = session.account;
    if (key === undefined) return;
    let owned = this.#owned.get(key);
    if (!owned) this.#owned.set(key, owned = new Map());
    owned.delete(id);
    owned.set(id, session);
  }

  #forget(session: HttpSession): void {
    const { id = "", account: { key = "" } } = session;
    if (session === this.#newest) this.#newest = undefined;
    if (this.#known.delete(id)) session.account.free(session.held);
    session.held = 0;
    const owned = this.#owned.get(key);
    if (owned?.delete(id) && !owned.size) this.#owned.delete(key);
    const text = "Cannot finish the call: the session has ended";
    session.inFlight.cancelAll(new DOMException(text, "AbortError"), new McpError(INVALID_REQUEST, text));
    this.#endStreams(session);
  }

  // The answers of calls that were cancelled are some turns behind.
  async #endStreams({ streams }: HttpSession): Promise<void> {
    for (let turns = 32; turns; turns--) await undefined;
    streams.end();
  }

  // The state of the session that was idle for longest; its id stays good.
  #makeRoom(sessions: Map<string, HttpSession>, limit: string): void {
    let left = sessions.size;
    this.#newest = undefined;
    for (const [id, session] of sessions) {
      if (!isBusy(session)) return this.#forget(session);
      if (!left--) break;
      // The next search begins behind this one.
      sessions.delete(id);
      sessions.set(id, session);
    }
    throw new McpError(BUSY, `Cannot open the session: ${sessions.size} sessions are at work (${limit})`);
  }

  // Several processes behind one address are easily started, and each refuses the sessions of the others.
  #warnOfForeign(id: string): undefined {
    if (this.#isForeignKnown || this.#core.sealer.isShared || id.length < SHORTEST_ID) return;
    this.#isForeignKnown = true;
    console.warn(
      `${this.#core.identity.name}: a client sent a session id that this process did not make. If several processes ` +
        "serve this address, or the server was restarted, give all of them the same `secret`.",
    );
  }

  #tidy(now: number): number | undefined {
    const { limits } = this.#core;
    for (const session of this.#known.values()) {
      if (isBusy(session)) session.seen = now;
      if (session.ends < now || now - session.seen > limits.sessions.idleMs) this.end(session);
      session.streams.sweep(now);
    }
    for (const [id, ended] of this.#ended) if (ended.until < now) this.#forgetEnd(id, ended);
    return this.#known.size || this.#ended.size ? SWEEP_MS : undefined;
  }

  #forgetEnd(id: string, { account, held, isByClient }: Ended): void {
    this.#ended.delete(id);
    account.free(held);
    const { key } = account;
    if (key === undefined || !isByClient) return;
    const left = (this.#endedOf.get(key) ?? 1) - 1;
    if (left) this.#endedOf.set(key, left);
    else this.#endedOf.delete(key);
  }
}

const PURPOSE = "session";
const SWEEP_MS = 60_000;

/** Ended ids that are kept for each session that may be open. */
const ENDED_SHARE = 100;
/** Bytes of an ended id with its entry. */
const ENDED_BYTES = 150;

/** Characters of an id, and of the shortest there is. */
const MOST_ID = 16_384;
const SHORTEST_ID = 64;

/** Bytes that the state of a session takes beside its id: measured at 3,100 to 4,400. */
const SESSION_BYTES = 4096;

function toHeld(id: string): number {
  return SESSION_BYTES + 4 * toBytes(id);
}

function isBusy({ inFlight, streams }: HttpSession): boolean {
  return inFlight.size > 0 || streams.isOpen;
}

// The end of an id is its seal: 48 bits of it are enough to tell a million apart. Of a longer part an engine would keep
// no copy, but the whole id.
function toEnd(id: string): string {
  return id.slice(-8);
}

function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.t === "number" && isVersion(value.v) && isObject(value.c);
}
