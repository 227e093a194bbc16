/**
 * The last known list of the server behind a proxy. It serves while the server is down or slow.
 */
import { deadline } from "../core/kit/deadline.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { isObject, type Params, withoutReserved } from "../core/protocol/jsonrpc.ts";
import { LISTS } from "../client/lock_file.ts";
import { readPages } from "../client/pagination.ts";
import type { Context } from "../library.ts";
import { MAX_NAME } from "../server/handlers/listed_entry.ts";
import { type ChangingList, LIST_MS } from "./connection.ts";
import { showTexts, toValidName } from "./foreign_text.ts";
import { findLoop, readHops, toHops, toOwnHops } from "./hops.ts";
import type { Entry, Forgettable, KeptEntry, Kind, ScopeParts, UpstreamParts } from "./parts.ts";
import { findChange, type Settings } from "./settings.ts";

export interface KeptPage {
  readonly entries: readonly KeptEntry[];
  readonly nextCursor?: string;
  readonly ttlMs: number;
  readonly cacheScope: "public" | "private";
}

/** Limits of one list. Further entries are left out, so that the other server cannot use up the memory. */
const MAX_ENTRIES = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;
const PAGE = 250;
/** Maximum number of lists for requests that have passed other proxies. */
const MAX_PASSED = 4;
/** Milliseconds that a request waits for a newer list, if an older list is known. */
const SLOW_MS = 1000;
/** Milliseconds between two reloads of a list. The time doubles while the other server announces changes. */
const REFRESH_MS = 1000;
const MAX_REFRESH_MS = 60_000;
/** If no change is announced for this multiple of the time, the time is reset. */
const QUIET = 4;
/** Milliseconds for which a store keeps a list. */
const KEPT_MS = 7 * 86_400_000;

export class KeptList implements Forgettable {
  /** The list whose notifications announce changes of this list. */
  readonly changesWith: ChangingList;
  readonly #scope: ScopeParts;
  readonly #upstream: UpstreamParts;
  readonly #kind: Kind;
  /** The proxies that the requests for this list have passed. Other requests do not use the list. */
  readonly #hops: readonly string[];
  /** The lists for requests that have passed other proxies, by these proxies. */
  // Bound: `MAX_PASSED`.
  readonly #passed = new Map<string, KeptList>();
  /** By key. `undefined` until the first list. */
  #entries?: ReadonlyMap<string, KeptEntry>;
  #ordered: readonly KeptEntry[] = [];
  #digest?: string;
  #ttlMs = 0;
  #cacheScope: "public" | "private" = "private";
  /** Time until which the list is valid, unless the server announces changes. */
  #validUntil = -Infinity;
  #isChanged = true;
  #loading?: Promise<void>;
  /** Whether the list has changed while it was being read. */
  #isOutdated = false;
  #stopTimer?: () => void;
  #refreshedAt = -Infinity;
  #refreshMs = REFRESH_MS;
  #isReported = false;
  #isClosed = false;
  /** Whether a request for the list has failed, or a change came before the list. The first list is then announced. */
  #isMissed = false;

  constructor(scope: ScopeParts, upstream: UpstreamParts, kind: Kind, hops: readonly string[] = []) {
    this.#scope = scope;
    this.#upstream = upstream;
    this.#kind = kind;
    this.#hops = hops;
    this.changesWith = kind === "resourceTemplates" ? "resources" : kind;
  }

  /** Returns a page of the list. Throws an error for the model if no list is known. */
  async page(cursor: string | undefined, ctx: Context): Promise<KeptPage> {
    if (findLoop(ctx, this.#upstream.id)) return { entries: [], ttlMs: 0, cacheScope: "private" };
    const list = this.#for(ctx);
    if (list !== this) return await list.page(cursor, ctx);
    // Further pages belong to the same list as the first page.
    if (cursor === undefined || !this.#entries) await this.#update(ctx);
    const from = Number(cursor ?? 0) || 0;
    const end = from + PAGE;
    return {
      entries: this.#ordered.slice(from, end),
      nextCursor: end < this.#ordered.length ? String(end) : undefined,
      ttlMs: this.#isValid ? this.#ttlMs : 0,
      cacheScope: this.#scope.caller === undefined ? this.#cacheScope : "private",
    };
  }

  /** Returns an entry. Waits for a new list if the key is unknown. */
  async find(key: string, ctx: Context): Promise<KeptEntry | undefined> {
    if (findLoop(ctx, this.#upstream.id)) return;
    const list = this.#for(ctx);
    if (list !== this) return await list.find(key, ctx);
    const known = this.#entries?.get(key);
    if (known) return known;
    await this.#update(ctx);
    return this.#entries?.get(key);
  }

  /** Returns an entry of the known list. */
  get(key: string): KeptEntry | undefined {
    return this.#entries?.get(key);
  }

  /** All entries of the known list. */
  get known(): readonly KeptEntry[] {
    return this.#ordered;
  }

  /** Loads the list again, because it may have changed. Does nothing for a list of one caller who has not requested it. */
  refresh(): void {
    this.#isChanged = true;
    this.#dropPassed();
    this.#isOutdated = this.#loading !== undefined;
    if (!this.#entries && this.#scope.caller !== undefined || this.#hops.length) return;
    // Nobody knows the list, but callers can have subscribed to its changes.
    this.#isMissed ||= !this.#entries;
    if (this.#stopTimer || this.#loading) return;
    const { clock } = this.#upstream.server;
    const quietMs = clock.now() - this.#refreshedAt;
    const ms = Math.max(0, this.#refreshMs - quietMs);
    this.#refreshMs = quietMs > QUIET * this.#refreshMs ? REFRESH_MS : Math.min(this.#refreshMs * 2, MAX_REFRESH_MS);
    const load = () => {
      this.#stopTimer = undefined;
      this.#refreshedAt = clock.now();
      this.#load(undefined).catch(() => {});
    };
    if (ms) this.#stopTimer = clock.start(load, ms, { background: true });
    else load();
  }

  /** Forgets the list, to make room for other lists. */
  forget(): void {
    this.#entries = undefined;
    this.#ordered = [];
    this.#isChanged = true;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#dropPassed();
    this.#upstream.release(this);
  }

  /**
   * Returns the list for a request. A request that has passed other proxies gets a list without entries that would form a
   * loop. This list is separate, because the metadata of a caller must not change the list that all callers share.
   */
  #for({ meta }: Context): KeptList {
    const hops = readHops(meta);
    if (!hops.length || this.#hops.length || this.#scope.caller !== undefined) return this;
    const key = JSON.stringify(hops);
    const known = this.#passed.get(key) ?? new KeptList(this.#scope, this.#upstream, this.#kind, hops);
    this.#passed.delete(key);
    for (const [oldest, list] of this.#passed) {
      if (this.#passed.size < MAX_PASSED) break;
      list.close();
      this.#passed.delete(oldest);
    }
    this.#passed.set(key, known);
    return known;
  }

  #dropPassed(): void {
    for (const list of this.#passed.values()) list.close();
    this.#passed.clear();
  }

  get #isValid(): boolean {
    if (!this.#entries || this.#isChanged) return false;
    return this.#scope.announces(this.changesWith) || this.#upstream.server.clock.now() < this.#validUntil;
  }

  async #update(ctx: Context): Promise<void> {
    if (this.#isValid) return;
    const loading = this.#load(ctx);
    // The error is thrown below, unless an older list serves.
    loading.catch(() => {});
    const inTime = async () => {
      await deadline(loading.catch(() => {}), { ms: SLOW_MS, onTimeout: () => {} });
    };
    if (!this.#entries) {
      await inTime();
      if (!this.#entries) await this.#restore();
    } else await inTime();
    this.#isMissed ||= !this.#entries;
    if (!this.#entries) await loading;
  }

  #load(ctx: Context | undefined): Promise<void> {
    return this.#loading ??= this.#read(ctx).finally(() => {
      this.#loading = undefined;
      if (!this.#isOutdated) return;
      this.#isOutdated = false;
      this.refresh();
    });
  }

  async #read(ctx: Context | undefined): Promise<void> {
    const connection = await this.#scope.connect(ctx);
    await connection.untilWatched();
    this.#isChanged = false;
    try {
      const found = new Map<string, KeptEntry>();
      let characters = 0;
      let ttlMs = Infinity;
      let cacheScope: "public" | "private" = "public";
      for await (const page of this.#readPages(ctx, connection.client.server.capabilities)) {
        ttlMs = Math.min(ttlMs, Number.isFinite(page.ttlMs) ? Number(page.ttlMs) : 0);
        if (page.cacheScope !== "public") cacheScope = "private";
        const items: unknown = page[this.#kind];
        for (const item of Array.isArray(items) ? items : []) {
          if (!isObject(item)) continue;
          characters += JSON.stringify(item).length;
          if (found.size >= MAX_ENTRIES || characters > MAX_CHARACTERS) break;
          const entry = await this.#toEntry(item);
          if (entry && !found.has(entry.key)) found.set(entry.key, entry);
        }
        if (found.size < MAX_ENTRIES && characters <= MAX_CHARACTERS) continue;
        this.#report(
          new RangeError(
            `Cannot list all ${this.#kind} of ${this.#upstream.settings.name}: the list exceeds ${MAX_ENTRIES} entries or ` +
              `${MAX_CHARACTERS} characters; the rest is left out`,
          ),
        );
        break;
      }
      const { clock } = this.#upstream.server;
      this.#validUntil = clock.now() + (Number.isFinite(ttlMs) ? ttlMs : 0);
      this.#ttlMs = Number.isFinite(ttlMs) ? ttlMs : 0;
      this.#cacheScope = cacheScope;
      await this.#set(found, characters);
    } catch (error) {
      this.#isChanged = true;
      throw error;
    }
  }

  #readPages(ctx: Context | undefined, capabilities: Params) {
    const { settings, id, server: { clock } } = this.#upstream;
    const { timeoutMs = LIST_MS } = settings;
    const isDeclared = isObject(capabilities[this.changesWith]);
    const meta = this.#scope.caller === undefined ? toOwnHops(this.#hops, id) : toHops(ctx, id);
    const lateAt = clock.now() + timeoutMs;
    return readPages({
      what: `${this.#kind} of ${settings.name}`,
      timeoutMs,
      request: async (params) => {
        if (!isDeclared) return;
        const leftMs = lateAt - clock.now();
        if (leftMs <= 0) {
          throw new DOMException(
            `Cannot list ${this.#kind} of ${settings.name}: all pages take longer than ${timeoutMs} ms`,
            "TimeoutError",
          );
        }
        const sent = { timeoutMs: leftMs, meta, rounds: false };
        return await this.#scope.request(LISTS[this.#kind].method, params, sent, { ctx, isRepeatable: true });
      },
    });
  }

  async #toEntry(item: Params): Promise<KeptEntry | undefined> {
    const { settings } = this.#upstream;
    const key = item[LISTS[this.#kind].key];
    if (typeof key !== "string" || !key || key.length > MAX_NAME) return;
    const scope = this.#scope;
    // The cast is safe, because the copy has the members of the entry, and `from` checks them.
    const { execution, ...shown } = showTexts(withoutReserved(item)) as Entry; // See above.
    if (this.changesWith === "resources") return { key, name: key, listed: shown, scope };
    if (this.#kind === "tools" && !isIncluded(key, settings.tools)) return;
    if (Object(execution).taskSupport === "required") {
      this.#report(new Error(`Cannot serve ${JSON.stringify(key)} of ${settings.name}: it can only run as a task`));
      return;
    }
    const change = this.#kind === "tools" ? findChange(settings, key) : undefined;
    const name = await toValidName(settings.prefix, change?.name || key);
    return { key: name, name: key, listed: { ...shown, name }, scope };
  }

  async #set(entries: ReadonlyMap<string, KeptEntry>, characters: number): Promise<void> {
    const ordered = [...entries.values()];
    const text = JSON.stringify(ordered.map(({ key, name, listed }) => [key, name, listed]));
    const digest = await sha256(text);
    const isKnown = digest === this.#digest && !!this.#entries;
    const isNews = (this.#digest !== undefined || this.#isMissed) && digest !== this.#digest;
    this.#isMissed = false;
    this.#digest = digest;
    if (isKnown) return;
    this.#entries = entries;
    this.#ordered = ordered;
    // A closed list must not take room from other lists.
    if (!this.#isClosed) this.#upstream.keep(this, characters);
    if (this.#hops.length) return;
    const { caller } = this.#scope;
    if (caller === undefined) {
      this.#upstream.claim(this.#kind, ordered.map(({ key }) => key));
      await this.#save(text);
    }
    if (this.changesWith === "resources") this.#upstream.follow(this.#scope);
    if (isNews) {
      const to = caller === undefined ? undefined : (ctx: Context) => ctx.caller === caller;
      this.#upstream.server.listChanged(this.changesWith, to && { to });
    }
  }

  async #save(text: string): Promise<void> {
    try {
      await (await this.#upstream.store)?.own.set(await this.#toStoreKey(), text, { ttlMs: KEPT_MS });
    } catch (error) {
      this.#report(error);
    }
  }

  /** The key contains the options that change the list, so that other options do not restore the list. */
  async #toStoreKey(): Promise<string> {
    const { prefix, tools, lock } = this.#upstream.settings;
    return `list ${this.#kind} ${await sha256(JSON.stringify([prefix, tools, lock]))}`;
  }

  /** Uses the list that the store has kept. */
  async #restore(): Promise<void> {
    if (this.#scope.caller !== undefined || this.#hops.length) return;
    try {
      const { value } = await (await this.#upstream.store)?.own.get(await this.#toStoreKey()) ?? {};
      if (value === undefined || this.#entries) return;
      const known: [string, string, KeptEntry["listed"]][] = JSON.parse(value);
      const entries = known.map(([key, name, listed]) => ({ key, name, listed, scope: this.#scope }));
      this.#entries = new Map(entries.map((entry) => [entry.key, entry]));
      this.#ordered = entries;
      this.#digest = await sha256(value);
      this.#upstream.keep(this, value.length);
    } catch (error) {
      this.#report(error);
    }
  }

  /** Reports a problem of the list once. */
  #report(error: unknown): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#upstream.server.report(error);
  }
}

function isIncluded(name: string, { include, exclude = [] }: NonNullable<Settings["tools"]> = {}): boolean {
  const matches = (pattern: string) => isMatch(pattern, name);
  return (!include || include.some(matches)) && !exclude.some(matches);
}

/** Takes linear time for each `*`, unlike a regular expression, because the other server chooses the name. */
function isMatch(pattern: string, name: string): boolean {
  const [first, ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first) || !name.slice(first.length).endsWith(last)) return false;
  const inner = name.slice(0, name.length - last.length);
  let at = first.length;
  for (const part of rest) {
    const found = inner.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return true;
}
