/**
 * Reads all pages of a list. The limits apply to the whole list, because a server could send small pages without end.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import { checkTimeout } from "./delay.ts";

const MAX_PAGES = 1000;
/** Maximum number of items of a whole list. */
export const MAX_ITEMS = 1_000_000;
/** Maximum length of a whole list as JSON, in characters. A single page may have this length too. */
const MAX_CHARACTERS = 64 * 1024 * 1024;
/** Timeout of a whole list, as a multiple of the timeout of one request. */
const MAX_TIMEOUTS = 10;

/** The options of {@linkcode readPages}. */
export interface PagesOptions {
  /** The kind of items, for error messages. */
  readonly what: string;
  /** Timeout of the request for one page, in milliseconds. */
  readonly timeoutMs: number;
  /** Requests a page within `timeoutMs` milliseconds. Returns `undefined` if the server does not have the list. */
  request(params: { readonly cursor?: unknown }, timeoutMs: number): Promise<Result | undefined>;
}

/** Yields the pages of a list. Throws if the list exceeds a limit. */
export async function* readPages({ what, timeoutMs, request }: PagesOptions): AsyncGenerator<Result> {
  checkTimeout(timeoutMs, "timeoutMs");
  const mostMs = timeoutMs * MAX_TIMEOUTS;
  const started = performance.now();
  let characters = 0;
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const leftMs = Math.ceil(mostMs - (performance.now() - started));
    if (leftMs <= 0) throw new DOMException(`Cannot list ${what}: it takes longer than ${mostMs} ms`, "TimeoutError");
    const result = await request(cursor === undefined ? {} : { cursor }, Math.min(timeoutMs, leftMs));
    if (!result) return;
    yield result;
    const { nextCursor } = result;
    if (nextCursor === undefined || nextCursor === null) return;
    // A repeated cursor is allowed, because cursors are opaque. Only the limits end an endless list.
    cursor = nextCursor;
    characters += JSON.stringify(result).length;
    if (characters > MAX_CHARACTERS) {
      throw new RangeError(`Cannot list ${what}: the pages have more than ${MAX_CHARACTERS} characters`);
    }
  }
  throw new RangeError(`Cannot list ${what}: there are more than ${MAX_PAGES} pages`);
}
