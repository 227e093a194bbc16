/**
 * The number of entries or values to read at once. Clients choose the size of many entries, so a page of a fixed number
 * of entries could take longer than the timeout of an operation, and every repetition would fail too.
 */

export class PageSize {
  #size = FIRST;

  get size(): number {
    return this.#size;
  }

  /** Adapts the size to a page that was read: the total number of characters of its entries. */
  succeed(characters: number): void {
    if (characters > FULL_CHARACTERS) this.fail();
    else this.#size = Math.min(2 * this.#size, MAX);
  }

  /** Makes the next page smaller, because a read has failed. Returns `false` if the failed page had only one entry. */
  fail(): boolean {
    const before = this.#size;
    this.#size = Math.max(1, Math.floor(before / 4));
    return before > 1;
  }
}

/** Reads a page. If the read fails, tries smaller pages. Rejects if a page of one entry cannot be read. */
export async function readPage<T>(
  page: PageSize,
  read: (limit: number) => Promise<T>,
  toEntries: (read: T) => readonly { readonly value: string }[],
): Promise<T> {
  while (true) {
    try {
      const found = await read(page.size);
      page.succeed(toEntries(found).reduce((sum, { value }) => sum + value.length, 0));
      return found;
    } catch (error) {
      if (!page.fail()) throw error;
    }
  }
}

/** Number of entries of the first page. Two failures in a row reach pages of one entry, and three replace an engine. */
const FIRST = 16;

/** Maximum number of entries per page. */
const MAX = 1000;

/** Number of characters of a page after which the next page is smaller. It is read in far less than a second. */
const FULL_CHARACTERS = 1_048_576;
