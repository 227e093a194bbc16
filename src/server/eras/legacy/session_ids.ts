/**
 * Seals everything that was negotiated for a session into its id, and opens these ids.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 */
import { INVALID_PARAMS, McpError } from "../../../core/protocol/errors.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation } from "../../../core/protocol/types.ts";
import type { Core } from "../../engine/core.ts";
import type { Engine } from "../../engine/era.ts";
import type { Link } from "../../call/link.ts";
import { openVersioned, sealVersioned } from "../../call/versioned_seal.ts";
import { warnOfForeign } from "../../call/foreign_values.ts";
import type { LostMessages } from "./lost_messages.ts";
import { SealedIds } from "./sealed_ids.ts";
import type { SessionInfo } from "./session_state.ts";
import { isVersion, type Version } from "./versions.ts";

/** The sealed contents of an id. The field names are short, because every request contains the id. */
interface Sealed {
  /** Start of the session, in milliseconds since 1970. */
  readonly t: number;
  readonly v: Version;
  readonly i?: Implementation;
  readonly c: ClientCapabilities;
  readonly p?: string;
  /** The value that the server's `sessionData` function returned. */
  readonly d?: unknown;
  /** The process that has created the id, if instances share the secret, but no store. */
  readonly n?: string;
}

/** The contents of an id, except the result of the negotiation. */
export interface SealedFor {
  /** The request that opens the session. Only its principal can use the id. */
  readonly link: Link;
  /** The value that the server's `sessionData` function returned. */
  readonly data: unknown;
}

export interface OpenedId {
  readonly info: SessionInfo;
  /** The value that the server's `sessionData` function returned. */
  readonly data: unknown;
  /** Milliseconds until the session expires. */
  readonly leftMs: number;
  /** Whether another instance has created the session while this instance was running. */
  readonly isForeign: boolean;
}

export class SessionIds {
  readonly #core: Core;
  readonly #versions: readonly Version[];
  readonly #lost?: LostMessages;
  readonly #sealed: SealedIds;

  /** `versions` are the revisions whose ids can be opened. */
  constructor(engine: Engine, versions: readonly Version[], lost?: LostMessages) {
    this.#core = engine.core;
    this.#sealed = new SealedIds(engine);
    this.#lost = lost;
    this.#versions = versions;
  }

  /**
   * Without room for everything that the client says about itself, the id contains only the client's name and version.
   * Throws if the id would be longer than `MAX_ID`.
   */
  async seal(
    { version, info, capabilities }: SessionInfo,
    { link, data }: SealedFor,
  ): Promise<string> {
    const start = this.#core.ticker.clock.date();
    const seal = async (i: Implementation | undefined) => {
      const sealed: Sealed = {
        t: start,
        v: version,
        i,
        c: capabilities,
        p: link.principal?.id,
        d: data,
        n: this.#lost?.instance,
      };
      const id = await sealVersioned(this.#core.sealer, PURPOSE, sealed);
      if (id.length > MAX_ID) return;
      this.#sealed.add(id, sealed, link.account);
      return id;
    };
    const id = await seal(info) ?? await seal(info && { name: info.name, version: info.version });
    if (id !== undefined) return id;
    throw new McpError(
      INVALID_PARAMS,
      `Cannot initialize: the session id would contain more than ${MAX_ID} characters; declare fewer capabilities`,
    );
  }

  /** Returns `undefined` if the id is invalid, has expired, or belongs to another principal. */
  async open(id: string, { principal }: Link): Promise<OpenedId | undefined> {
    if (id.length > MAX_ID) return;
    const { limits, sealer, ticker } = this.#core;
    const sealed = this.#sealed.find(id) ?? await openVersioned(sealer, PURPOSE, id);
    if (!isSealed(sealed)) {
      warnOfForeign(this.#core, "a session id", id);
      return;
    }
    // Check the revision, because an instance with the same secret may serve other revisions.
    if (sealed.p !== principal?.id || !isVersion(sealed.v, this.#versions)) return;
    // Return a duration instead of a time, so that the session's expiry uses the monotonic clock, which never changes
    // when the system clock is set.
    const leftMs = Math.min(sealed.t + limits.sessions.lifeMs - ticker.clock.date(), limits.sessions.lifeMs);
    if (leftMs < 0) return;
    this.#sealed.forget(id);
    const info = { version: sealed.v, info: sealed.i, capabilities: sealed.c };
    const isForeign = this.#lost?.isForeign(sealed.n, sealed.t) ?? false;
    return { info, data: sealed.d, leftMs, isForeign };
  }
}

const PURPOSE = "session";

/** Maximum length of an id, in characters. */
const MAX_ID = 16_384;

function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.t === "number" && isVersion(value.v) && isObject(value.c);
}
