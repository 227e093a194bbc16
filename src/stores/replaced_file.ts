/**
 * Detects that a database file was replaced or removed. Without this check, a process with the old file open would
 * share nothing with processes that open the new file.
 */
import { systemClock } from "../core/timers.ts";

/** Minimum milliseconds between two checks. */
const LOOK_MS = 500;

/** Compares the open file with the file that is now at the same path. */
export class FileWatch {
  readonly #isSame: () => Promise<boolean>;
  #lookAt: number = systemClock.now();
  /**
   * Whether the first check found the same file. `false` for an in-memory database, which is not checked, because
   * opening it again always creates another database.
   */
  #isFile?: boolean;
  #isReplaced = false;

  /**
   * `isSame` opens the database again, and tests whether both connections are to the same database. If `isSame` throws,
   * the file counts as unchanged.
   */
  constructor(isSame: () => Promise<boolean>) {
    this.#isSame = isSame;
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
      const isSame = await this.#isSame();
      this.#isFile ??= isSame;
      if (!this.#isFile) return;
      this.#isReplaced = !isSame;
    } catch {
      // If the file cannot be opened, no process can use another file instead.
    }
    this.#lookAt = systemClock.now() + LOOK_MS;
  }
}
