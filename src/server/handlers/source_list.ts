/**
 * Lists handlers that are registered, and then the entries of functions that list more of them, page by page.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 */
import { deadline } from "../../core/kit/deadline.ts";
import { toFrozen } from "../../core/kit/frozen.ts";
import { withHints } from "../../core/protocol/cache_hints.ts";
import { isMcpError } from "../../core/protocol/errors.ts";
import { isObject, type Params, type Result, withoutReserved } from "../../core/protocol/jsonrpc.ts";
import { show } from "../../core/known_options.ts";
import type { Call } from "../call/call.ts";
import type { Allow, ListName } from "../call/context.ts";
import { isAllowed, type Method, toMethod } from "../visibility/feature.ts";
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import { createList, Cursors, type Entry } from "../visibility/pagination.ts";
import { attempt } from "./attempt.ts";
import { Outages, reportedErrors } from "./outages.ts";

export interface SourceRange {
  /** Cursor of the source. `undefined` for its first page. */
  readonly cursor: string | undefined;
  /** Number of entries that one page of the server has. */
  readonly size: number;
  /** The entries that are already on the page of the server. */
  readonly before: readonly unknown[];
}

/** The entries of one page of a source, as clients receive them. */
export interface SourcePage {
  readonly items: readonly unknown[];
  /** Cursor of the next page. `undefined` for the last page. */
  readonly nextCursor?: string;
  /** The page that the author's function has returned, whose other members narrow or complete the server's page. */
  readonly given?: Params;
}

export interface Source {
  readonly key: string;
  /** Name of the source in reports of errors. Defaults to the key. */
  readonly subject?: string;
  readonly allow?: Allow;
  readonly mapError?: MapError;
  /** Milliseconds after which a list of several sources leaves out this source. By default, the list waits for it. */
  readonly listMs?: number;
  list(call: Call, range: SourceRange): Promise<SourcePage>;
}

/**
 * Whether a provider without a scheme owns a URI: no other provider serves it, even while this provider does not. With
 * `templates`, whether the provider owns a template with this text, or one that matches the URI.
 */
export type Owns = (uri: string, list: "list" | "templates") => boolean;

/** The resources or templates that a function of the author lists for a caller. */
export interface Listing {
  /** Returns a page of about `size` entries, which are not checked. */
  readonly page: (call: Call, ctx: undefined, cursor: string | undefined, size: number) => Promise<SourcePage>;
  /** Returns the entries as clients receive them, without entries that cannot be sent. */
  readonly check: (call: Call, items: readonly unknown[]) => Promise<readonly object[]>;
}

export interface ListParts {
  readonly fixed: readonly Entry[];
  readonly sources: readonly Source[];
}

/**
 * Creates the method that lists registered entries first, and then the entries of the sources. A page can contain entries
 * of both. A cursor for a source consists of a line break, the key of the source at which to continue, another line break
 * and the cursor of the source. The first line break distinguishes such a cursor from the cursors of registered entries,
 * because no key contains a line break.
 */
export function listSources(name: string, { fixed, sources }: ListParts, core: FeatureParts): Method {
  if (!sources.length) return toMethod(createList(name, fixed, core), { list: name });
  // Bind the cursors to the caller, because the lists of sources may depend on the caller.
  const cursors = new Cursors(core, name, true);
  const listFixed = createList(name, fixed, core, true);
  const isOnly = sources.length + Math.min(fixed.length, 1) === 1;

  async function run(call: Call): Promise<Result> {
    const place = await cursors.read(call);
    return place?.startsWith("\n") ? await listFrom(place, [], call) : await listBoth(call);
  }

  async function listBoth(call: Call): Promise<Result> {
    const page = await listFixed.run(call);
    const { [name]: items, nextCursor } = page;
    if (nextCursor !== undefined || !Array.isArray(items)) return page;
    return await listFrom(`\n${sources[0].key}`, items, call);
  }

  async function listFrom(place: string, first: readonly unknown[], call: Call): Promise<Result> {
    const { pageItems: size } = core.limits.calls;
    const [, next, ...rest] = place.split("\n");
    const from = sources.findIndex(({ key }) => key === next);
    if (from < 0) throw cursors.refuse(call);
    let cursor = rest.length ? rest.join("\n") : undefined;
    let items = first;
    let head: Result = {};
    for (const source of sources.slice(from)) {
      const { key, subject = key, allow, mapError } = source;
      if (!await isAllowed(allow, call, core)) continue;
      const toPage = async (own = "") => {
        const nextCursor = await cursors.write(`\n${key}${own}`, call);
        return { ...head, [name]: items, nextCursor };
      };
      if (items.length >= size) return await toPage();
      const range: SourceRange = { cursor, size, before: items };
      const page = isOnly
        ? await attempt({ core, call, subject, mapError }, () => source.list(call, range))
        : await listUnlessDown(source, call, range);
      head = page ? withMembers(head, page.given) : withHints(head, { ttlMs: 0 });
      if (!page) {
        cursor = undefined;
        continue;
      }
      // Middleware may otherwise change objects that the author's function returns to every caller.
      items = items.concat(core.hasMiddleware ? toFrozen(page.items) : page.items);
      if (page.nextCursor !== undefined) return await toPage(`\n${page.nextCursor}`);
      cursor = undefined;
    }
    return { ...head, [name]: items };
  }

  /**
   * Returns `undefined` if the source fails or is too slow, after reporting the first failure. Announces a change of the
   * list when the source is back. Throws what is meant for the client.
   */
  async function listUnlessDown(source: Source, call: Call, range: SourceRange): Promise<SourcePage | undefined> {
    const { key, subject = key, listMs: ms = Infinity } = source;
    const id = `${name} ${key}`;
    const outages = Outages.of(core, call);
    const onTimeout = () => {
      throw new DOMException(`Cannot list ${name}: it took longer than ${ms} ms (listMs)`, "TimeoutError");
    };
    try {
      const page = await deadline(source.list(call, range), { ms, clock: core.ticker, onTimeout });
      // A source whose second page fails is not back with its first page.
      if (page.nextCursor !== undefined) return page;
      outages.end(id);
      if (outages.takeMissed(id, call.caller)) call.server.listChanged(toListName(name));
      return page;
    } catch (error) {
      if (call.ended || isMcpError(error)) throw error;
      outages.miss(id, call.caller);
      if (outages.begin(id) && !reportedErrors.has(Object(error))) core.report(error, { method: call.method, subject });
    }
  }

  return toMethod({ run, cache: { ttlMs: core.ttlMs, scope: "private" } });
}

/** Reads the option `listMs`. `action` completes the error message "Cannot …". */
export function readListMs(listMs: number | undefined, action: string): number | undefined {
  if (listMs === undefined || listMs > 0) return listMs;
  throw new TypeError(`Cannot ${action}: listMs is ${show(listMs)}; it must be a number of milliseconds above 0`);
}

/** Adds what a page says about itself to the result: its metadata, and how long it may be cached. */
function withMembers({ _meta: before, ...head }: Result, { _meta, ...hints }: Params = {}): Result {
  const own = withoutReserved({ _meta: isObject(_meta) ? _meta : undefined })._meta;
  const meta = isObject(before) || own ? { _meta: { ...own, ...Object(before) } } : {};
  return withHints({ ...head, ...meta }, hints);
}

function toListName(name: string): ListName {
  return name === "tools" || name === "prompts" ? name : "resources";
}

export interface PageStart {
  /** The cursor for `list`. `undefined` for its first page. */
  readonly own: string | undefined;
  /** Number of entries to skip, if `list` returns an array. */
  readonly from: number;
}

/** Reads a cursor that {@linkcode readPage} has returned. */
export function readStart(cursor = "0"): PageStart {
  const [, from, own] = /^(\d+)(?: (.*))?$/s.exec(cursor) ?? [];
  return { own, from: Number(from) };
}

/** An array that `list` of a source has returned for an inner call, which has more pages. */
interface Listed {
  readonly source: object;
  readonly own: string | undefined;
  readonly all: readonly unknown[];
}

/** The array of which a handler reads the pages, by the call of the handler. */
const listing = new WeakMap<Call, Listed>();

export interface ListUse {
  readonly source: object;
  readonly start: PageStart;
  readonly size: number;
}

/**
 * Calls `list` of a source for a page. If `list` has returned an array for an earlier page of the same inner list, returns
 * this array. Otherwise a search among 3,000 tools would create all of them for each of its 12 pages.
 */
export async function callList(
  call: Call,
  { source, start: { own, from }, size }: ListUse,
  list: () => unknown,
): Promise<unknown> {
  const { outer } = call.host;
  const known = outer && from ? listing.get(outer) : undefined;
  const isKnown = known?.source === source && known.own === own;
  const listed = isKnown ? known.all : await call.startHandler(list);
  if (!outer) return listed;
  if (Array.isArray(listed) && listed.length > from + size) listing.set(outer, { source, own, all: listed });
  else listing.delete(outer);
  return listed;
}

export interface PageOptions {
  /** The list, such as `tools`. */
  readonly list: string;
  readonly start: PageStart;
  readonly size: number;
  /** URI template, scheme or name, for error messages. */
  readonly place: string;
}

/** Reads the return value of `list`: a page, or all entries. Throws if the value is neither. */
export function readPage(
  listed: unknown,
  { list, start, size, place }: PageOptions,
): SourcePage {
  const refuse = (state: string) => new TypeError(`Cannot list the ${list} of ${place}: ${state}`);
  if (Array.isArray(listed)) return cut(listed, start, size);
  const given: Params = Object(listed);
  const { [list]: items, nextCursor } = given;
  if (!Array.isArray(items)) {
    throw refuse(`list returned neither an array of ${list} nor a page; return { ${list}, nextCursor }`);
  }
  // Without a next page, many databases return `null`.
  if (nextCursor === undefined || nextCursor === null) return { items, given };
  if (typeof nextCursor === "string") return { items, given, nextCursor: `0 ${nextCursor}` };
  throw refuse(`nextCursor is ${show(nextCursor)}; return a string, or omit nextCursor on the last page`);
}

// The next page of an array needs the same cursor for `list` again.
function cut(all: readonly unknown[], { own, from }: PageStart, size: number): SourcePage {
  const end = from + size;
  const nextCursor = own === undefined ? `${end}` : `${end} ${own}`;
  return { items: all.slice(from, end), nextCursor: end < all.length ? nextCursor : undefined };
}
