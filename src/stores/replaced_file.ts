/**
 * Detects that a database file was replaced or removed. Without this check, a process with the old file open would
 * share nothing with processes that open the new file.
 */
import { systemClock } from "../core/timers.ts";
import type { Awaitable } from "../server/engine/store.ts";

/** Minimum milliseconds between two checks. */
const LOOK_MS = 500;

export interface FileWatchOptions<T> {
  /** Opens the database again. */
  readonly open: () => Awaitable<T>;
  /** Returns the id of a database. Gives an id to a new database. */
  readonly identify: (db: T) => unknown;
}

/** Compares the open file with the file that is now at the same path. */
export class FileWatch<T extends { close(): unknown }> {
  readonly #db: T;
  readonly #id: unknown;
  readonly #options: FileWatchOptions<T>;
  #lookAt: number = systemClock.now();
  /**
   * Whether the database is a file. An in-memory database is not checked, because opening it again always creates
   * another database. `undefined` until the first check.
   */
  #isFile?: boolean;
  #isReplaced = false;

  /** `id` identifies the open database. If `open` or `identify` throws later, the file counts as unchanged. */
  constructor(db: T, id: unknown, options: FileWatchOptions<T>) {
    this.#db = db;
    this.#id = id;
    this.#options = options;
  }

  /** Throws if an earlier check found that the file was replaced. */
  check(): void {
    if (this.#isReplaced) throw new Error("the database file was replaced");
    const now = systemClock.now();
    if (now < this.#lookAt) return;
    this.#lookAt = Infinity;
    void this.#look();
  }

  async #look(): Promise<void> {
    try {
      const found = await this.#identify();
      // The file may have been replaced before the first check. It is a file if it has the same id when it is opened
      // once more.
      this.#isFile ??= found === this.#id || found === await this.#identify();
      if (!this.#isFile) return;
      this.#isReplaced = found !== this.#id;
    } catch {
      // If the file cannot be opened, no process can use another file instead.
    }
    this.#lookAt = systemClock.now() + LOOK_MS;
  }

  async #identify(): Promise<unknown> {
    const { open, identify } = this.#options;
    const other = await open();
    // If `open` always returns the same database, a replaced file cannot be detected.
    if (other === this.#db) return this.#id;
    try {
      return await identify(other);
    } finally {
      other.close();
    }
  }
}
