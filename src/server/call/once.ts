/**
 * Computes the values of `ctx.once`.
 */

import { quote } from "../../core/protocol/errors.ts";
import type { Bounds } from "../capacity/limits.ts";

const encoder = new TextEncoder();

/** The values of one call. The requests with which the client answers the call's questions share these values. */
export class OnceValues {
  readonly #stateBytes: number;
  readonly made: Map<string, string> = new Map();
  readonly #making = new Map<string, Promise<string>>();

  /** The values may use at most half of `calls.stateBytes`, because the state also contains answers. */
  constructor({ limits }: { readonly limits: Pick<Bounds["calls"], "stateBytes"> }) {
    this.#stateBytes = limits.stateBytes;
  }

  /** Returns a copy of the value. If `make` fails, the next call of `get` calls `make` again. */
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

  // Check the limit in every revision, even if the values are not sent to the client, so that a handler works either in
  // all revisions or in no revision.
  #check(key: string, json: string): void {
    const bytes = encoder.encode([...this.made, [key, json]].flat().join("")).length;
    if (bytes <= this.#stateBytes / 2) return;
    throw new RangeError(
      `Cannot store the value of ctx.once(${
        quote(key)
      }): all values of this call together have ${bytes} bytes as JSON, which is more than half of calls.stateBytes ` +
        `(${this.#stateBytes}); return an id, and load the data again in each run`,
    );
  }
}

async function toJson(make: () => unknown): Promise<string> {
  return JSON.stringify(await make()) ?? "null";
}
