/**
 * Computes the values of `ctx.once`.
 *
 * @module
 */

import { quote } from "../../protocol/errors.ts";
import type { Bounds } from "../capacity/limits.ts";

const encoder = new TextEncoder();

/** The values of one call, which includes all its rounds of questions. */
export class OnceValues {
  readonly #stateBytes: number;
  /** The JSON of each computed value, by key. */
  readonly made: Map<string, string> = new Map();
  readonly #making = new Map<string, Promise<string>>();

  /** Creates an empty set. Its values may take at most half of the bytes of a call's state. */
  constructor({ limits }: { readonly limits: Pick<Bounds["calls"], "stateBytes"> }) {
    this.#stateBytes = limits.stateBytes;
  }

  /** Returns a copy of the value. Computes the value if there is none. After a failure, computes it again. */
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

  // Check the limit in every revision, even if the client does not carry the values, so that a handler works either in
  // all revisions or in none.
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
