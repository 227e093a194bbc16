/**
 * Session ids, which contain everything that was negotiated and are sealed.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 * @module
 */
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation } from "../../protocol/types.ts";
import type { Core } from "../../core/core.ts";
import type { Link } from "../../core/call/link.ts";
import type { Mark } from "../../core/marked_ids.ts";
import { openVersioned, sealVersioned } from "../../core/call/versioned_seal.ts";
import { type SessionFacts, toShortId } from "./session_state.ts";
import { isVersion, type Version } from "./versions.ts";

/** Contents of an id. The names are short, because the id travels with every request. */
interface Sealed {
  /** Start of the session, in milliseconds since 1970. */
  readonly t: number;
  readonly v: Version;
  readonly i?: Implementation;
  readonly c: ClientCapabilities;
  readonly p?: string;
  /** Hash of the client that the session was made for. */
  readonly a: string;
  /** The value that the server's `session` returned. */
  readonly d?: unknown;
}

/** What an id contains beside the negotiated facts. */
export interface SealedFor {
  /** Hash of the client. */
  readonly client: string;
  /** Start of the session, in milliseconds since 1970. */
  readonly start: number;
  readonly principal: string | undefined;
  /** The value that the server's `session` returned. */
  readonly data: unknown;
}

/** An id that was opened. */
export interface OpenedId {
  readonly facts: SessionFacts;
  /** The value that the server's `session` returned. */
  readonly data: unknown;
  readonly mark: Mark;
  /** Milliseconds until the session ends in any case. */
  readonly leftMs: number;
}

/** Seals and opens the ids of one server. */
export class SessionIds {
  readonly #core: Core;
  readonly #versions: readonly Version[];
  #isForeignKnown = false;

  /** Creates what seals and opens ids of sessions in some revisions. */
  constructor(core: Core, versions: readonly Version[]) {
    this.#core = core;
    this.#versions = versions;
  }

  /** Creates an id. Throws if the facts are too long. */
  async seal(
    { version, info, capabilities }: SessionFacts,
    { client, start, principal, data }: SealedFor,
  ): Promise<string> {
    const small = info && { name: info.name.slice(0, 200), version: info.version.slice(0, 100) };
    const sealed: Sealed = { t: start, v: version, i: small, c: capabilities, p: principal, a: client, d: data };
    const id = await sealVersioned(this.#core.sealer, PURPOSE, sealed);
    if (id.length <= MAX_ID) return id;
    throw new McpError(INVALID_PARAMS, "Cannot initialize: capabilities are too long for a session id");
  }

  /** Opens an id. Returns `undefined` if it is invalid, has expired, or belongs to another principal. */
  async open(id: string, { principal }: Link): Promise<OpenedId | undefined> {
    if (id.length > MAX_ID) return;
    const { limits, sealer, ticker } = this.#core;
    const sealed = await openVersioned(sealer, PURPOSE, id);
    if (!isSealed(sealed)) return this.#warnOfForeign(id);
    // Another process may have served more revisions.
    if (sealed.p !== principal?.id || !isVersion(sealed.v, this.#versions)) return;
    // From here on, the monotonic clock counts. The system's clock may be changed during the session.
    const leftMs = Math.min(sealed.t + limits.sessions.lifeMs - ticker.clock.date(), limits.sessions.lifeMs);
    if (leftMs < 0) return;
    const facts = { version: sealed.v, info: sealed.i, capabilities: sealed.c };
    return { facts, data: sealed.d, leftMs, mark: { client: sealed.a, at: sealed.t, id: toShortId(id) } };
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
}

const PURPOSE = "session";

/** Maximum and minimum characters of an id. */
const MAX_ID = 16_384;
const MIN_ID = 64;

function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.t === "number" && isVersion(value.v) && isObject(value.c) &&
    typeof value.a === "string";
}
