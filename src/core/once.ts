/**
 * Computes the values of `ctx.once`.
 *
 * @module
 */

/** The values of one call, which is one for all rounds of questions. */
export class OnceValues {
  /** The JSON of each value that has been computed, by key. */
  readonly made: Map<string, string> = new Map();
  readonly #making = new Map<string, Promise<string>>();

  /** Returns a copy of the value, and computes it if it does not exist. After a failure, it is computed again. */
  async get(key: string, make: () => unknown): Promise<unknown> {
    const json = this.made.get(key) ?? await (this.#making.get(key) ?? this.#make(key, make));
    return JSON.parse(json);
  }

  async #make(key: string, make: () => unknown): Promise<string> {
    const making = toJson(make);
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
