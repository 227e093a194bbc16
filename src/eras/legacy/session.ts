/**
 * Sessions: a sealed id with everything that was negotiated, and a little state in memory.
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
import { ReplayLink, type ReplayMemory, Streams } from "./replay.ts";
import { createSession, endSubscriptions, type Session, type SessionFacts } from "./session_state.ts";
import { hasPriming, isVersion, type Version } from "./versions.ts";

/** A session with an id and resumable streams. */
export interface HttpSession extends Session {
  readonly streams: Streams;
}

/** Contents of an id. The names are short, because the id travels with every request. */
interface Sealed {
  /** Start of the session, in milliseconds since 1970. */
  readonly t: number;
  readonly v: Version;
  readonly i?: Implementation;
  readonly c: ClientCapabilities;
  readonly p?: string;
}

/** An id that is no longer valid. */
interface Ended {
  /** Time at which it would have expired. */
  readonly until: number;
  readonly account: Account;
  /** Charged bytes. */
  readonly held: number;
  /** Whether it counts against the client's limit. */
  readonly isByClient: boolean;
}

/**
 * All sessions over HTTP. The sealed id contains everything that was negotiated. So a session survives a restart, and
 * works on any instance with the same secret. Losing the state in memory does not end a session.
 */
export class Sessions {
  readonly #core: Core;
  readonly #known = new Map<string, HttpSession>();
  /** Sessions by client, so that one client cannot use up the limit of all. */
  readonly #owned = new Map<string, Map<string, HttpSession>>();
  readonly #replayMemory: ReplayMemory = { bytes: 0 };
  readonly #ended = new Map<string, Ended>();
  /** Number of ended ids by client. */
  readonly #endedOf = new Map<string, number>();
  readonly #sweep = (now: number): number | undefined => this.#tidy(now);
  /** The session that was used last, which is at the end of the maps already. */
  #newest?: HttpSession;
  #isForeignKnown = false;

  /** Creates an empty set of sessions. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** Every session this process knows. */
  get known(): Iterable<HttpSession> {
    return this.#known.values();
  }

  /** Creates a session id. Throws if the facts are too long, or the client has ended too many sessions. */
  async create({ version, info, capabilities }: SessionFacts, { principal, account }: Link): Promise<string> {
    const { limits, sealer, ticker } = this.#core;
    // An ended id must be rejected until it expires. So no new session is created if its end could not be recorded.
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
    if (id.length <= MAX_ID) return id;
    throw new McpError(INVALID_PARAMS, "Cannot initialize: capabilities are too long for a session id");
  }

  /** Returns the session of an id if it is in memory. It is synchronous. */
  find(id: string, { principal }: Link): HttpSession | undefined {
    const session = this.#known.get(id);
    if (!session || session.principal !== principal?.id) return;
    session.seen = this.#core.ticker.clock.now();
    if (session.caller !== principal) {
      session.caller = principal;
      session.sessionCall = undefined;
    }
    if (session !== this.#newest) this.#keep(id, session);
    return session;
  }

  /**
   * Opens the session of an id. Returns `undefined` if the id is invalid, has expired or ended, or belongs to another
   * principal. Throws if the server has no room for the state.
   */
  async open(id: string, link: Link): Promise<HttpSession | undefined> {
    const found = this.find(id, link);
    if (found || id.length > MAX_ID) return found;
    const { limits, sealer, ticker } = this.#core;
    const sealed = await sealer.open(PURPOSE, id);
    if (!isSealed(sealed)) return this.#warnOfForeign(id);
    if (sealed.p !== link.principal?.id) return;
    // From here on, the monotonic clock counts. The system's clock may be changed during the session.
    const leftMs = sealed.t + limits.sessions.lifeMs - ticker.clock.date();
    if (leftMs < 0) return;
    // Two requests may open the same session at once. Both get the one that was stored, or none if it has ended.
    const raced = this.find(id, link);
    if (raced || this.#ended.has(toEnd(id))) return raced;
    const facts = { version: sealed.v, info: sealed.i, capabilities: sealed.c };
    const account = this.#charge(id, link);
    const streams = new Streams(this.#core, hasPriming(facts.version), this.#replayMemory);
    const session: HttpSession = {
      ...createSession(this.#core, facts, { account, caller: link.principal, notify: streams.notify }),
      id,
      held: toHeld(id),
      ends: ticker.clock.now() + leftMs,
      streams,
    };
    this.#keep(id, session);
    ticker.schedule(this.#sweep, SWEEP_MS);
    return session;
  }

  /** Wraps the link of a request, so that its response can be resumed if it becomes a stream. */
  wrap(session: HttpSession, link: Link): ReplayLink {
    return new ReplayLink(session, link);
  }

  /** Whether a link was wrapped. */
  isWrapped(link: Link): boolean {
    return link instanceof ReplayLink;
  }

  /**
   * Ends a session permanently, and cancels its calls. A session that its client ended counts towards that client's
   * limit.
   */
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

  // Charges the client with a session. At the limit, another session is dropped.
  #charge(id: string, link: Link): Account {
    const { limits } = this.#core;
    // Unknown clients cannot be distinguished, so they share the limit of all.
    const { key } = link.account;
    const owned = key === undefined ? undefined : this.#owned.get(key);
    if (owned && owned.size >= limits.sessions.openPerClient) this.#makeRoom(owned, "sessions.openPerClient");
    if (this.#known.size >= limits.sessions.open) this.#makeRoom(this.#known, "sessions.open");
    const { account } = link;
    if (account.hold(toHeld(id))) return account;
    throw new McpError(BUSY, "Cannot open the session: too much memory is used (memory.bytesPerClient, memory.bytes)");
  }

  // The maps are in order of last use, so the first session is the one to drop.
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
    endSubscriptions(session);
    const owned = this.#owned.get(key);
    if (owned?.delete(id) && !owned.size) this.#owned.delete(key);
    const text = "Cannot finish the call: the session has ended";
    session.inFlight.cancelAll(new DOMException(text, "AbortError"), new McpError(INVALID_REQUEST, text));
    this.#endStreams(session);
  }

  // The responses of cancelled calls arrive some microtasks later.
  async #endStreams({ streams }: HttpSession): Promise<void> {
    for (let turns = 32; turns; turns--) await undefined;
    streams.end();
  }

  // Drops the state of the session that was idle for longest. Its id stays valid.
  #makeRoom(sessions: Map<string, HttpSession>, limit: string): void {
    let left = sessions.size;
    this.#newest = undefined;
    for (const [id, session] of sessions) {
      if (!isBusy(session)) return this.#forget(session);
      if (!left--) break;
      // The next search starts after this session.
      sessions.delete(id);
      sessions.set(id, session);
    }
    throw new McpError(BUSY, `Cannot open the session: ${sessions.size} sessions are busy (${limit})`);
  }

  // Several processes behind one address reject each other's sessions, which is an easy mistake to make.
  #warnOfForeign(id: string): undefined {
    if (this.#isForeignKnown || this.#core.sealer.isShared || id.length < MIN_ID) return;
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

/** Number of ended ids to remember for each session that may be open. */
const ENDED_SHARE = 100;
/** Bytes of an ended id with its entry. */
const ENDED_BYTES = 150;

/** Maximum and minimum characters of an id. */
const MAX_ID = 16_384;
const MIN_ID = 64;

/** Bytes of a session's state without its id. Measured: 3,100 to 4,400. */
const SESSION_BYTES = 4096;

function toHeld(id: string): number {
  return SESSION_BYTES + 4 * toBytes(id);
}

function isBusy({ inFlight, streams }: HttpSession): boolean {
  return inFlight.size > 0 || streams.isOpen;
}

// The end of an id belongs to its seal, and its 48 bits distinguish a million ids. An engine copies such a short slice,
// but a longer one would keep the whole id in memory.
function toEnd(id: string): string {
  return id.slice(-8);
}

function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.t === "number" && isVersion(value.v) && isObject(value.c);
}
