/**
 * Records the calls of a program, so that the program can run again after a question, or after the end of its process,
 * without making a call twice.
 */
import { sha256 } from "../../core/kit/sha256.ts";
import { toCanonical } from "../../core/protocol/canonical.ts";
import { McpError, quote, toBusy } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Context } from "../../library.ts";
import { type Charge, keep } from "../../server/capacity/charges.ts";
import type { Call } from "../../server/call/call.ts";
import type { SharedValues } from "../../server/call/shared_values.ts";
import { toMarkTtl } from "../../server/engine/marking.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";

/** How a call has ended. `isLost`: it must run again, because its result had no room and it is safe to repeat. */
export type Outcome =
  | { readonly result: Result }
  | { readonly error: string; readonly code?: number }
  | { readonly isLost: true };

/** A call of a program. */
export interface Entry {
  /** Digest of the name and the input. */
  readonly digest: string;
  /** Position among the outcomes that the program got, from 1. `undefined` if it got none. */
  readonly order?: number;
  readonly outcome?: Outcome;
  /** Whether the call has asked a question, or has not begun, so that it must begin again. */
  readonly isOpen?: boolean;
}

/** What all runs of a program share. */
export interface ProgramId {
  readonly id: string;
  readonly now: number;
  readonly seed: number;
}

/** Bytes of what the calls of the programs of one client may return, if the programs can run again. */
const SHARE = 10 * 1024 * 1024;
const TOTAL = 4 * SHARE;
/** Milliseconds for which the calls of a task are kept. */
const TASK_MS = 86_400_000;
/** Sizes of the room for a journal in the state of the call, in bytes. The first that fits is used. */
const ROOMS = [24_576, 12_288, 6144, 3072];

/** The journal of one run. The numbers of calls begin with 1. */
export interface Journal extends ProgramId {
  /** The calls of earlier runs, by number. */
  readonly known: ReadonlyMap<number, Entry>;
  /** Call before an effect. Returns `false` if another run of this program has begun the call. */
  begin(number: number, entry: Entry): Promise<boolean>;
  /** Call before the program gets the outcome. */
  end(number: number, entry: Entry): Promise<void>;
  /** Call before a question goes out. */
  pause(entries: ReadonlyMap<number, Entry & { readonly isSafe: boolean }>): Promise<void>;
  /** Call when the run ends. */
  close(): void;
}

export async function toDigest(name: string, input: unknown): Promise<string> {
  return (await sha256(JSON.stringify([name, toCanonical(input)]))).slice(0, 16);
}

export async function openJournal(ctx: Context, call: Call, core: FeatureParts): Promise<Journal> {
  let isFirst = false;
  const program = await ctx.once("program", () => {
    isFirst = true;
    const [seed] = crypto.getRandomValues(new Uint32Array(1));
    return { id: crypto.randomUUID(), now: Math.floor(core.ticker.clock.date()), seed: seed % 1_000_000 };
  });
  const isLayered = !!call.layers?.length;
  // In a session, a program waits for its answers and never runs again.
  if (!call.forwarded && !isLayered) return { ...program, ...NOTHING };
  const { shared } = core;
  if (!shared) return await StateJournal.open(ctx, program, isFirst);
  const values = shared.by(call.link.account, { mustWait: true });
  const ttlMs = Math.max(toMarkTtl(core.limits.calls.stateMs), isLayered ? TASK_MS : 0);
  const journal = new StoreJournal(program, { values, ttlMs, call, core, isDurable: isLayered || !isFirst });
  if (!isFirst) await journal.load();
  return journal;
}

// Bound: it stays empty.
const NONE: ReadonlyMap<number, Entry> = new Map();

const NOTHING: Omit<Journal, keyof ProgramId> = {
  known: NONE,
  begin: () => Promise.resolve(true),
  end: () => Promise.resolve(),
  pause: () => Promise.resolve(),
  close: () => {},
};

/** Keeps the calls in the sealed state of the call, which the client returns with its answers. */
class StateJournal implements Journal {
  readonly id: string;
  readonly now: number;
  readonly seed: number;
  // Bound: the limit on calls.
  readonly known = new Map<number, Entry>();
  readonly begin = NOTHING.begin;
  readonly end = NOTHING.end;
  readonly #written = Promise.withResolvers<readonly (readonly [number, Entry])[]>();
  #writing: Promise<unknown> = Promise.resolve();
  #bytes = 0;

  private constructor({ id, now, seed }: ProgramId) {
    this.id = id;
    this.now = now;
    this.seed = seed;
  }

  static async open(ctx: Context, program: ProgramId, isFirst: boolean): Promise<StateJournal> {
    const journal = new StateJournal(program);
    const isMissing = Symbol();
    for (let round = 1;; round++) {
      const key = `calls ${round}`;
      const found = await ctx.once<readonly (readonly [number, Entry])[]>(key, () => Promise.reject(isMissing))
        .catch((error) => {
          if (error !== isMissing) throw error;
        });
      if (!found) {
        if (!isFirst && round === 1) {
          throw McpError.invalidParams("Cannot continue the program: its calls are not known; run it again");
        }
        await journal.#reserve(ctx, key);
        return journal;
      }
      for (const [number, entry] of found) journal.known.set(number, entry);
    }
  }

  /** Reserves the room before the first call, because a question cannot be taken back when the room is missing. */
  async #reserve(ctx: Context, key: string): Promise<void> {
    const { promise } = this.#written;
    promise.catch(() => {});
    for (const bytes of ROOMS) {
      const reserved = Promise.withResolvers<boolean>();
      const make = () => {
        reserved.resolve(true);
        return promise;
      };
      const writing = ctx.once(key, make, { maxBytes: bytes });
      writing.catch(() => reserved.resolve(false));
      if (!await reserved.promise) continue;
      this.#bytes = bytes;
      this.#writing = writing;
      return;
    }
    throw toBusy("run a program: the state of the call is too full for its calls", "calls.stateBytes");
  }

  async pause(entries: ReadonlyMap<number, Entry & { readonly isSafe: boolean }>): Promise<void> {
    const all = [...entries].filter(([number]) => !this.known.has(number) || this.known.get(number)?.isOpen);
    const toRecord = ([number, { isSafe: _, ...entry }]: typeof all[number]) => [number, entry] as const;
    const kept = new Map(all.map(toRecord));
    const size = () => new TextEncoder().encode(JSON.stringify([...kept])).length;
    // The longest results go first. A call that must not be made twice then fails in the next run.
    const byLength = all.map((each) => [JSON.stringify(each).length, each] as const).sort(([a], [b]) => b - a);
    for (const [, [number, { isSafe, digest, order, outcome }]] of byLength) {
      if (size() <= this.#bytes) break;
      if (!outcome || "isLost" in outcome) continue;
      kept.set(number, { digest, order, outcome: isSafe ? { isLost: true } : { error: NOT_KEPT } });
    }
    this.#written.resolve([...kept]);
    await this.#writing;
  }

  close(): void {
    this.#written.reject(new Error("Cannot keep the calls of the program: it has ended"));
  }
}

const NOT_KEPT =
  "the call has run, but its result was too long to be kept for this run of the program; make it after the " +
  "last question, or give the server a store";

interface StoreParts {
  readonly values: SharedValues;
  readonly ttlMs: number;
  readonly call: Call;
  readonly core: FeatureParts;
  /** Whether a client can already run the program again. Before its first question, it cannot. */
  readonly isDurable: boolean;
}

/** Keeps each call in the store of the server, before it begins and when it has ended. */
class StoreJournal implements Journal {
  readonly id: string;
  readonly now: number;
  readonly seed: number;
  // Bound: the limit on calls.
  readonly known = new Map<number, Entry>();
  readonly #parts: StoreParts;
  // Bound: the limit on calls.
  readonly #versions = new Map<number, string>();
  #charge?: Charge;
  #isKept = false;
  #bytes = 0;
  /** The last write. Writes follow each other, so that the store has no call without the calls before it. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor({ id, now, seed }: ProgramId, parts: StoreParts) {
    this.id = id;
    this.now = now;
    this.seed = seed;
    this.#parts = parts;
  }

  async load(): Promise<void> {
    const { values } = this.#parts;
    for (let number = 1;; number++) {
      const read = await values.attempt("get", async () => [await values.get(await this.#toKey(number))] as const);
      if (!read) throw toBusy("continue the program: the store does not return its calls");
      const [found] = read;
      if (!found) return;
      if (found.value === undefined) {
        throw McpError.invalidParams("Cannot continue the program: its calls cannot be read; run it again");
      }
      // The cast is safe, because the value is sealed.
      this.known.set(number, found.value as Entry);
      this.#versions.set(number, found.version);
    }
  }

  async begin(number: number, entry: Entry): Promise<boolean> {
    return !this.#parts.isDurable || await this.#write(number, entry);
  }

  async end(number: number, entry: Entry): Promise<void> {
    if (this.#parts.isDurable) await this.#write(number, entry);
    // Without a question, nobody can run the program again.
    else this.#reserve(entry);
  }

  async pause(entries: ReadonlyMap<number, Entry & { readonly isSafe: boolean }>): Promise<void> {
    for (const [number, { isSafe: _, ...entry }] of [...entries].sort(([a], [b]) => a - b)) {
      if (!this.#parts.isDurable || entry.isOpen) await this.#write(number, entry);
    }
  }

  close(): void {
    if (!this.#isKept) this.#charge?.end();
  }

  #write(number: number, entry: Entry): Promise<boolean> {
    const { values, ttlMs } = this.#parts;
    const write = async () => {
      if (this.#parts.isDurable) this.#reserve(entry);
      this.#isKept = true;
      this.#charge?.expireIn(ttlMs);
      const version = this.#versions.get(number) ?? null;
      const written = await values.attempt("set", async () =>
        [
          await values.set(await this.#toKey(number), entry, { ttlMs, version }),
        ] as const);
      if (!written) throw toBusy("continue the program: the store does not keep its calls");
      const [made] = written;
      if (made !== undefined) this.#versions.set(number, made);
      return made !== undefined;
    };
    const writing = this.#writing.then(write);
    this.#writing = writing.catch(() => {});
    return writing;
  }

  /** Charges the client. Throws if it has no room. */
  #reserve(entry: Entry): void {
    const { call: { link: { account } }, core } = this.#parts;
    const bytes = 2 * JSON.stringify(entry).length;
    this.#bytes += bytes;
    const pot = account.pot({ name: "code.bytes", total: TOTAL, share: SHARE });
    if (this.#charge ? this.#charge.grow(bytes) : this.#charge = keep(core, account, [[pot, bytes]])) return;
    throw toBusy(`run the program: ${quote("code.bytes")}, which keeps the results of calls, is full`);
  }

  async #toKey(number: number): Promise<string> {
    return await this.#parts.values.hash("program", `${this.id} ${number}`);
  }
}
