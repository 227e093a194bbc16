/**
 * Computes the values of `ctx.once`.
 *
 * @module
 */

import { quote } from "../../protocol/errors.ts";
import type { Bounds } from "../capacity/limits.ts";

const encoder = new TextEncoder();

/** The values of one call, which is one for all rounds of questions. */
export class OnceValues {
  readonly #stateBytes: number;
  /** The JSON of each value that has been computed, by key. */
  readonly made: Map<string, string> = new Map();
  readonly #making = new Map<string, Promise<string>>();

  /** Creates an empty set, which holds at most half of the bytes that the state of a call may have. */
  constructor({ limits }: { readonly limits: Pick<Bounds["calls"], "stateBytes"> }) {
    this.#stateBytes = limits.stateBytes;
  }

  /** Returns a copy of the value, and computes it if it does not exist. After a failure, it is computed again. */
  async get(key: string, make: () => unknown): Promise<unknown> {
    const json = this.made.get(key) ?? await (this.#making.get(key) ?? this.#make(key, make));
    return JSON.parse(json);
  }

  #make(key: string, make: () => unknown): Promise<string> {
    const making = toJson(make).then((json) => {
      this.#check(key, json);
      this.made.set(key, json);
      return json;
    }).finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return making;
  }

  // Also where no client carries the values, so that a handler works in all revisions or in none.
  #check(key: string, json: string): void {
    const bytes = encoder.encode([...this.made, [key, json]].flat().join("")).length;
    if (bytes <= this.#stateBytes / 2) return;
    throw new RangeError(
      `Cannot keep the value of ctx.once(${quote(key)}): the values of this call have ${bytes} bytes as JSON, and at ` +
        `most half of ${this.#stateBytes} are kept (calls.stateBytes); keep an id, and load the rest again`,
    );
  }
}

async function toJson(make: () => unknown): Promise<string> {
  return JSON.stringify(await make()) ?? "null";
}
