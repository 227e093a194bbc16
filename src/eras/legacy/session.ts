/**
 * Sessions: an id that holds all that was agreed, and a little state beside it.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 * @module
 */
import { INVALID_PARAMS, INVALID_REQUEST, McpError } from "../../protocol/errors.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../../protocol/types.ts";
import { type Call, Scope } from "../../core/call.ts";
import type { ClientFacts, Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import { BUSY } from "../../core/scheduler.ts";
import { Peer } from "./server_requests.ts";
import { type Kept, Streams } from "./replay.ts";
import { hasPriming, isVersion, type Version } from "./versions.ts";

/** What client and server agreed on, with the log level that may change. */
export interface SessionFacts extends ClientFacts {
  readonly version: Version;
  logLevel?: LogLevel;
}

/** One session as this process knows it. */
export interface Session {
  readonly id?: string;
  readonly client: SessionFacts;
  readonly principal?: string;
  /** Who it belongs to, as last seen: what a principal may do can change while a session lives. */
  caller?: Principal;
  /** Stands for the client where no request of it runs. */
  watcher?: Call;
  /** Where the session's request ids are unique. */
  readonly scope: Scope;
  readonly peer: Peer;
  readonly streams: Streams;
  /** Resources the client watches. */
  readonly watched: Set<string>;
  /** Tells the client something that belongs to no request. */
  tell(text: string): void;
  /** When the client was last heard of. */
  seen: number;
  /** When it ends, however busy it is. */
  readonly ends: number;
}

/** What is sealed into an id. Short names: it travels with every request. */
interface Sealed {
  /** When the session began, in milliseconds since 1970. */
  readonly t: number;
  readonly v: Version;
  readonly i?: Implementation;
  readonly c: ClientCapabilities;
  readonly p?: string;
}

/**
 * All sessions over HTTP. The id is sealed and holds everything, so that a session survives a restart and works on
 * any instance with the same secret; what is kept here is what changed since, and its loss does not end a session.
 */
export class Sessions {
  readonly #core: Core;
  readonly #known = new Map<string, Session>();
  /** Those of each principal: one of them must not take the room of all. */
  readonly #owned = new Map<string, Map<string, Session>>();
  readonly #kept: Kept = { size: 0 };
  /** Ends of ids that are no longer good, with the time when they would have expired anyway. */
  readonly #ended = new Map<string, number>();
  readonly #sweep = (now: number): number | undefined => this.#tidy(now);

  /** No sessions yet. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** Every session this process has heard of. */
  get known(): Iterable<Session> {
    return this.#known.values();
  }

  /** Makes an id for what was agreed. Nothing is kept: a handshake alone costs no memory. Throws if it gets too long. */
  async create({ version, info, capabilities }: SessionFacts, principal: Principal | undefined): Promise<string> {
    const small = info && { name: info.name.slice(0, 200), version: info.version.slice(0, 100) };
    const sealed: Sealed = {
      t: this.#core.ticker.clock.date(),
      v: version,
      i: small,
      c: capabilities,
      p: principal?.id,
    };
    const id = await this.#core.sealer.seal(PURPOSE, sealed);
    if (id.length <= MOST_ID) return id;
    throw new McpError(INVALID_PARAMS, "Cannot initialize: capabilities are too long for a session id");
  }

  /** The session of an id that was used before, without a pause. */
  find(id: string, principal: Principal | undefined): Session | undefined {
    const session = this.#known.get(id);
    if (!session || session.principal !== principal?.id) return;
    session.seen = this.#core.ticker.clock.now();
    if (session.caller !== principal) {
      session.caller = principal;
      session.watcher = undefined;
    }
    this.#keep(id, session);
    return session;
  }

  /**
   * The session of an id; `undefined` if the id was changed, has expired or was ended, or is somebody else's. Throws if
   * there is no room for its state.
   */
  async open(id: string, principal: Principal | undefined): Promise<Session | undefined> {
    const found = this.find(id, principal);
    if (found || id.length > MOST_ID) return found;
    const sealed = await this.#core.sealer.open(PURPOSE, id);
    const { limits, ticker } = this.#core;
    if (!isSealed(sealed) || sealed.p !== principal?.id) return;
    // From here on time is counted, and not read from the system's clock: that may be set while the session lives.
    const leftMs = sealed.t + limits.sessionMs - ticker.clock.date();
    if (leftMs < 0) return;
    // Two requests may open the same session at once: both must get the one that is kept, or none if it was ended.
    const raced = this.find(id, principal);
    if (raced || this.#ended.has(toEnd(id))) return raced;
    const owned = sealed.p === undefined ? undefined : this.#owned.get(sealed.p);
    if (owned && owned.size >= limits.sessionsPerClient) this.#makeRoom(owned, "sessionsPerClient");
    if (this.#known.size >= limits.sessions) this.#makeRoom(this.#known, "sessions");
    const facts = { version: sealed.v, info: sealed.i, capabilities: sealed.c };
    const ends = ticker.clock.now() + leftMs;
    const known = { id, principal: sealed.p, caller: principal, ends, kept: this.#kept };
    const session = createSession(this.#core, facts, known);
    this.#keep(id, session);
    ticker.wake(this.#sweep, SWEEP_MS);
    return session;
  }

  /** Ends a session for good, with all that runs in it. */
  end(session: Session): void {
    this.#forget(session);
    const { limits, ticker } = this.#core;
    if (this.#ended.size >= limits.sessions) {
      for (const oldest of this.#ended.keys()) {
        this.#ended.delete(oldest);
        break;
      }
    }
    if (session.id) this.#ended.set(toEnd(session.id), ticker.clock.now() + limits.sessionMs);
  }

  // The maps are in the order of last use, so that the first of them can make room.
  #keep(id: string, session: Session): void {
    this.#known.delete(id);
    this.#known.set(id, session);
    if (session.principal === undefined) return;
    let owned = this.#owned.get(session.principal);
    if (!owned) this.#owned.set(session.principal, owned = new Map());
    owned.delete(id);
    owned.set(id, session);
  }

  #forget(session: Session): void {
    const { id = "", principal = "" } = session;
    this.#known.delete(id);
    const owned = this.#owned.get(principal);
    if (owned?.delete(id) && !owned.size) this.#owned.delete(principal);
    const text = "Cannot finish the call: the session has ended";
    session.scope.cancelAll(new DOMException(text, "AbortError"), new McpError(INVALID_REQUEST, text));
    session.streams.end();
  }

  // The state of the session that was idle for longest; its id stays good.
  #makeRoom(sessions: Map<string, Session>, limit: string): void {
    let left = sessions.size;
    for (const [id, session] of sessions) {
      if (!isBusy(session)) return this.#forget(session);
      if (!left--) break;
      // The next search begins behind this one.
      sessions.delete(id);
      sessions.set(id, session);
    }
    throw new McpError(BUSY, `Cannot open the session: ${sessions.size} sessions are at work (${limit})`);
  }

  #tidy(now: number): number | undefined {
    const { limits } = this.#core;
    for (const session of this.#known.values()) {
      if (isBusy(session)) session.seen = now;
      if (session.ends < now || now - session.seen > limits.sessionIdleMs) this.end(session);
      session.streams.sweep(now);
    }
    for (const [id, until] of this.#ended) if (until < now) this.#ended.delete(id);
    return this.#known.size || this.#ended.size ? SWEEP_MS : undefined;
  }
}

const PURPOSE = "session";
const SWEEP_MS = 60_000;

// What a client says of itself is part of the id; nobody needs this much.
const MOST_ID = 16_384;

/** A session that has just been agreed on. Without an id it lives as long as its pipe. */
export function createSession(
  core: Core,
  client: SessionFacts,
  known: Partial<Pick<Session, "id" | "principal" | "caller" | "ends">> & { readonly kept?: Kept } = {},
): Session {
  const { id, principal, caller, ends = Infinity, kept = { size: 0 } } = known;
  const streams = new Streams(core, hasPriming(client.version), kept);
  return {
    id,
    // Until a client says how much it wants to hear.
    client: { logLevel: "info", ...client },
    principal,
    caller,
    scope: new Scope(),
    peer: new Peer(core),
    streams,
    watched: new Set(),
    tell: streams.tell,
    seen: core.ticker.clock.now(),
    ends,
  };
}

function isBusy({ scope, streams }: Session): boolean {
  return scope.size > 0 || streams.isOpen;
}

// The end of an id is its seal: 48 bits of it are enough to tell ten thousand apart. Of a longer part an engine would
// keep no copy, but the whole id.
function toEnd(id: string): string {
  return id.slice(-8);
}

function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.t === "number" && isVersion(value.v) && isObject(value.c);
}
