/**
 * Reads lists that come in pages, within bounds that hold for all pages together: a server can send pages without end,
 * each of them small and in time.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import { checkTimeout } from "./delay.ts";

const MOST_PAGES = 1000;
/** How many items all pages together may have. */
export const MOST_ITEMS = 1_000_000;
/** Characters that all pages together may have as JSON; one page alone may have as many. */
const MOST_CHARACTERS = 64 * 1024 * 1024;
/** How often the timeout of one request all pages together may take. */
const MOST_TIMEOUTS = 10;

/** What a list is read with. */
export interface PagesOptions {
  /** What is listed, for error messages. */
  readonly what: string;
  /** Milliseconds for one page. */
  readonly timeoutMs: number;
  /** Requests a page, in `timeoutMs` milliseconds; `undefined` if the server has no such list. */
  request(params: { readonly cursor?: unknown }, timeoutMs: number): Promise<Result | undefined>;
}

/** The pages of a list, one after the other. Throws if they exceed the bounds. */
export async function* readPages({ what, timeoutMs, request }: PagesOptions): AsyncGenerator<Result> {
  checkTimeout(timeoutMs, "timeoutMs");
  const mostMs = timeoutMs * MOST_TIMEOUTS;
  const started = performance.now();
  let characters = 0;
  let cursor: unknown;
  for (let page = 0; page < MOST_PAGES; page++) {
    const leftMs = Math.ceil(mostMs - (performance.now() - started));
    if (leftMs <= 0) throw new DOMException(`Cannot list ${what}: it takes longer than ${mostMs} ms`, "TimeoutError");
    const result = await request(cursor === undefined ? {} : { cursor }, Math.min(timeoutMs, leftMs));
    if (!result) return;
    yield result;
    const { nextCursor } = result;
    if (nextCursor === undefined || nextCursor === null) return;
    // Opaque: a server may well give the same one twice, so that only the bounds end a list.
    cursor = nextCursor;
    characters += JSON.stringify(result).length;
    if (characters > MOST_CHARACTERS) {
      throw new RangeError(`Cannot list ${what}: the pages have more than ${MOST_CHARACTERS} characters`);
    }
  }
  throw new RangeError(`Cannot list ${what}: there are more than ${MOST_PAGES} pages`);
}
