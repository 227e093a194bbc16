/**
 * Detects that the file of a database was replaced or removed. A process that has the file open would continue with the
 * old file, and share nothing with processes that open the new file.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";

/** Milliseconds between two checks while the database is used. */
const LOOK_MS = 500;

/** Compares the open file with the file that would be opened now. */
export class FileWatch {
  readonly #isSame: () => Promise<boolean>;
  #lookAt: number = systemClock.now();
  /**
   * Whether the first check found the same file. An in-memory database is never the same when it is opened again, so it
   * is not checked.
   */
  #isFile?: boolean;
  #isReplaced = false;

  /**
   * Creates a watch. `isSame` opens the database once more, and tests whether it is the same database. If `isSame`
   * throws, the file counts as unchanged.
   */
  constructor(isSame: () => Promise<boolean>) {
    this.#isSame = isSame;
  }

  /** Throws if the file was replaced. */
  check(): void {
    if (this.#isReplaced) throw new Error("the file of the database was replaced");
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
