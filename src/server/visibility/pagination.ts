/**
 * Serves lists page by page.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { INVALID_PARAMS, McpError } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import { show } from "../../core/known_options.ts";
import type { FeatureParts } from "./feature_parts.ts";
import { isAllowed, type Runner, type Wire } from "./feature.ts";
import type { Allow } from "../call/context.ts";

export interface Entry {
  /** Key of the entry, unique within the list. */
  readonly key: string;
  /** Returns the entry in the form that clients receive. See {@linkcode wireOnce}. */
  readonly wire: Wire;
  readonly allow?: Allow;
  /** Returns the entry for one caller, or `undefined` if the caller may not see the entry. */
  readonly vary?: (call: Call, core: FeatureParts) => Promise<Entry | undefined>;
}

/**
 * Returns a function that creates an entry on first use, and then returns the same frozen object, because all callers get
 * this object: middleware that changed it for one caller would change it for all of them.
 */
export function wireOnce(create: Wire): Wire {
  let made: { readonly entry: object; readonly publishSchema: unknown } | undefined;
  return (core) => {
    const { publishSchema } = core;
    if (!made || made.publishSchema !== publishSchema) made = { entry: toFrozen(create(core)), publishSchema };
    return made.entry;
  };
}

/** Maximum number of cached parts of one list. Each part contains the entries of a page that some callers may see. */
const MAX_SELECTIONS = 16;

/**
 * Creates the runner that serves a list. If all callers see the same entries, each page is built only once until handlers
 * change, and frozen, so that its JSON text can be cached.
 */
export function createList(
  name: string,
  entries: readonly Entry[],
  core: FeatureParts,
  hasPrivateCursors: boolean = isPrivate(entries),
): Runner {
  const list = new PagedList(entries, core, { name, cursors: new Cursors(core, name, hasPrivateCursors) });
  const scope = isPrivate(entries) ? "private" : core.cacheScope;
  return { run: (call) => list.read(call), cache: { ttlMs: core.ttlMs, scope } };
}

interface ListOptions {
  readonly name: string;
  readonly cursors: Cursors;
}

class PagedList {
  readonly #entries: readonly Entry[];
  readonly #core: FeatureParts;
  readonly #options: ListOptions;
  readonly #places: ReadonlyMap<string, number>;
  readonly #isPrivate: boolean;
  readonly #isVarying: boolean;
  /** The pages of a list that is the same for all callers, by the place of the first entry. */
  // Bound: one per page, because cursors are sealed.
  readonly #pages = new Map<number, Result | Promise<Result>>();
  /** The most recently requested parts of the list, the latest first. Callers who see the same entries share a part. */
  // Bound: `MAX_SELECTIONS`.
  readonly #selections: Selection[] = [];

  constructor(entries: readonly Entry[], core: FeatureParts, options: ListOptions) {
    this.#entries = entries;
    this.#core = core;
    this.#options = options;
    this.#places = new Map(entries.map(({ key }, place) => [key, place]));
    this.#isPrivate = isPrivate(entries);
    this.#isVarying = entries.some(({ vary }) => vary);
  }

  read(call: Call): Result | Promise<Result> {
    return (call.params.cursor ?? undefined) === undefined ? this.#toPageFrom(0, call) : this.#readNext(call);
  }

  async #readNext(call: Call): Promise<Result> {
    const { cursors } = this.#options;
    const place = this.#places.get(await cursors.read(call) ?? "");
    if (place === undefined) throw cursors.refuse(call);
    return await this.#toPageFrom(place + 1, call);
  }

  #toPageFrom(from: number, call: Call): Result | Promise<Result> {
    if (!this.#isPrivate) return this.#toSharedPage(from, call);
    const visible = this.#findVisible(from, call);
    return visible instanceof Promise
      ? visible.then((visible) => this.#toPage(visible, call))
      : this.#toPage(visible, call);
  }

  #toSharedPage(from: number, call: Call): Result | Promise<Result> {
    const known = this.#pages.get(from);
    if (known) return known;
    const page = this.#toPage(this.#entries.slice(from, from + this.#pageItems + 1), call);
    // Do not cache the page, because middleware may change the page.
    if (this.#core.hasMiddleware) return page;
    const shared = page instanceof Promise ? page.then((page) => Object.freeze(page)) : Object.freeze(page);
    this.#pages.set(from, shared);
    if (shared instanceof Promise) {
      // The next request tries again if a decision about an entry has failed.
      shared.then((page) => this.#pages.set(from, page), () => this.#pages.delete(from));
    }
    return shared;
  }

  /** Adds visible entries from `from`, until there is one more than fits on a page. Waits only for promises. */
  #findVisible(from: number, call: Call, visible: Entry[] = []): readonly Entry[] | Promise<readonly Entry[]> {
    // The place is a position in the full list, so that pages do not shift if the caller can later see other entries.
    for (let at = from; at < this.#entries.length && visible.length <= this.#pageItems; at++) {
      const shown = this.#show(this.#entries[at], call);
      if (shown instanceof Promise) return this.#findLater(at, call, { visible, shown });
      if (shown) visible.push(shown);
    }
    return visible;
  }

  // Decides about as many entries as a page has at the same time.
  async #findLater(from: number, call: Call, { visible, shown }: Pending): Promise<readonly Entry[]> {
    const next = this.#entries.slice(from + 1, from + 1 + this.#pageItems);
    const all = await Promise.all([shown, ...next.map((entry) => this.#show(entry, call))]);
    visible.push(...all.filter((entry) => entry !== undefined));
    return await this.#findVisible(from + 1 + next.length, call, visible);
  }

  #show(entry: Entry, call: Call): Entry | undefined | Promise<Entry | undefined> {
    const allowed = isAllowed(entry.allow, call, this.#core);
    if (typeof allowed !== "boolean") return allowed.then((allowed) => allowed ? this.#vary(entry, call) : undefined);
    if (allowed) return this.#vary(entry, call);
  }

  #vary(entry: Entry, call: Call): Entry | Promise<Entry | undefined> {
    return entry.vary ? entry.vary(call, this.#core) : entry;
  }

  #toPage(visible: readonly Entry[], call: Call): Result | Promise<Result> {
    const { name, cursors } = this.#options;
    const items = visible.slice(0, this.#pageItems);
    const page = { [name]: this.#toListed(items) };
    const last = items.length < visible.length ? items.at(-1) : undefined;
    if (!last) return page;
    return cursors.write(last.key, call).then((nextCursor) => ({ ...page, nextCursor }));
  }

  #toListed(items: readonly Entry[]): readonly object[] {
    const selections = this.#selections;
    // Do not share entries that vary per call, or a list that middleware may change.
    if (this.#core.hasMiddleware || this.#isVarying) return this.#write(items);
    const at = selections.findIndex((each) => isSame(each.items, items));
    const selection = selections[at] ?? { items, listed: Object.freeze(this.#write(items)) };
    if (at >= 0) selections.splice(at, 1);
    selections.unshift(selection);
    selections.splice(MAX_SELECTIONS);
    return selection.listed;
  }

  #write(items: readonly Entry[]): object[] {
    return items.map(({ wire }) => wire(this.#core));
  }

  get #pageItems(): number {
    return this.#core.limits.calls.pageItems;
  }
}

interface Selection {
  readonly items: readonly Entry[];
  /** The entries as clients receive them. Frozen, so that their JSON text can be cached. */
  readonly listed: readonly object[];
}

function isSame(some: readonly Entry[], others: readonly Entry[]): boolean {
  return some.length === others.length && some.every((entry, at) => entry === others[at]);
}

interface Pending {
  readonly visible: Entry[];
  readonly shown: Promise<Entry | undefined>;
}

function isPrivate(entries: readonly Entry[]): boolean {
  return entries.some(({ allow, vary }) => allow || vary);
}

/**
 * Cursors are sealed, because a cursor may contain the key of an entry that the caller must not see. If callers see
 * different entries, each cursor is bound to a principal.
 */
export class Cursors {
  readonly #core: FeatureParts;
  readonly #list: string;
  readonly #isPrivate: boolean;

  constructor(core: FeatureParts, list: string, isPrivate: boolean) {
    this.#core = core;
    this.#list = list;
    this.#isPrivate = isPrivate;
  }

  /** Creates a cursor for the entries after the key `place`. */
  write(place: string, call: Call): Promise<string> {
    return this.#core.sealer.seal(this.#purpose(call), place);
  }

  /** Resolves to `undefined` if the call has no cursor. Rejects if the cursor does not belong to this list. */
  async read(call: Call): Promise<string | undefined> {
    const cursor = call.params.cursor ?? undefined;
    if (cursor === undefined) return;
    const isShort = typeof cursor === "string" && cursor.length <= MAX_CURSOR;
    const place = isShort ? await this.#core.sealer.open(this.#purpose(call), cursor) : undefined;
    if (typeof place !== "string") throw this.refuse(call);
    return place;
  }

  /** Creates the error for an invalid cursor, which may be any JSON value. */
  refuse({ params: { cursor } }: Call): McpError {
    return new McpError(
      INVALID_PARAMS,
      `Cannot read the list: cursor is ${show(cursor)}, not a cursor of this list; start without a cursor`,
    );
  }

  #purpose({ principal }: Call): string {
    return JSON.stringify(["cursor", this.#list, this.#isPrivate ? principal?.id : undefined]);
  }
}

/** Maximum length of a cursor in characters, which is high because the cursor of a provider may be long. */
const MAX_CURSOR = 65_536;
