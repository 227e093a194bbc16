/**
 * Serves lists page by page.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../../protocol/errors.ts";
import type { Result } from "../../protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import type { FeatureParts } from "./feature_parts.ts";
import { isAllowed, type Runner } from "./feature.ts";
import type { Allow } from "../call/context.ts";

/** An entry of a list. */
export interface Entry {
  /** Key of the entry, unique within the list. */
  readonly key: string;
  /** Returns the entry as clients see it. */
  readonly wire: (core: FeatureParts) => object;
  readonly allow?: Allow;
  /** Returns the entry for one caller. Returns `undefined` if this caller may not see it. */
  readonly vary?: (call: Call, core: FeatureParts) => Promise<Entry | undefined>;
}

/** Maximum number of filtered variants of one list that are cached. */
const MAX_SELECTIONS = 16;

/**
 * Creates the method of a list. Each page is built once, and stays the same object until handlers change, so that it is
 * encoded only once. If the list has one page, callers that may see the same entries also share the same object.
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
  /** Cached results of whole lists, by the entries in the list. The least recently requested result comes first. */
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

  // Cursors contain a position in the full list, so that pages do not shift with the entries that a caller may see.
  async function toVisiblePage(from: number, call: Call): Promise<Result> {
    const shown = await Promise.all(
      entries.slice(from).map(async (entry) => {
        const { allow, vary } = entry;
        if (await isAllowed(allow, call, core)) return vary ? await vary(call, core) : entry;
      }),
    );
    const visible = shown.filter((entry) => entry !== undefined);
    // Do not share the page if it has a cursor (which belongs to one caller), if entries vary per call, or if
    // middleware may change it.
    const isSingle = from > 0 || visible.length > core.limits.calls.pageItems || core.hasMiddleware;
    if (isSingle || entries.some(({ vary }) => vary)) return toPage(0, visible, call);
    const key = shown.map((entry) => entry ? "1" : "0").join("");
    const page = selections.get(key) ?? await toPage(0, visible, call);
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
    // Do not share the page, because middleware may change it.
    if (core.hasMiddleware) return page;
    pages.set(from, page);
    if (page instanceof Promise) page.then((page) => pages.set(from, page));
    return page;
  }

  const toPageFrom = isPublic ? toPublicPage : toVisiblePage;

  async function toNextPage(call: Call): Promise<Result> {
    const place = places.get(await cursors.read(call) ?? "");
    if (place === undefined) throw cursors.refuse(call);
    return await toPageFrom(place + 1, call);
  }

  const run = (call: Call) => call.params.cursor === undefined ? toPageFrom(0, call) : toNextPage(call);

  return { run, cache: { ttlMs: core.ttlMs, scope } };
}

function isPrivate(entries: readonly Entry[]): boolean {
  return entries.some(({ allow, vary }) => allow || vary);
}

/**
 * The cursors of one list. They are sealed, because the position in a cursor may be an entry that the caller must not
 * see. If a list differs between callers, its cursors are bound to the principal.
 */
export class Cursors {
  readonly #core: FeatureParts;
  readonly #list: string;
  readonly #isPrivate: boolean;

  /** Creates the cursors of `list`. */
  constructor(core: FeatureParts, list: string, isPrivate: boolean) {
    this.#core = core;
    this.#list = list;
    this.#isPrivate = isPrivate;
  }

  /** Returns the cursor for the entries after `place`. */
  write(place: string, call: Call): Promise<string> {
    return this.#core.sealer.seal(this.#purpose(call), place);
  }

  /**
   * Returns the position in a call's cursor, or `undefined` if the call has no cursor. Throws if the cursor does not
   * belong to this list.
   */
  async read(call: Call): Promise<string | undefined> {
    const { cursor } = call.params;
    if (cursor === undefined) return;
    const isShort = typeof cursor === "string" && cursor.length <= MAX_CURSOR;
    const place = isShort ? await this.#core.sealer.open(this.#purpose(call), cursor) : undefined;
    if (typeof place !== "string") throw this.refuse(call);
    return place;
  }

  /** Creates the error for an invalid cursor. */
  refuse({ params: { cursor } }: Call): McpError {
    return new McpError(
      INVALID_PARAMS,
      `Cannot read the list: cursor ${quote(cursor)} does not belong to it; start without a cursor`,
    );
  }

  #purpose({ principal }: Call): string {
    return JSON.stringify(["cursor", this.#list, this.#isPrivate ? principal?.id : undefined]);
  }
}

/** Maximum length of a cursor in characters. It may contain the cursor of a provider, which may be long. */
const MAX_CURSOR = 65_536;
