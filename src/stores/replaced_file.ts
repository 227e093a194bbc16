/**
 * Detects that a database file was replaced or removed. Without this check, a process with the old file open would
 * share nothing with processes that open the new file.
 */
import { systemClock } from "../core/timers.ts";

/** Minimum milliseconds between two checks. */
const LOOK_MS = 500;

/** Compares the open file with the file that is now at the same path. */
export class FileWatch {
  readonly #id: unknown;
  readonly #identify: () => Promise<unknown>;
  #lookAt: number = systemClock.now();
  /**
   * Whether the database is a file. An in-memory database is not checked, because opening it again always creates
   * another database. `undefined` until the first check.
   */
  #isFile?: boolean;
  #isReplaced = false;

  /**
   * `id` identifies the open database. `identify` opens the database again, and returns the id that it finds there; it
   * gives an id to a new database. If `identify` throws, the file counts as unchanged.
   */
  constructor(id: unknown, identify: () => Promise<unknown>) {
    this.#id = id;
    this.#identify = identify;
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
}
