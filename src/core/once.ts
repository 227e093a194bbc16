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

  /**
   * Returns a copy of the value, and computes it if it does not exist. After a failure, it is computed again.
   *
   * @throws {TypeError} if the value would wait for itself.
   */
  async get(key: string, make: () => unknown): Promise<unknown> {
    const making = this.#making.get(key);
    if (making) (await load()).refuseOwnWait(this, key);
    return JSON.parse(this.made.get(key) ?? await (making ?? this.#make(key, make)));
  }

  async #make(key: string, make: () => unknown): Promise<string> {
    const making = this.#toJson(key, make);
    this.#making.set(key, making);
    try {
      const json = await making;
      this.made.set(key, json);
      return json;
    } finally {
      this.#making.delete(key);
    }
  }

  async #toJson(key: string, make: () => unknown): Promise<string> {
    const { compute } = await load();
    return JSON.stringify(await compute(this, key, make)) ?? "null";
  }
}

function load(): Promise<typeof import("./computing.ts")> {
  return import("./computing.ts");
}
