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
  /** Values that are being computed. While a function has not returned, there is no promise yet. */
  readonly #making = new Map<string, Promise<string> | undefined>();

  /**
   * Returns a copy of the value, and computes it if it does not exist. After a failure, it is computed again.
   *
   * @throws {TypeError} if the value would wait for itself.
   */
  async get(key: string, make: () => unknown): Promise<unknown> {
    if (this.#making.has(key) && isComputing(this, key)) throw toOwnWait(key);
    return JSON.parse(this.made.get(key) ?? await (this.#making.get(key) ?? this.#make(key, make)));
  }

  async #make(key: string, make: () => unknown): Promise<string> {
    this.#making.set(key, undefined);
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
