/**
 * Runs a handler once per idempotency key. On one instance, calls with the same key run one after the other. Across
 * instances, the first call claims the key in the store.
 */
import { delay } from "../../core/kit/deadline.ts";
import { isObject, type Result, toTypedResult } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import { readPlan } from "../call/plans.ts";
import { repeatReads } from "../call/reads.ts";
import type { SharedValues } from "../call/shared_values.ts";
import type { Account } from "../capacity/account.ts";
import { type Charge, type ChargeOptions, keep } from "../capacity/charges.ts";
import type { Sweep, Ticker } from "../../core/timers.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import type { EncodedValue } from "../visibility/guards.ts";
import { Claim } from "./claim.ts";
import {
  type Fingerprint,
  isKept,
  isSame,
  type KeptRecord,
  readRecord,
  type RunningRecord,
  toBusyKey,
  toClaimError,
} from "./claim_record.ts";
import type { IdempotentTool } from "./idempotent_tool.ts";
import { LocalValues } from "./local_values.ts";

export type { Fingerprint } from "./claim_record.ts";

export interface KeyedCall {
  readonly tool: IdempotentTool;
  readonly call: Call;
  readonly core: FeatureParts;
  readonly key: string;
  /** Identifies the key together with its caller, its tool and the server. */
  readonly token: string;
  readonly input: Fingerprint;
  readonly start: () => Promise<Returned>;
  /** Passes the value of an earlier run through the output guards. `undefined` if the tool has no output guards. */
  readonly repeat?: (encoded: EncodedValue) => Promise<Result>;
}

export interface Returned {
  readonly result: Result;
  /** The value before the output guards. `undefined` if the tool has no output guards. */
  readonly encoded?: EncodedValue;
}

interface Turn {
  /** The input with which the handler runs, on this or another instance. `undefined` until the input is known. */
  input?: Fingerprint;
  /** Settles when the input of the running handler is known. */
  readonly running: PromiseWithResolvers<void>;
  /** Settles at the end of the turn, with the kept record if there is one. */
  readonly over: PromiseWithResolvers<KeptRecord | undefined>;
}

export class KeyedRuns {
  readonly #ticker: Ticker;
  readonly #local: LocalValues;
  // Bound: `calls.running`.
  readonly #turns = new Map<string, Turn>();
  readonly #sweep: Sweep = (now) => this.#local.sweep(now) ? SWEEP_MS : undefined;

  constructor(ticker: Ticker) {
    this.#ticker = ticker;
    this.#local = new LocalValues(ticker.clock);
  }

  /** Runs the handler, or returns the result of the first call with the same key. */
  async run(keyed: KeyedCall): Promise<Result> {
    const { call, token, input } = keyed;
    while (true) {
      if (call.ended) throw call.endError;
      const turn = this.#turns.get(token);
      if (!turn) return await this.#runTurn(keyed);
      await call.untilCancelled(Promise.race([turn.running.promise, turn.over.promise]));
      if (turn.input && !isSame(turn.input, input)) throw toClaimError(keyed, "conflict");
      const kept = await call.untilCancelled(turn.over.promise);
      if (kept) return await repeat(keyed, kept);
    }
  }

  // A turn lasts until its handler has ended, even if the call is cancelled earlier. Otherwise the next call with the
  // key would run the handler at the same time.
  async #runTurn(keyed: KeyedCall): Promise<Result> {
    const turn: Turn = { running: Promise.withResolvers(), over: Promise.withResolvers() };
    this.#turns.set(keyed.token, turn);
    try {
      const found = await this.#claim(keyed, turn);
      if (found instanceof Claim) return await this.#runClaimed(keyed, found, turn);
      turn.over.resolve(found);
      return await repeat(keyed, found);
    } finally {
      this.#turns.delete(keyed.token);
      turn.over.resolve(undefined);
    }
  }

  /** If another call with the key has run on any instance, returns the kept record of that call instead. */
  async #claim(keyed: KeyedCall, turn: Turn): Promise<Claim | KeptRecord> {
    const { call, core: { shared }, tool, token, input } = keyed;
    const ttlMs = Math.min(tool.ttlMs, MAX_TTL_MS);
    const values = shared?.by(call.link.account) ?? this.#local;
    const name = await values.hash("idempotency", token);
    const charge = keepKey(keyed);
    const claim = charge && new Claim({ ticker: this.#ticker, values, name, ttlMs, input, charge });
    let found;
    try {
      return found = await this.#findOrTake(keyed, { values, name, claim, turn });
    } finally {
      if (found !== claim) claim?.drop();
      this.#ticker.schedule(this.#sweep, SWEEP_MS);
    }
  }

  async #findOrTake(keyed: KeyedCall, { values, name, claim, turn }: Place): Promise<Claim | KeptRecord> {
    const { call, tool: { rerun } } = keyed;
    const ask = async <T>(run: () => T | Promise<T>): Promise<T> => {
      const done = await values.attempt("get", async () => [await run()] as const);
      if (!done) throw toBusyKey(keyed, "storeLost");
      return done[0];
    };
    /** The version to replace: `null` if there is no record, `undefined` if this call must not claim the key now. */
    let version: string | null | undefined = null;
    while (true) {
      if (call.ended) throw call.endError;
      if (claim && version !== undefined) {
        const isTaken = await claim.reserve(version);
        if (isTaken) return claim;
        if (isTaken === undefined) throw toBusyKey(keyed, "storeLost");
      }
      const found = await ask(() => values.get(name));
      version = found ? undefined : null;
      if (!found && !claim) throw toBusyKey(keyed, "full");
      if (!found) continue;
      const record = readKnown(keyed, found.value);
      if (isKept(record)) return record;
      begin(turn, record.input);
      if (await ask(() => values.lease.isHeld(record.by))) {
        await call.untilCancelled(delay(POLL_MS, { clock: this.#ticker }));
        continue;
      }
      // Read the record again, because the other instance may have written its result and released its lease since the
      // first read.
      const again = await ask(() => values.get(name));
      if (again?.version !== found.version) continue;
      if (!rerun) throw toClaimError(keyed, "unknown");
      if (!claim) throw toBusyKey(keyed, "full");
      version = found.version;
    }
  }

  async #runClaimed(keyed: KeyedCall, claim: Claim, turn: Turn): Promise<Result> {
    const { call, tool: { services }, token, input, start } = keyed;
    let handle: KeptRecord | undefined;
    let isOver = false;
    call.identifyEffects(token, async (result, type) => {
      // After the handler has ended, its result is kept instead of the handle.
      if (isOver) return;
      handle = { ...claim.claimed, result: toCopy(result), type };
      await claim.replace(handle);
      turn.over.resolve(handle);
    });
    begin(turn, input);
    try {
      // Start the handler only while no other instance can assume that this instance has ended.
      const isCertain = await claim.confirm();
      if (!isCertain) throw isCertain === undefined ? toBusyKey(keyed, "storeLost") : toBusyKey(keyed, "takenOver");
      const { result, encoded } = await start();
      isOver = true;
      // Do not keep the result of a cancelled handler if a service may have undone the handler's effects, such as by
      // rolling back a transaction.
      const isDone = !call.isAsking && result.isError !== true && !(call.ended && services?.undoes);
      if (isDone) return await this.#keep(keyed, claim, { turn, result, encoded, handle });
      await this.#release(keyed, claim);
      return result;
    } catch (error) {
      isOver = true;
      await this.#release(keyed, claim);
      throw error;
    }
  }

  /** Ends a claim without a result, so that the next call with the key runs, unless the call may have used up a plan. */
  async #release({ call }: KeyedCall, claim: Claim): Promise<void> {
    const isSpent = readPlan(call)?.isSpent && !call.isAsking;
    await claim.end(isSpent ? { ...claim.claimed, lost: true, failed: true } : undefined);
  }

  async #keep(keyed: KeyedCall, claim: Claim, { turn, result, encoded, handle }: Done): Promise<Result> {
    // Keep the value before the output guards, because they may leave more of it to this caller than to later callers.
    const output = encoded ? { encoded } : { result: toCopy(result) };
    const kept = handle ?? { ...claim.claimed, ...output, reads: keyed.call.reads };
    const hasRoom = claim.grow(JSON.stringify("result" in kept ? kept.result : kept.encoded));
    const written = await claim.end(hasRoom ? kept : { ...claim.claimed, lost: true });
    const other = written?.other;
    // Another instance assumed that this instance had ended, and ran the handler too. The result that was written first
    // is used.
    if (other && isKept(other)) return await repeat(keyed, other);
    if (hasRoom && written && !other) turn.over.resolve(kept);
    return result;
  }
}

interface Place {
  readonly values: SharedValues;
  readonly name: string;
  /** `undefined` if the client has used too many keys. */
  readonly claim?: Claim;
  readonly turn: Turn;
}

interface Done extends Returned {
  readonly turn: Turn;
  /** The handle that the client got instead of the result. */
  readonly handle?: KeptRecord;
}

/** Milliseconds between two reads of a key whose handler runs on another instance. */
const POLL_MS = 250;

/** Maximum time to live of a record, in milliseconds: one year. */
const MAX_TTL_MS = 31_536_000_000;

/** Milliseconds between two searches for expired keys. */
const SWEEP_MS = 10_000;

/** Waiting calls compare their input with `input`, so that a call with a different input fails immediately. */
function begin(turn: Turn, input: Fingerprint): void {
  turn.input = input;
  turn.running.resolve();
}

/** Reads the record of a key. Throws the error for the client if the call cannot get a result. */
function readKnown(keyed: KeyedCall, value: unknown): RunningRecord | KeptRecord {
  const record = readRecord(value);
  if (!record) throw toClaimError(keyed, "unreadable");
  if (!isSame(record.input, keyed.input)) throw toClaimError(keyed, "conflict");
  if ("lost" in record) throw toClaimError(keyed, record.failed ? "failed" : "unkept");
  return record;
}

async function repeat(keyed: KeyedCall, kept: KeptRecord): Promise<Result> {
  const { call, token, start } = keyed;
  const { client, home, internal } = call;
  if (!isSame(kept.input, keyed.input)) throw toClaimError(keyed, "conflict");
  // Another token of the same principal may lack the rights to what the handler has called.
  if (kept.reads) await repeatReads(call, kept.reads);
  if ("encoded" in kept) {
    if (!keyed.repeat) throw toClaimError(keyed, "unreadable");
    call.identifyEffects(token);
    return await keyed.repeat(toCopy(kept.encoded));
  }
  const { result, type } = kept;
  if (type === undefined) {
    // Another version of the server has kept a result that has not passed the output guards.
    if (keyed.repeat) throw toClaimError(keyed, "unreadable");
    return toCopy(result);
  }
  // An internal call comes from the extension that created the handle. The extension calls the handler again, for
  // example if the instance that first ran the handler has ended.
  if (internal) {
    call.identifyEffects(token);
    const plan = readPlan(call);
    if (plan) plan.isResumed = true;
    return (await start()).result;
  }
  const { extensions } = client.capabilities;
  if (home.hasResultTypes && isObject(extensions) && Object.keys(extensions).length) {
    return toTypedResult(type, toCopy(result));
  }
  throw toClaimError(keyed, "foreign", type);
}

// Copies a result or a value. Otherwise middleware or a guard that changes it would change what is kept, too.
function toCopy<T extends Result | EncodedValue>(kept: T): T {
  return JSON.parse(JSON.stringify(kept));
}

/**
 * Charges the bytes of a key to its client: the limit for keys and, if the server has no store, the client's memory.
 * Returns `undefined` if a limit is exceeded.
 */
function keepKey({ call, core }: KeyedCall): Charge | undefined {
  return keepKeyBytes(core, call.link.account, { bytes: KEY_BYTES, memory: KEY_MEMORY_BYTES });
}

/** Charges a client for what is kept for a key or a plan. `memory` is what it takes without a store. */
export function keepKeyBytes(
  core: FeatureParts,
  account: Account,
  { bytes, memory, ...options }: ChargeOptions & { readonly bytes: number; readonly memory: number },
): Charge | undefined {
  const total = core.limits.idempotency.bytes;
  const pot = account.pot({ name: "idempotency.bytes", total, share: Math.ceil(total / 4), small: SMALL });
  const keys = [pot, bytes] as const;
  return keep(core, account, core.shared ? [keys] : [keys, [account.memory, memory]], options);
}

/** Bytes that a key takes of the limit for keys, in addition to its result. */
const KEY_BYTES = 512;

/** Bytes of memory that a key needs in addition to its result, for its record, its map entries and its charge. */
const KEY_MEMORY_BYTES = 896;

/** Clients that hold more bytes than this cannot use the reserve. The amount suffices for a few keys. */
const SMALL = 65_536;
