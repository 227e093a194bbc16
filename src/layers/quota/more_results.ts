/**
 * Cuts large results of tools into pages that fit: lists between their items, and texts between their lines. The first
 * page is the result, and the tool returns the others for its argument `more`.
 */
import { quote } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import { restoreText, withStructured } from "../../core/protocol/text_copy.ts";
import type { Content } from "../../core/protocol/types.ts";
import { compileSchema } from "../../core/schema/schema_compiler.ts";
import { show } from "../../core/known_options.ts";
import type { Argument, Member } from "../../server/engine/added.ts";
import { argument, member } from "../../server/handlers/added_parts.ts";
import { isContent, toText } from "../../server/handlers/content_checks.ts";

/** The argument with which a client gets the rest of a result. */
export const MORE: Argument<string> = /* @__PURE__ */ argument({
  name: "more",
  schema: {
    type: "string",
    description: "Only to get the rest of an earlier result of this tool: the value that the result names",
  },
});

/** What a page has in its structured content. */
export const PAGE: Member<PageInfo> = /* @__PURE__ */ member({
  name: "more",
  schema: {
    type: "object",
    description: "Which part of a large result this is, and how to get the rest",
    properties: {
      shown: { type: "string" },
      total: { type: "integer" },
      next: { type: "string" },
      cursor: { type: "string" },
      how: { type: "string" },
    },
    required: ["shown", "total"],
  },
});

interface PageInfo {
  /** The numbers of the items, such as `1 to 10`. */
  readonly shown: string;
  /** Number of all items. */
  readonly total: number;
  /** The value of the argument `more` for the next page. */
  readonly next?: string;
  /** Cursor of the tool itself for the next items. */
  readonly cursor?: string;
  /** How to get the next page. */
  readonly how?: string;
}

export interface MoreOptions {
  /** Name of the tool. */
  readonly tool: string;
  readonly items?: (structuredContent: never) => readonly unknown[] | undefined;
  readonly cursorAfter?: (item: never) => string;
  /** Whether a result has the permitted size. */
  readonly fits: (result: Result) => boolean;
  /** Maximum length of all pages together as JSON, in characters. Each page repeats what is not in the list. */
  readonly most: number;
  /** Returns the value of `more` for a page, of which the first has the number 1. */
  readonly toNext: (page: number) => string;
}

/** Names of members in which tools return the cursor of their next page. */
const CURSOR = /^((next_?)?(cursor|page_?token)|next_?token)$/i;

/** Returns the pages of a result, or `undefined` if the result cannot be cut. `schema` is the tool's output schema. */
export async function toPages(
  result: Result,
  schema: unknown,
  options: MoreOptions,
): Promise<readonly Result[] | undefined> {
  const { structuredContent, isError } = result;
  if (structuredContent === undefined || isError) return cutContent(result, options);
  const pages = cutList(result, options);
  for (const { structuredContent } of isObject(schema) ? pages ?? [] : []) {
    // Such as for a list that must have at least five items.
    if (structuredContent !== undefined && !await isValid(structuredContent, Object(schema))) return;
  }
  return pages;
}

async function isValid(value: unknown, schema: Record<string, unknown>): Promise<boolean> {
  try {
    return (await compileSchema(schema, { use: "output", place: "a result" }).validate(value)).problem === undefined;
  } catch {
    // The schema of another server may be invalid.
    return false;
  }
}

/**
 * Returns the largest number from 1 to `max` for which `fits` is `true`, or 0. Begins at `guess`, because most pages have
 * about as many items as the page before.
 */
function findMost(max: number, fits: (count: number) => boolean, guess = 1): number {
  let [most, over, step] = [0, max + 1, 1];
  for (let at = Math.min(guess, max); at > most && at < over; step *= 2) {
    if (fits(at)) [most, at] = [at, Math.min(at + step, max)];
    else [over, at] = [at, Math.max(at - step, most)];
  }
  while (over - most > 1) {
    const middle = (most + over) >> 1;
    if (fits(middle)) most = middle;
    else over = middle;
  }
  return most;
}

function cutList(result: Result, options: MoreOptions): readonly Result[] | undefined {
  const { structuredContent: whole } = result;
  const { tool, cursorAfter, fits, most, toNext } = options;
  const list = findList(whole, options);
  let hasCursor = false;
  mapCursors(whole, (cursor) => hasCursor ||= typeof cursor === "string");
  // Otherwise the cursor of the tool would skip the items that are not shown, or its results would be cut twice.
  if (
    !list?.length || JSON.stringify(result).length > most || hasCursor && !cursorAfter ||
    Object.hasOwn(Object(whole), PAGE.name)
  ) return;
  // Without the items, because each page would otherwise look for the text copy of the whole result.
  const base = withStructured(result, replace(whole, list, []));
  const own = Array.isArray(base.content) ? base.content : [];
  const total = list.length;
  const toPage = (from: number, count: number, number: number): Result => {
    const to = from + count;
    const after = to < total
      ? cursorAfter ? { cursor: readCursor(cursorAfter, list[to - 1], tool) } : { next: toNext(number + 1) }
      : {};
    const how = "cursor" in after
      ? `For the next items, call ${tool} again with its own cursor ${quote(after.cursor)}.`
      : "next" in after
      ? `For the next items, call ${tool} again with the same arguments and more: ${quote(after.next)}.`
      : undefined;
    const shown = count > 1 ? `${from + 1} to ${to}` : `${to}`;
    const info: PageInfo = { shown, total, ...after, ...how && { how } };
    const part = replace(whole, list, list.slice(from, to));
    const shownPart = "cursor" in after ? mapCursors(part, () => after.cursor) : part;
    const structuredContent = Array.isArray(shownPart) ? shownPart : { ...Object(shownPart), [PAGE.name]: info };
    const page = withStructured({ ...base, content: from ? own.filter(isCopied) : own }, structuredContent);
    const note = toText(`[Items ${shown} of ${total}.${how ? ` ${how}` : ""}]`);
    return { ...page, content: [...Object(page).content, note] };
  };
  const pages: Result[] = [];
  let [length, count] = [0, 1];
  for (let from = 0; from < total;) {
    const number = pages.length + 1;
    count = findMost(total - from, (count) => fits(toPage(from, count, number)), count || 1);
    const page = count ? toPage(from, count, number) : toTooLarge(from, total, { tool, next: toNext(number + 1) });
    length += JSON.stringify(page).length;
    if (!count && !from || length > most) return;
    pages.push(page);
    from += count || 1;
    if (cursorAfter) break;
  }
  return pages;
}

/** Text blocks stand on each page, because one of them may be the text copy. Media stand on the first page. */
function isCopied(block: unknown): boolean {
  return Object(block).type === "text";
}

/** Returns an error for an item that does not fit. The next page has the items after it. */
function toTooLarge(
  at: number,
  total: number,
  { tool, next }: { readonly tool: string; readonly next: string },
): Result {
  const rest = at + 1 < total ? ` For the items after it, call ${tool} again with more: ${quote(next)}.` : "";
  return { content: [toText(`Item ${at + 1} of ${total} is too large to be shown.${rest}`)], isError: true };
}

function findList(whole: unknown, { tool, items }: MoreOptions): readonly unknown[] | undefined {
  const refuse = (state: string) => new TypeError(`Cannot cut the result of tool ${quote(tool)}: ${state}`);
  if (items) {
    const list: unknown = items(whole as never); // The cast is safe, because the author knows the type of the result.
    if (list === undefined) return;
    if (!Array.isArray(list)) throw refuse(`items returned ${show(list)}; return a list of the result, or undefined`);
    if (replace(whole, list, undefined) !== whole) return list;
    throw refuse("items returned a list that is not in the result; return the list itself, and no copy");
  }
  if (Array.isArray(whole)) return whole;
  const lists = Object.entries(Object(whole)).filter(([, value]) => Array.isArray(value));
  if (lists.length < 2) return lists[0]?.[1] as readonly unknown[] | undefined; // The cast is safe because of the filter.
  throw refuse(`it has the lists ${lists.map(([name]) => name).join(", ")}; set items to the list to cut`);
}

/** Returns the value with another list in the place of `list`. Returns the value itself if it does not contain `list`. */
function replace(value: unknown, list: readonly unknown[], other: unknown): unknown {
  if (value === list) return other;
  if (!isObject(value)) return value;
  for (const [name, part] of Object.entries(value)) {
    const changed = replace(part, list, other);
    if (changed !== part) return { ...value, [name]: changed };
  }
  return value;
}

/** Returns a value with other cursors. A cursor may be deeper in the value, beside the list, but not in an item of a list. */
function mapCursors(value: unknown, change: (cursor: unknown) => unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      const isCursor = CURSOR.test(name) && !isObject(part) && !Array.isArray(part);
      return [name, isCursor ? change(part) : mapCursors(part, change)];
    }),
  );
}

function readCursor(cursorAfter: NonNullable<MoreOptions["cursorAfter"]>, item: unknown, tool: string): string {
  const cursor: unknown = cursorAfter(item as never); // The cast is safe, because the author knows the type of the items.
  if (typeof cursor === "string" && cursor) return cursor;
  const remedy = "return the cursor with which the tool continues after the item";
  throw new TypeError(`Cannot cut the result of tool ${quote(tool)}: cursorAfter returned ${show(cursor)}; ${remedy}`);
}

/** The number of pages in notes that are measured before the number is known. */
const MOST_PAGES = 99_999;

function cutContent(result: Result, { tool, fits, most, toNext }: MoreOptions): readonly Result[] | undefined {
  const { content } = restoreText(result);
  let left: readonly Content[] = Array.isArray(content) ? content.filter(isContent) : [];
  if (JSON.stringify(left).length > most) return;
  const parts: (readonly Content[])[] = [];
  const toPage = (blocks: readonly Content[], number: number, count: number): Result => {
    const next = number < count
      ? ` For the rest, call ${tool} again with the same arguments and more: ${quote(toNext(number + 1))}.`
      : "";
    return { ...result, content: [...blocks, toText(`[Part ${number} of ${count}.${next}]`)] };
  };
  while (left.length) {
    if (parts.length === MOST_PAGES) return;
    const fitsPage = (blocks: readonly Content[]) => fits(toPage(blocks, parts.length + 1, MOST_PAGES));
    const whole = findMost(left.length, (count) => fitsGrowing(left.slice(0, count), fitsPage));
    const part = left.slice(0, whole);
    const [next, ...others] = left.slice(whole);
    const [start, rest] = next?.type === "text"
      ? cutLines(next.text, (text) => fitsPage([...part, { ...next, text }]), whole > 0)
      : ["", ""];
    if (start && next?.type === "text") {
      parts.push([...part, { ...next, text: start }]);
      left = [{ ...next, text: rest }, ...others];
    } else if (whole) {
      parts.push(part);
      left = left.slice(whole);
    } else {
      if (next.type === "text") return;
      const type = "mimeType" in next ? next.mimeType : next.type;
      left = [toText(`[Left out, because it is too large: ${type}]`), ...others];
    }
  }
  return parts.map((part, at) => toPage(part, at + 1, parts.length));
}

/** Looks at the beginning of long texts first, because the rest of a text would be read again for each page. */
function fitsGrowing(blocks: readonly Content[], fits: (blocks: readonly Content[]) => boolean): boolean {
  const toLength = (block: Content) => block.type === "text" ? block.text.length : 0;
  const longest = blocks.reduce((longest, block) => Math.max(longest, toLength(block)), 0);
  for (let length = WINDOW; length < longest; length *= 2) {
    const start = (block: Content) => block.type === "text" ? { ...block, text: block.text.slice(0, length) } : block;
    if (!fits(blocks.map(start))) return false;
  }
  return fits(blocks);
}

/** Cuts a text after the last line that fits. Cuts within the first line only if it must. */
function cutLines(whole: string, fits: (text: string) => boolean, isLater: boolean): readonly [string, string] {
  // Look at the beginning only, because the rest of a long text would be read again for each page.
  let length = Math.min(whole.length, WINDOW);
  while (length < whole.length && fits(whole.slice(0, length))) length = Math.min(whole.length, 2 * length);
  const text = whole.slice(0, length);
  const ends = Array.from(text.matchAll(/\n|$/g), ({ index }) => Math.min(index + 1, text.length));
  const lines = findMost(ends.length, (count) => fits(text.slice(0, ends[count - 1])));
  const end = lines ? ends[lines - 1] : isLater ? 0 : findMost(text.length, (end) => fits(text.slice(0, end)));
  // Do not cut between the halves of a character.
  const half = /[\ud800-\udbff]/.test(text[end - 1] ?? "") ? 1 : 0;
  return [whole.slice(0, end - half), whole.slice(end - half)];
}

/** Number of characters of a text that are first searched for a place to cut. */
const WINDOW = 16_384;
