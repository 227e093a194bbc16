/**
 * The operations of a store for one user. Checks arguments, limits, and what the engine returns.
 */
import type { Account } from "../server/capacity/account.ts";
import type { Bounds } from "../server/capacity/limits.ts";
import { show } from "../core/known_options.ts";
import { isWithin } from "../core/protocol/weight.ts";
import { readSyncVerdict } from "../server/call/verdict.ts";
import type {
  AppendOptions,
  DeleteOptions,
  Lease,
  ListOptions,
  LogPage,
  ReadOptions,
  SetOptions,
  StoredEntry,
  StoredValue,
  StoreEngine,
  StoreView,
  SubscribeOptions,
  TopicListener,
} from "../server/engine/store.ts";
import { getAll } from "./get_all.ts";
import { type Operations, type OwnUse, User } from "./operations.ts";
import type { ProcessLease } from "./process_lease.ts";

/** Maximum length of a key in characters. */
const KEY_CHARACTERS = 256;

/** Maximum number of entries per read. */
const PAGE_ENTRIES = 1000;

/** Maximum time to live: a year, in milliseconds. */
const MAX_TTL_MS = 31_536_000_000;

/** Maximum number of entries in a topic, and the time to live of an entry in milliseconds. */
const TOPIC = { max: 1000, ttlMs: 3_600_000 };

/** Maximum number of values that one call of `list` returns. */
const LIST_VALUES = 1000;

export interface StoreParts {
  readonly operations: Operations;
  readonly lease: ProcessLease;
  /** The limits of the server that uses the store. */
  readonly limits?: Bounds;
}

export class UserView extends User implements StoreView {
  readonly #operations: Operations;
  readonly #parts: StoreParts;
  #lease?: Lease;

  constructor(parts: StoreParts, by: Account | OwnUse) {
    super(by, parts.limits);
    this.#operations = parts.operations;
    this.#parts = parts;
  }

  /** The lease of the process. This user makes the operations of `isHeld`. */
  get lease(): Lease {
    const { lease } = this.#parts;
    return this.#lease ??= {
      get id() {
        return lease.id;
      },
      ms: lease.ms,
      get heldUntil() {
        return lease.heldUntil;
      },
      hold: () => lease.hold(),
      confirm: () => lease.confirm(),
      isHeld: async (id) => lease.isHeld(id, await this.get(id)),
    };
  }

  get(key: string): Promise<StoredValue | undefined> {
    checkName("get", "key", key);
    return this.#operations.run(this, "get", { run: (engine, options) => engine.get(key, options), read: readStored });
  }

  /** Reads several values as one operation. Returns them in the order of the keys. */
  getAll(keys: readonly string[]): Promise<readonly (StoredValue | undefined)[]> {
    for (const key of keys) checkName("get", "key", key);
    return this.#operations.run(this, "get", {
      run: (engine, options) => getAll(engine, keys, options),
      read: (found) => found.map(readStored),
    });
  }

  set(
    key: string,
    value: string,
    { ttlMs, version, token = crypto.randomUUID() }: SetOptions,
  ): Promise<string | undefined> {
    checkName("set", "key", key);
    checkName("set", "token", token);
    this.#checkValue("set", value);
    // With the same token, a retry after a lost response does not conflict with the first attempt.
    const write = { ttlMs: toWholeTtl("set", ttlMs), version, token };
    return this.#operations.run(this, "set", {
      run(engine, options) {
        checkEngineSize("set", value, engine);
        return engine.set(key, value, { ...write, ...options });
      },
      // Require a boolean, because a result object from a database, such as `{ changes: 0 }`, would count as true.
      read: (isSet) => readSyncVerdict(isSet, "set() of the store's engine") ? token : undefined,
    });
  }

  delete(key: string, { version }: DeleteOptions = {}): Promise<boolean> {
    checkName("delete", "key", key);
    return this.#operations.run(this, "delete", {
      run: (engine, options) => engine.delete(key, { version, ...options }),
      read: (isDeleted) => readSyncVerdict(isDeleted, "delete() of the store's engine"),
    });
  }

  list(prefix: string, { after = "", limit }: ListOptions): Promise<readonly StoredEntry[]> {
    if (prefix !== "") checkName("list", "key", prefix);
    if (after !== "") checkName("list", "key", after);
    if (!(Number.isSafeInteger(limit) && limit > 0 && limit <= LIST_VALUES)) {
      throw new RangeError(`Cannot list: limit is ${show(limit)}; use an integer from 1 to ${LIST_VALUES}`);
    }
    return this.#operations.run(this, "list", {
      run: (engine, options) => engine.list(prefix, { after, limit, ...options }),
      read: readList,
    });
  }

  append(
    log: string,
    value: string,
    { ttlMs, max, token = crypto.randomUUID() }: AppendOptions,
  ): Promise<number> {
    checkName("append", "key", log);
    checkName("append", "token", token);
    this.#checkValue("append", value);
    const { logEntries } = this.#operations.options;
    if (!(Number.isSafeInteger(max) && max > 0 && max <= logEntries)) {
      throw new RangeError(
        `Cannot append: max is ${show(max)}; use an integer from 1 to ${logEntries} (logEntries)`,
      );
    }
    const write = { ttlMs: toWholeTtl("append", ttlMs), max, token };
    return this.#operations.run(this, "append", {
      run(engine, options) {
        checkEngineSize("append", value, engine);
        return engine.append(log, value, { ...write, ...options });
      },
      read: readId,
    });
  }

  read(log: string, { after = 0, limit }: ReadOptions): Promise<LogPage> {
    checkName("read", "key", log);
    checkId("read", after);
    if (!(Number.isSafeInteger(limit) && limit >= 0)) {
      throw new RangeError(`Cannot read: limit is ${show(limit)}; use an integer of at least 0`);
    }
    return this.#operations.read(this, log, { after, limit: Math.min(limit, PAGE_ENTRIES) });
  }

  trim(log: string, before: number): Promise<void> {
    checkName("trim", "key", log);
    checkId("trim", before);
    return this.#operations.run(this, "trim", {
      run: (engine, options) => engine.trim(log, before, options),
      read: () => {},
    });
  }

  async publish(topic: string, text: string): Promise<void> {
    const max = Math.min(TOPIC.max, this.#operations.options.logEntries);
    await this.append(topic, text, { ttlMs: TOPIC.ttlMs, max });
  }

  async subscribe(topic: string, listener: TopicListener, options: SubscribeOptions = {}): Promise<() => void> {
    checkName("subscribe", "key", topic);
    if (options.after !== undefined) checkId("subscribe", options.after);
    return await this.#operations.subscribe(this, topic, listener, options);
  }

  #checkValue(operation: string, value: string): void {
    checkText(operation, value);
    checkSize(operation, value, this.#operations.options.valueBytes);
  }
}

// Copies only the known properties, because a database row may have other properties. Requires a version, because
// without it the next write would be unconditional.
function readStored(found: StoredValue | null | undefined): StoredValue | undefined {
  if (found === undefined || found === null) return;
  const { value, version } = found;
  if (typeof value === "string" && typeof version === "string") return { value, version };
  throw new TypeError(
    "Cannot get a value: the result of get() of the store's engine is invalid; return { value, version } with two strings, or undefined",
  );
}

function readList(found: readonly StoredEntry[]): readonly StoredEntry[] {
  if (Array.isArray(found) && found.every((entry) => typeof entry?.key === "string" && readStored(entry))) {
    return found.map(({ key, value, version }) => ({ key, value, version }));
  }
  throw new TypeError(
    "Cannot list: the result of list() of the store's engine is invalid; return a list of { key, value, version } with three strings",
  );
}

function readId(id: number): number {
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw new TypeError(
    `Cannot append: append() of the store's engine returned ${
      show(id)
    }; return the entry's id, which is an integer above 0`,
  );
}

function checkName(operation: string, kind: "key" | "token", name: string): void {
  if (typeof name === "string" && name.length <= KEY_CHARACTERS && /^[\w-]+$/.test(name)) return;
  throw new RangeError(
    `Cannot ${operation}: the ${kind} ${show(name)} is not 1 to ${KEY_CHARACTERS} letters, digits, "-" and "_"`,
  );
}

/** Throws if some engine would change or reject a text. */
export function checkText(operation: string, value: string): void {
  if (typeof value !== "string") throw new TypeError(`Cannot ${operation}: the value is ${show(value)}; use a string`);
  // Some engines truncate a text at U+0000.
  if (value.includes("\0")) throw new RangeError(`Cannot ${operation}: the value contains U+0000`);
  // UTF-8 cannot represent a lone surrogate, so most engines would change the value.
  if (!value.isWellFormed()) throw new RangeError(`Cannot ${operation}: the value contains a lone surrogate`);
}

function checkSize(operation: string, value: string, valueBytes: number, whose = ""): void {
  if (isWithin(value, valueBytes)) return;
  throw new RangeError(
    `Cannot ${operation}: the value takes more than ${valueBytes} bytes in the store${whose} (valueBytes)`,
  );
}

function checkEngineSize(operation: string, value: string, { valueBytes = Infinity }: StoreEngine): void {
  checkSize(operation, value, valueBytes, ", the limit of the engine");
}

/** Rounds up, because some engines reject or misread fractions. Throws if the time to live is out of range. */
function toWholeTtl(operation: string, ttlMs: number): number {
  if (ttlMs > 0 && ttlMs <= MAX_TTL_MS) return Math.ceil(ttlMs);
  throw new RangeError(`Cannot ${operation}: ttlMs is ${show(ttlMs)}; use a number above 0, up to ${MAX_TTL_MS}`);
}

function checkId(operation: string, id: number): void {
  if (Number.isSafeInteger(id) && id >= 0) return;
  throw new RangeError(`Cannot ${operation}: ${show(id)} is not an entry id; use an integer of at least 0`);
}
