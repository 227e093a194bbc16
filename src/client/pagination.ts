/**
 * Reads all pages of a list. The limits apply to the whole list, because a server could send an endless number of small
 * pages.
 */
import type { Result } from "../core/protocol/jsonrpc.ts";
import { checkTimeout } from "./deadline.ts";

const MAX_PAGES = 1000;
/** Maximum number of items on all pages together. */
export const MAX_ITEMS = 1_000_000;
/** Maximum number of characters in the JSON of all pages together. */
const MAX_CHARACTERS = 64 * 1024 * 1024;
/** Timeout for reading all pages, as a multiple of the timeout for one request. */
const MAX_TIMEOUTS = 10;

export interface PagesOptions {
  /** The kind of items, such as `tools`, for error messages. */
  readonly what: string;
  /** Timeout for requesting one page, in milliseconds. */
  readonly timeoutMs: number;
  /** Returns `undefined` if the server does not support the list. */
  request(params: { readonly cursor?: unknown }, timeoutMs: number): Promise<Result | undefined>;
}

/** Throws if the list exceeds a limit. */
export async function* readPages({ what, timeoutMs, request }: PagesOptions): AsyncGenerator<Result> {
  checkTimeout(timeoutMs, "timeoutMs");
  const mostMs = timeoutMs * MAX_TIMEOUTS;
  const started = performance.now();
  let characters = 0;
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const leftMs = Math.ceil(mostMs - (performance.now() - started));
    if (leftMs <= 0) {
      throw new DOMException(
        `Cannot list ${what}: reading all pages takes longer than ${mostMs} ms; increase timeoutMs`,
        "TimeoutError",
      );
    }
    const result = await request(cursor === undefined ? {} : { cursor }, Math.min(timeoutMs, leftMs));
    if (!result) return;
    yield result;
    const { nextCursor } = result;
    if (nextCursor === undefined || nextCursor === null) return;
    // Accept a repeated cursor, because cursors are opaque. The limits end an endless list.
    cursor = nextCursor;
    characters += JSON.stringify(result).length;
    if (characters > MAX_CHARACTERS) {
      throw new RangeError(`Cannot list ${what}: the pages have more than ${MAX_CHARACTERS} characters`);
    }
  }
  throw new RangeError(`Cannot list ${what}: the list has more than ${MAX_PAGES} pages`);
}
