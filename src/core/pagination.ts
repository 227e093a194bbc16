/**
 * Lists in pages.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "./call.ts";
import type { Core } from "./core.ts";
import { type Allow, isAllowed, type Runner } from "./feature.ts";

/** One thing on a list. */
export interface Entry {
  /** Unique on the list. */
  readonly key: string;
  /** What clients see. */
  readonly wire: () => object;
  readonly allow?: Allow;
}

/**
 * The cursors of one list. They are sealed, because the place that one names may be something its holder must not
 * see; those of a list that is not the same for everybody are good for one principal.
 */
export class Cursors {
  readonly #core: Core;
  readonly #list: string;
  readonly #isPrivate: boolean;

  /** The cursors of `list`. */
  constructor(core: Core, list: string, isPrivate: boolean) {
    this.#core = core;
    this.#list = list;
    this.#isPrivate = isPrivate;
  }

  /** The cursor to what follows `place`. */
  write(place: string, call: Call): Promise<string> {
    return this.#core.sealer.seal(this.#purpose(call), place);
  }

  /** The place that a call's cursor names; `undefined` without one. Throws if the cursor is not one of this list. */
  async read(call: Call): Promise<string | undefined> {
    const { cursor } = call.params;
    if (cursor === undefined) return;
    const isShort = typeof cursor === "string" && cursor.length <= MAX_CURSOR;
    const place = isShort ? await this.#core.sealer.open(this.#purpose(call), cursor) : undefined;
    if (typeof place !== "string") throw badCursor(cursor);
    return place;
  }

  #purpose({ principal }: Call): string {
    return JSON.stringify(["cursor", this.#list, this.#isPrivate ? principal?.id : undefined]);
  }
}

/** Characters of a cursor; a provider's own may be long. */
const MAX_CURSOR = 65_536;

/**
 * Makes what answers a list's method. A page is made once and given out as the same object until the
 * list is compiled anew. A list with anything that not everybody may see is made for each caller.
 */
export function createList(
  name: string,
  entries: readonly Entry[],
  core: Core,
  cursors: Cursors = new Cursors(core, name, isPrivate(entries)),
): Runner {
  const places = new Map(entries.map(({ key }, place) => [key, place]));
  const pages = new Map<number, Result | Promise<Result>>();
  const isPublic = !isPrivate(entries);
  const scope = isPublic ? core.cacheScope : "private";

  function toPage(from: number, visible: readonly Entry[], call: Call): Result | Promise<Result> {
    const items = visible.slice(from, from + core.limits.calls.pageItems);
    const page = { [name]: items.map(({ wire }) => wire()) };
    const last = from + items.length < visible.length ? items.at(-1) : undefined;
    return last ? cursors.write(last.key, call).then((nextCursor) => ({ ...page, nextCursor })) : page;
  }

  // The place of a cursor holds on the whole list, so that a page does not shift with what its reader may see.
  async function toVisiblePage(from: number, call: Call): Promise<Result> {
    const rest = entries.slice(from);
    const allowed = await Promise.all(rest.map(({ allow }) => isAllowed(allow, call, core)));
    return toPage(0, rest.filter((_, i) => allowed[i]), call);
  }

  function toPublicPage(from: number, call: Call): Result | Promise<Result> {
    const known = pages.get(from);
    if (known) return known;
    const page = toPage(from, entries, call);
    pages.set(from, page);
    if (page instanceof Promise) page.then((page) => pages.set(from, page));
    return page;
  }

  const toPageFrom = isPublic ? toPublicPage : toVisiblePage;

  function run(call: Call): Result | Promise<Result> {
    if (call.params.cursor === undefined) return toPageFrom(0, call);
    return cursors.read(call).then((key = "") => {
      const place = places.get(key);
      if (place === undefined) throw badCursor(call.params.cursor);
      return toPageFrom(place + 1, call);
    });
  }

  return { run, cache: { ttlMs: core.ttlMs, scope } };
}

function isPrivate(entries: readonly Entry[]): boolean {
  return entries.some(({ allow }) => allow);
}

/** The error for a cursor that leads nowhere. */
export function badCursor(cursor: unknown): McpError {
  return new McpError(
    INVALID_PARAMS,
    `Cannot read the list: cursor ${quote(cursor)} is not from it; start without one`,
  );
}
