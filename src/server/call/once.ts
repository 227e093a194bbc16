/**
 * Computes the values of `ctx.once`.
 */

import { quote, toBusy } from "../../core/protocol/errors.ts";
import { isWithin } from "../../core/protocol/weight.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { Account } from "../capacity/account.ts";
import { type Charging, keep } from "../capacity/charges.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { OnceOptions } from "./context.ts";

const encoder = new TextEncoder();

/** Room for a value that `make` has not created yet. */
export interface OnceRoom {
  /** Reduces the room to the size of the value. */
  resize(bytes: number): unknown;
  /** Called if there is no value. */
  end(): void;
}

/** Reserves room for a value with at most `maxBytes` bytes of JSON. Throws if the call cannot keep that much. */
export type ReserveRoom = (key: string, maxBytes: number) => OnceRoom;

interface OnceParts {
  readonly limits: Pick<Bounds["calls"], "stateBytes">;
  readonly reserve: ReserveRoom;
}

const OPTIONS: KnownOptions<keyof OnceOptions> = {
  names: {
    maxBytes: {
      test: (bytes) => Number.isSafeInteger(bytes) && Number(bytes) > 0,
      remedy: "it must be a whole number above 0",
    },
  },
};

/** Bytes of memory that one byte of JSON can take. A character of one byte takes two if the text has other characters. */
const MEMORY_BYTES = 2;

export function checkOnce(key: string, options: OnceOptions | undefined): void {
  if (options !== undefined) checkOptions(`store the value of ctx.once(${quote(key)})`, options, OPTIONS);
}

/** A call, or the part of a call that keeps values. */
interface OnceCall {
  readonly link: { readonly account: Account };
  readonly defer: (run: () => unknown) => void;
}

/** Returns the function that reserves memory for the values of a call until the call ends. */
export function reserveMemory(core: Charging, call: OnceCall): ReserveRoom {
  return (key, maxBytes) => {
    const { account } = call.link;
    const charge = keep(core, account, [[account.memory, MEMORY_BYTES * maxBytes]]);
    if (!charge) throw toNoRoom(key, "too much memory is used", "memory.bytesPerClient, memory.bytes");
    call.defer(() => charge.end());
    return { resize: (bytes) => charge.resize(MEMORY_BYTES * bytes), end: () => charge.end() };
  };
}

export function toNoRoom(key: string, state: string, limits: string): Error {
  return toBusy(`store the value of ctx.once(${quote(key)}): ${state}`, limits);
}

/** The values of one call. The requests with which the client answers the call's questions share these values. */
export class OnceValues {
  readonly #parts: OnceParts;
  /** The values that are part of the sealed state. */
  readonly made: Map<string, string> = new Map();
  /** The values with `maxBytes`, for which the state has no room. */
  readonly large: Map<string, string> = new Map();
  readonly #making = new Map<string, Promise<string>>();
  /** Bytes of the state that are reserved for values that `make` is creating. */
  #reserved = 0;

  /** The values in the state may use at most half of `calls.stateBytes`, because the state also contains answers. */
  constructor(parts: OnceParts) {
    this.#parts = parts;
  }

  /** Returns a copy of the value. If `make` fails, the next call of `get` calls `make` again. */
  async get(key: string, make: () => unknown, { maxBytes }: OnceOptions = {}): Promise<unknown> {
    const known = this.made.get(key) ?? this.large.get(key);
    return JSON.parse(known ?? await (this.#making.get(key) ?? this.#start(key, make, maxBytes)));
  }

  #start(key: string, make: () => unknown, maxBytes: number | undefined): Promise<string> {
    const making = (maxBytes === undefined ? this.#makeSmall(key, make) : this.#makeLarge(key, make, maxBytes))
      .finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return making;
  }

  async #makeSmall(key: string, make: () => unknown): Promise<string> {
    const json = await makeJson(key, make);
    const total = this.#count(key) + toBytes(json);
    // Check the limit in every revision, even if the values are not sent to the client, so that a handler works either
    // in all revisions or in no revision.
    if (total > this.#max) throw toTooLong(key, total, this.#parts.limits);
    this.made.set(key, json);
    return json;
  }

  // Reserve room before calling `make`, whose work would otherwise be lost.
  async #makeLarge(key: string, make: () => unknown, maxBytes: number): Promise<string> {
    const isSmall = this.#count(key) + maxBytes <= this.#max;
    const room = isSmall ? this.#reserve(toBytes(key) + maxBytes) : this.#parts.reserve(key, maxBytes);
    try {
      const json = await makeJson(key, make, { maxBytes });
      room.resize(toBytes(json));
      (isSmall ? this.made : this.large).set(key, json);
      return json;
    } catch (error) {
      room.end();
      throw error;
    }
  }

  #reserve(bytes: number): OnceRoom {
    this.#reserved += bytes;
    const end = () => {
      this.#reserved -= bytes;
    };
    return { resize: end, end };
  }

  /** Bytes of all values in the state, with this key. */
  #count(key: string): number {
    return toBytes([...this.made, [key]].flat().join("")) + this.#reserved;
  }

  get #max(): number {
    return this.#parts.limits.stateBytes / 2;
  }
}

function toBytes(text: string): number {
  return encoder.encode(text).length;
}

/** Computes a value as JSON. Throws if it has more than `maxBytes` bytes. */
export async function makeJson(key: string, make: () => unknown, { maxBytes }: OnceOptions = {}): Promise<string> {
  const json = JSON.stringify(await make()) ?? "null";
  if (maxBytes === undefined || isWithin(json, maxBytes)) return json;
  throw new RangeError(
    `Cannot store the value of ctx.once(${quote(key)}): it has ${
      toBytes(json)
    } bytes as JSON, and maxBytes is ${maxBytes}; set maxBytes higher, or return less`,
  );
}

function toTooLong(key: string, bytes: number, { stateBytes }: OnceParts["limits"]): RangeError {
  return new RangeError(
    `Cannot store the value of ctx.once(${
      quote(key)
    }): all values of this call together have ${bytes} bytes as JSON, which is more than half of calls.stateBytes ` +
      `(${stateBytes}); set maxBytes, or return an id, and load the data again in each run`,
  );
}
