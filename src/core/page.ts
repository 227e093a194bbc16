/**
 * Lists in pages.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../protocol/errors.ts";
import { fromBase64Url, toBase64Url } from "../protocol/base64.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";

/** Whether a caller may see and use something. */
export type Allow = (call: Context) => boolean | Promise<boolean>;

/** One thing on a list. */
export interface Entry {
  /** Unique on the list. */
  readonly key: string;
  /** What clients see. */
  readonly wire: () => object;
  readonly allow?: Allow;
}

/**
 * Makes the function that answers a list's method. A page is made once and given out as the same object until the
 * list is compiled anew. A list with anything that not everybody may see is made for each caller.
 */
export function createList(
  name: string,
  entries: readonly Entry[],
  core: Core,
): (call: Call) => Result | Promise<Result> {
  const places = new Map(entries.map(({ key }, place) => [key, place]));
  const pages = new Map<number, Result>();
  const isPrivate = entries.some(({ allow }) => allow);

  function toPage(from: number, visible: readonly Entry[]): Result {
    const items = visible.slice(from, from + core.limits.page);
    const last = from + items.length < visible.length ? items.at(-1) : undefined;
    return { [name]: items.map(({ wire }) => wire()), nextCursor: last && toCursor(name, last.key) };
  }

  // The place of a cursor holds on the whole list, so that a page does not shift with what its reader may see.
  async function toVisiblePage(from: number, call: Call): Promise<Result> {
    const rest = entries.slice(from);
    const allowed = await Promise.all(rest.map(({ allow }) => allow ? allow(call) : true));
    return toPage(0, rest.filter((_, i) => allowed[i]));
  }

  return (call) => {
    const from = readPlace(name, call.params.cursor, places);
    call.cache = { ttlMs: core.ttlMs, scope: isPrivate ? "private" : core.cacheScope };
    if (isPrivate) return toVisiblePage(from, call);
    let page = pages.get(from);
    if (!page) pages.set(from, page = toPage(from, entries));
    return page;
  };
}

/** A cursor: opaque to clients, and good for one list only. */
export function toCursor(list: string, key: string): string {
  return toBase64Url(new TextEncoder().encode(`${list}:${key}`));
}

/** What a cursor holds; `undefined` for none. Throws if it is not one of this list. */
export function readCursor(list: string, cursor: unknown): string | undefined {
  if (cursor === undefined) return;
  const bytes = typeof cursor === "string" ? fromBase64Url(cursor) : undefined;
  const text = bytes && new TextDecoder().decode(bytes);
  if (!text?.startsWith(`${list}:`)) throw badCursor(cursor);
  return text.slice(list.length + 1);
}

/** The error for a cursor that leads nowhere. */
export function badCursor(cursor: unknown): McpError {
  return new McpError(
    INVALID_PARAMS,
    `Cannot read the list: cursor ${quote(cursor)} is not from it; start without one`,
  );
}

function readPlace(list: string, cursor: unknown, places: ReadonlyMap<string, number>): number {
  const key = readCursor(list, cursor);
  if (key === undefined) return 0;
  const place = places.get(key);
  if (place === undefined) throw badCursor(cursor);
  return place + 1;
}
