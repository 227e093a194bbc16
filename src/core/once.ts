/**
 * Computes the values of `ctx.once`.
 *
 * @module
 */
import { compute, isComputing, toOwnWait } from "./computing.ts";

/** The values of one call, which is one for all rounds of questions. */
export class OnceValues {
  /** The JSON of each value that has been computed, by key. */
  readonly made: Map<string, string> = new Map();
  readonly #making = new Map<string, Promise<string>>();

  /**
   * Returns a copy of the value, and computes it if it does not exist. After a failure, it is computed again.
   *
   * @throws {TypeError} if the value would wait for itself.
   */
  async get(key: string, make: () => unknown): Promise<unknown> {
    const making = this.#making.get(key);
    if (making && isComputing(this, key)) throw toOwnWait(key);
    return JSON.parse(this.made.get(key) ?? await (making ?? this.#make(key, make)));
  }

  async #make(key: string, make: () => unknown): Promise<string> {
    const making = compute(this, key, () => toJson(make));
    this.#making.set(key, making);
    try {
      const json = await making;
      this.made.set(key, json);
      return json;
    } finally {
      this.#making.delete(key);
    }
  }
}

async function toJson(make: () => unknown): Promise<string> {
  return JSON.stringify(await make()) ?? "null";
}
