/**
 * Detects that the file of a database was replaced or removed. A process that has it open would continue with the old file,
 * and share nothing with processes that open the new file.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";

/** Milliseconds between two looks, while the database is used. */
const LOOK_MS = 500;

/** Compares the open file with the one that would be opened now. */
export class FileWatch {
  readonly #isSame: () => Promise<boolean>;
  #lookAt: number = systemClock.now();
  /** Whether it was the same at the first look. A database in memory never is. */
  #isFile?: boolean;
  #isReplaced = false;

  /** `isSame` opens the database once more, and tests whether it is the same. What it throws counts as the same. */
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
      // A file that cannot be opened now cannot be used instead.
    }
    this.#lookAt = systemClock.now() + LOOK_MS;
  }
}
