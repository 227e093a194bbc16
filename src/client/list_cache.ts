/**
 * Keeps lists for as long as the server allows.
 *
 * @see specification/2026-07-28/server/utilities/caching
 */
import type { Params } from "../core/protocol/jsonrpc.ts";
import type { SentToken, Tokens } from "./channel.ts";
import type { Notification } from "./message.ts";
import type { Outcome } from "./rpc.ts";

/** Maximum number of characters of a kept list, as JSON. A client keeps at most four lists. Longer lists are not kept. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
/** Maximum milliseconds for which a list is kept, because a server can send any number. */
const MAX_TTL_MS = 24 * 60 * 60 * 1000;

const LIST_CHANGED = /^notifications\/(tools|prompts|resources)\/list_changed$/;

interface Kept {
  /** The items as JSON, so that a program's changes to returned items do not affect later results. */
  readonly json: string;
  /** Time of `performance.now()` until which the list may be used. */
  readonly until: number;
  /** The token with which the client requested a private list. `undefined` for a public list. */
  readonly sent?: SentToken;
}

export interface Collected {
  readonly method: string;
  readonly changes: number;
  readonly sent: SentToken | undefined;
  until: number;
  isPublic: boolean;
}

/** The tokens of a channel that uses no tokens. */
export const NO_TOKENS: Tokens = { sent: { token: undefined }, readNext: () => Promise.resolve(undefined) };

/** The complete lists that one client has received. */
export class ListCache {
  readonly #kept = new Map<string, Kept>();
  readonly #tokens: Tokens | undefined;
  /** Number of changes of lists that the client knows of. */
  #changes = 0;

  /** `tokens` is `undefined` if each request can have other credentials. Then only public lists are kept. */
  constructor(tokens: Tokens | undefined) {
    this.#tokens = tokens;
  }

  /** Forgets the lists that have changed according to a notification. */
  readonly receive = ({ method }: Notification): void => {
    const [, feature] = LIST_CHANGED.exec(method) ?? [];
    if (feature !== undefined) this.forget(feature);
  };

  /** Forgets the lists of a feature, such as `resources`. Lists that are being requested will not be kept. */
  forget(feature: string): void {
    this.#changes++;
    for (const method of [...this.#kept.keys()]) if (method.startsWith(`${feature}/`)) this.#kept.delete(method);
  }

  async find(method: string): Promise<readonly Params[] | undefined> {
    const kept = this.#kept.get(method);
    if (!kept) return;
    const isOwn = !kept.sent || kept.sent.token === await this.#readNext();
    if (this.#kept.get(method) !== kept) return;
    if (isOwn && performance.now() < kept.until) return JSON.parse(kept.json);
    this.#kept.delete(method);
  }

  collect(method: string): Collected {
    return { method, changes: this.#changes, sent: this.#tokens?.sent, until: Infinity, isPublic: true };
  }

  /** A page without a valid `ttlMs` is stale immediately. */
  add(collected: Collected, { result: { ttlMs, cacheScope }, isRetried }: Outcome): void {
    const isAllowed = typeof ttlMs === "number" && ttlMs > 0 && !isRetried;
    const until = isAllowed ? performance.now() + Math.min(ttlMs, MAX_TTL_MS) : 0;
    collected.until = Math.min(collected.until, until);
    collected.isPublic &&= cacheScope === "public";
  }

  /** Keeps a complete list, unless lists or the token have changed since the first request. */
  keep({ method, changes, sent, until, isPublic }: Collected, items: readonly Params[]): void {
    if (changes !== this.#changes || until === Infinity || performance.now() >= until) return;
    if (!isPublic && (!sent || sent !== this.#tokens?.sent)) return;
    const json = JSON.stringify(items);
    if (json.length <= MAX_CHARACTERS) this.#kept.set(method, { json, until, ...!isPublic && { sent } });
  }

  /** Reads the token of the next request. After an error, no list belongs to the token, and the request fails itself. */
  async #readNext(): Promise<string | undefined | typeof FAILED> {
    try {
      return await this.#tokens?.readNext();
    } catch {
      return FAILED;
    }
  }
}

const FAILED: unique symbol = Symbol("failed");
