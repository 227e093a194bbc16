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
import { isAllowed, type Runner } from "./feature.ts";
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

type Wire = (core: Pick<FeatureParts, "publishSchema">) => object;

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

/** Maximum number of cached variants of one list. Each variant contains the entries that some callers may see. */
const MAX_SELECTIONS = 16;

/**
 * Creates the runner that serves a list. Each page is built only once until handlers change, so that the page's JSON
 * text can be cached. If callers see different entries, callers with the same entries share one object, provided that
 * these entries fit on one page.
 */
export function createList(
  name: string,
  entries: readonly Entry[],
  core: FeatureParts,
  hasPrivateCursors: boolean = isPrivate(entries),
): Runner {
  const cursors = new Cursors(core, name, hasPrivateCursors);
  const places = new Map(entries.map(({ key }, place) => [key, place]));
  const pages = new Map<number, Result | Promise<Result>>();
  /**
   * Cached variants of a list that fits on one page. The key states which entries are visible. The least recently
   * requested variant comes first.
   */
  const selections = new Map<string, Result>();
  const isPublic = !isPrivate(entries);
  const scope = isPublic ? core.cacheScope : "private";

  function toPage(from: number, visible: readonly Entry[], call: Call): Result | Promise<Result> {
    const items = visible.slice(from, from + core.limits.calls.pageItems);
    const page = { [name]: items.map(({ wire }) => wire(core)) };
    const last = from + items.length < visible.length ? items.at(-1) : undefined;
    if (!last) return page;
    return cursors.write(last.key, call).then((nextCursor) => ({ ...page, nextCursor }));
  }

  // A cursor contains a position in the full list, so that pages do not shift if the caller can later see other
  // entries.
  async function toVisiblePage(from: number, call: Call): Promise<Result> {
    const shown = await Promise.all(
      entries.slice(from).map(async (entry) => {
        const { allow, vary } = entry;
        if (await isAllowed(allow, call, core)) return vary ? await vary(call, core) : entry;
      }),
    );
    const visible = shown.filter((entry) => entry !== undefined);
    // Do not share a page that has a cursor, because a cursor belongs to one caller. Do not share a page whose entries
    // vary per call, or that middleware may change.
    const isSingle = from > 0 || visible.length > core.limits.calls.pageItems || core.hasMiddleware;
    if (isSingle || entries.some(({ vary }) => vary)) return toPage(0, visible, call);
    const key = shown.map((entry) => entry ? "1" : "0").join("");
    const page = selections.get(key) ?? toFrozen(await toPage(0, visible, call));
    selections.delete(key);
    selections.set(key, page);
    const [oldest] = selections.size > MAX_SELECTIONS ? selections.keys() : [];
    if (oldest !== undefined) selections.delete(oldest);
    return page;
  }

  function toPublicPage(from: number, call: Call): Result | Promise<Result> {
    const known = pages.get(from);
    if (known) return known;
    const page = toPage(from, entries, call);
    // Do not cache the page, because middleware may change the page.
    if (core.hasMiddleware) return page;
    const shared = page instanceof Promise ? page.then(toFrozen) : toFrozen(page);
    pages.set(from, shared);
    if (shared instanceof Promise) shared.then((page) => pages.set(from, page));
    return shared;
  }

  const toPageFrom = isPublic ? toPublicPage : toVisiblePage;

  async function toNextPage(call: Call): Promise<Result> {
    const place = places.get(await cursors.read(call) ?? "");
    if (place === undefined) throw cursors.refuse(call);
    return await toPageFrom(place + 1, call);
  }

  const run = (call: Call) => (call.params.cursor ?? undefined) === undefined ? toPageFrom(0, call) : toNextPage(call);

  return { run, cache: { ttlMs: core.ttlMs, scope } };
}

function isPrivate(entries: readonly Entry[]): boolean {
  return entries.some(({ allow, vary }) => allow || vary);
}

/**
 * Creates and reads the cursors of one list. Cursors are sealed, because a cursor may contain the key of an entry that
 * the caller must not see. If callers see different entries, each cursor is bound to a principal.
 */
export class Cursors {
  readonly #core: FeatureParts;
  readonly #list: string;
  readonly #isPrivate: boolean;

  /** `list` is the list's name. `isPrivate` binds each cursor to the caller's principal. */
  constructor(core: FeatureParts, list: string, isPrivate: boolean) {
    this.#core = core;
    this.#list = list;
    this.#isPrivate = isPrivate;
  }

  /** Creates a cursor for the entries after the key `place`. */
  write(place: string, call: Call): Promise<string> {
    return this.#core.sealer.seal(this.#purpose(call), place);
  }

  /**
   * Resolves to the position in a call's cursor, or to `undefined` if the call has no cursor. Rejects if the cursor
   * does not belong to this list.
   */
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

/**
 * Maximum length of a cursor in characters. The limit is high, because the cursor may contain a long cursor from a
 * provider.
 */
const MAX_CURSOR = 65_536;
