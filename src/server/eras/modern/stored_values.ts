/**
 * The values of `ctx.once` for which the sealed state has no room. Between two runs of the handler, the store contains
 * the values, and the sealed state contains their ids, so that only the caller of the call can use them.
 */
import { quote, toBusy } from "../../../core/protocol/errors.ts";
import type { Call } from "../../call/call.ts";
import { type OnceRoom, reserveMemory, type ReserveRoom, toNoRoom } from "../../call/once.ts";
import type { ServiceEnd } from "../../call/service.ts";
import type { Account } from "../../capacity/account.ts";
import type { Charge } from "../../capacity/charges.ts";
import type { Engine } from "../../engine/era.ts";
import { toMarkTtl } from "../../engine/marking.ts";
import { refuse } from "./request_state.ts";

/** A value in the store. `bytes` is the size of its JSON. */
export type StoredValue = readonly [key: string, id: string, bytes: number];

/** The charges for values in the store, by id. */
// Bound: `store.bytes`.
class StoredCharges extends Map<string, Charge> {}

interface Value {
  readonly id: string;
  bytes: number;
  /** Whether the store contains the value. */
  isStored: boolean;
  /** The charge for a value that this run has made. */
  readonly charge?: Charge;
}

export class StoredValues {
  readonly #core: Engine["core"];
  readonly #account: Account;
  readonly #reserveMemory: ReserveRoom;
  // Bound: `store.bytes`.
  readonly #values = new Map<string, Value>();
  #writing?: Promise<readonly StoredValue[]>;

  constructor({ core }: Pick<Engine, "core">, { link, defer }: Call, stored: readonly StoredValue[]) {
    // Read the account now, because the address of the client is unknown after the client has disconnected.
    const { account } = link;
    this.#core = core;
    this.#account = account;
    this.#reserveMemory = reserveMemory(core, { link: { account }, defer });
    for (const [key, id, bytes] of stored) this.#values.set(key, { id, bytes, isStored: true });
    // Before the memory is released, the values are written.
    defer((end) => this.#end(end));
  }

  has(key: string): boolean {
    return this.#values.get(key)?.isStored ?? false;
  }

  /** Reserves memory for the run, and room in the store until the state expires. Throws if there is no room. */
  reserve(key: string, maxBytes: number): OnceRoom {
    const { shared, limits: { calls } } = this.#core;
    const place = `Cannot store the value of ctx.once(${quote(key)}): maxBytes is ${maxBytes}, and`;
    const remedy = "return an id, and load the data again in each run";
    if (!shared) {
      throw new RangeError(
        `${place} a client without a session keeps at most half of calls.stateBytes (${calls.stateBytes}) between two ` +
          `runs; give the server a store, or ${remedy}`,
      );
    }
    const { valueBytes } = shared.store;
    if (toSealedLength(maxBytes) > valueBytes) {
      throw new RangeError(
        `${place} the store keeps encrypted values of at most ${valueBytes} bytes (valueBytes); ${remedy}`,
      );
    }
    const memory = this.#reserveMemory(key, maxBytes);
    const id = crypto.randomUUID();
    const charge = this.#charge(id, maxBytes);
    if (!charge) {
      memory.end();
      throw toFull(key);
    }
    const value = { id, bytes: maxBytes, isStored: false, charge };
    this.#values.set(key, value);
    return {
      resize(bytes) {
        value.bytes = bytes;
        memory.resize(bytes);
        charge.resize(toStoredBytes(bytes));
      },
      end: () => {
        memory.end();
        charge.end();
        this.#values.delete(key);
      },
    };
  }

  /** Reads a value from the store. */
  async load(key: string): Promise<string> {
    const { id, bytes } = this.#values.get(key)!; // Callers pass keys of stored values.
    const values = this.#open();
    const memory = this.#reserveMemory(key, bytes);
    const found = values &&
      await values.attempt("get", async () => [await values.get(await values.hash(PURPOSE, id))] as const);
    if (found?.[0]?.value !== undefined) return JSON.stringify(found[0].value);
    memory.end();
    const name = `ctx.once(${quote(key)})`;
    if (values && !found) throw toBusy(`continue the call: the store does not return the value of ${name}`);
    throw refuse(
      `the value of ${name} is no longer stored, because the call has ended or its store has changed; ` +
        "call again without requestState",
    );
  }

  /**
   * Writes the values for the next run, for as long as the state is valid. `made` contains the values that this run has
   * used.
   */
  write(made: ReadonlyMap<string, string>): Promise<readonly StoredValue[]> {
    return this.#writing = this.#write(made);
  }

  async #write(made: ReadonlyMap<string, string>): Promise<readonly StoredValue[]> {
    const written: StoredValue[] = [];
    for (const [key, value] of this.#values) {
      // The next run makes a value again that is still being made.
      if (!made.has(key) && !value.isStored) continue;
      await this.#writeOne(key, value, made.get(key) ?? await this.load(key));
      written.push([key, value.id, value.bytes]);
    }
    return written;
  }

  async #writeOne(key: string, value: Value, json: string): Promise<void> {
    const charges = this.#findCharges();
    const charge = charges.get(value.id) ?? value.charge ?? this.#charge(value.id, value.bytes);
    if (!charge) throw toFull(key);
    charges.set(value.id, charge);
    value.isStored = true;
    const values = this.#open();
    const ttlMs = this.#ttlMs;
    charge.expireIn(ttlMs);
    const write = async () => await values?.set(await values.hash(PURPOSE, value.id), JSON.parse(json), { ttlMs });
    if (await values?.attempt("set", write) !== undefined) return;
    throw toBusy(`ask the client: the store does not keep the value of ctx.once(${quote(key)})`);
  }

  /** After a cancelled or failed call, the client may send its answers again. */
  async #end(end: ServiceEnd): Promise<void> {
    await this.#writing?.catch(() => {});
    const charges = this.#findCharges();
    for (const { id, isStored, charge } of this.#values.values()) {
      if (!isStored) charge?.end();
      else if (end === "result") {
        charges.get(id)?.end();
        charges.delete(id);
        const values = this.#open();
        await values?.attempt("delete", async () => await values.delete(await values.hash(PURPOSE, id)));
      }
    }
  }

  #charge(id: string, bytes: number): Charge | undefined {
    const { shared } = this.#core;
    const charges = this.#findCharges();
    // The value cannot be evicted.
    const drop = () => charges.delete(id) && false;
    return shared?.keep(this.#account, toStoredBytes(bytes), { ttlMs: this.#ttlMs, drop });
  }

  #findCharges(): StoredCharges {
    return this.#core.state.slot(StoredCharges, () => new StoredCharges());
  }

  #open() {
    return this.#core.shared?.by(this.#account);
  }

  get #ttlMs(): number {
    return toMarkTtl(this.#core.limits.calls.stateMs);
  }
}

/** Kind of the keys in the store. */
const PURPOSE = "once";

/** Bytes that encryption adds to a value. */
const SEAL_BYTES = 64;

/** Characters of an encrypted value, of which each has one byte in UTF-8. */
function toSealedLength(bytes: number): number {
  return Math.ceil((bytes + SEAL_BYTES) / 3) * 4;
}

/** Bytes for which a client is charged: two per character, as for other values in the store. */
function toStoredBytes(bytes: number): number {
  return 2 * toSealedLength(bytes);
}

function toFull(key: string): Error {
  return toNoRoom(key, "too much data is stored for the client", "replay.bytes");
}
