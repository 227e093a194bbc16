/**
 * A store in Deno KV, for Deno Deploy and for several processes on one machine.
 *
 * ```ts ignore
 * import { createServer } from "@x/mcp";
 * import { denoKvStore } from "@x/mcp/stores/deno-kv";
 *
 * const store = denoKvStore(() => Deno.openKv());
 * export default createServer({ name: "notes", version: "1.0.0", store, secret: Deno.env.get("MCP_SECRET") });
 * ```
 *
 * @module
 */
import type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  EngineOptions,
  EngineWriteOptions,
  ListOptions,
  LogHead,
  LogPage,
  ReadOptions,
  SetOptions,
  Store,
  StoredEntry,
  StoredValue,
  StoreEngine,
} from "../server/engine/store.ts";
import { systemClock } from "../core/timers.ts";
import { delay } from "../core/kit/deadline.ts";
import { FileWatch } from "./replaced_file.ts";
import { customStore, requireConnect, type StoreOptions } from "./custom_store.ts";

/** A key of Deno KV. */
export type DenoKvKey = readonly (string | number)[];

/** A key, and its value if the key has a value. */
export interface DenoKvEntry {
  /** The requested key. */
  readonly key: readonly unknown[];
  /** The value, or `null` if the key has no value. */
  readonly value: unknown;
  /** The version, or `null` if the key has no value. */
  readonly versionstamp: string | null;
}

/** An atomic transaction: either all of its changes take effect, or no change does. */
export interface DenoKvAtomic {
  /** Adds a condition: the keys must have these versions. */
  check(...checks: { key: DenoKvKey; versionstamp: string | null }[]): this;
  /** Adds a write. `expireIn` is the time to live in milliseconds. */
  set(key: DenoKvKey, value: unknown, options?: { expireIn?: number }): this;
  /** Adds a deletion. */
  delete(key: DenoKvKey): this;
  /**
   * Commits the changes. `ok` is `false` if a version did not match, and nothing was changed. Otherwise `versionstamp` is
   * the version of all keys that were written.
   */
  commit(): Promise<{ readonly ok: boolean; readonly versionstamp?: string }>;
}

/** An open database, such as `Deno.openKv()` returns. */
export interface DenoKv {
  /** Reads a value. */
  get(key: DenoKvKey): Promise<DenoKvEntry>;
  /** Reads up to ten values. */
  getMany(keys: readonly DenoKvKey[]): Promise<readonly DenoKvEntry[]>;
  /** Reads values in the order of their keys, from `start` (inclusive) to `end` (exclusive). */
  list(selector: { start: DenoKvKey; end: DenoKvKey }, options?: { limit?: number }): AsyncIterable<DenoKvEntry>;
  /** Starts a transaction. */
  atomic(): DenoKvAtomic;
  /** Closes the database. */
  close(): void;
}

/**
 * Creates a store in Deno KV. `open` opens the database. The store closes the database, and calls `open` again if three
 * consecutive operations fail or time out. On a local file, Deno needs `--unstable-kv`. All keys start with `mcp`.
 *
 * Deno KV allows at most 64 KiB per value, so the store splits values over 16,384 characters into parts. The expiry of
 * values depends on the system clocks, so the clocks of all machines must agree. Bun cannot open a Deno KV database; use
 * Redis or SQLite with Bun.
 *
 * @throws {TypeError} if an option is not a number above 0.
 */
export function denoKvStore(open: () => Awaitable<DenoKv>, options: StoreOptions = {}): Store {
  requireConnect({ open }, "denoKvStore(() => Deno.openKv())");
  return customStore((connecting) => openEngine(open, connecting), options);
}

/** Maximum length, in characters, of a text that is stored under its own key. Longer texts are stored in parts. */
const INLINE = 16_384;
/** Size of a part in bytes. Deno KV allows 65,536 bytes per value. */
const PART_BYTES = 60_000;
/** Maximum number of parts per commit. Deno KV allows 819,200 bytes per commit. */
const COMMIT_PARTS = 10;
/** Maximum number of keys per call of `getMany` in Deno KV. */
const READ_KEYS = 10;
/** Maximum number of log entries that a commit removes: an entry has up to 20 keys, and a commit 1,000 changes. */
const DROPPED = 20;
/** Maximum number of keys that one commit of `#clear` deletes. */
const CLEARED = 500;
/** Milliseconds between two checks for new log entries while the store listens. */
const LOOK_MS = 50;
/** Milliseconds within which other processes must read the record of a new entry, before the record expires. */
const RING_MS = 10_000;
/**
 * Maximum milliseconds between the timestamp of such a record and the time at which other processes can read the
 * record. Each check therefore reads the records of these last milliseconds again.
 */
const LATE_MS = 500;
/**
 * Minimum milliseconds between two removals of expired logs. Also the minimum milliseconds between the expiry of a log
 * and its removal, because a process may still be reading the log.
 */
const SWEEP_MS = 60_000;
/** Milliseconds for which Deno KV keeps a value after its `due` time. The engine ignores such a value. */
const SLACK_MS = 60_000;

const RUNG: DenoKvKey = ["mcp", "rung"];
/** Key of the random id of the database file. */
const FILE: DenoKvKey = ["mcp", "file"];

/** A text, or the number of parts in which the text is stored. The keys of the parts contain the random `name`. */
type Stored = { readonly text: string } | { readonly parts: number; readonly name: string };

type ValueRecord = Stored & { readonly version: string; readonly due: number };

interface LogRecord {
  /** Id of the oldest entry that is still stored. Entries with an id below `first` are not read any more. */
  readonly oldest: number;
  readonly first: number;
  readonly last: number;
  readonly epoch: string;
  readonly due: number;
}

const NEW_LOG = { oldest: 1, first: 1, last: 0 };

type EntryRecord = Stored & { readonly token: string };

/** Names parts to which no value and no entry refers yet. The commit of the value or the entry removes the record. */
interface PendingRecord {
  readonly stored: Stored;
  /** Beginning of the keys of the parts. */
  readonly from: DenoKvKey;
  /** Time at which the parts were written, in milliseconds since 1970. */
  readonly since: number;
}

/** A text that is ready to be committed. */
interface Written {
  readonly stored: Stored;
  /** The pending record of the parts. `undefined` if the text has no parts. */
  readonly pending?: { readonly key: DenoKvKey; readonly versionstamp: string | null; readonly record: PendingRecord };
}

interface PartOptions {
  readonly signal: AbortSignal;
  readonly to: DenoKvKey;
  /** Milliseconds after which Deno KV can remove the parts. `undefined` for parts that do not expire. */
  readonly expireIn?: number;
}

async function openEngine(open: () => Awaitable<DenoKv>, { signal }: EngineOptions): Promise<DenoKvEngine> {
  const kv = await open();
  const id = await repeat(signal, async () => ({ done: await identify(kv) }));
  const file = new FileWatch(kv, id, { open, identify });
  return new DenoKvEngine(kv, file);
}

/** Returns the random id of a database file. The first process that opens a file writes the id. */
async function identify(kv: DenoKv): Promise<unknown> {
  const { value } = await kv.get(FILE);
  if (value !== null) return value;
  await kv.atomic().check({ key: FILE, versionstamp: null }).set(FILE, crypto.randomUUID()).commit();
  return (await kv.get(FILE)).value;
}

class DenoKvEngine implements StoreEngine {
  readonly #kv: DenoKv;
  readonly #file: FileWatch<DenoKv>;
  #onRing?: (log: string) => void;
  #sweepAt = 0;
  #isClosed = false;

  constructor(kv: DenoKv, file: FileWatch<DenoKv>) {
    this.#kv = kv;
    this.#file = file;
  }

  get(key: string, { signal }: EngineOptions): Promise<StoredValue | undefined> {
    return repeat(signal, async () => {
      const { record } = await this.#findValue(key);
      if (!record) return { done: undefined };
      const value = await this.#readText(record, toValueParts(key));
      // If parts are missing, the value was replaced after its record was read, so read again.
      return value === undefined ? undefined : { done: { value, version: record.version } };
    });
  }

  async set(key: string, value: string, options: SetOptions & EngineWriteOptions): Promise<boolean> {
    const { ttlMs, version, token, signal } = options;
    const expireIn = ttlMs + SLACK_MS;
    let written: Written | undefined;
    try {
      const isSet = await repeat(signal, async () => {
        const { record, versionstamp } = await this.#findValue(key);
        const known = record?.version ?? null;
        if (known === token) return { done: true };
        if (version !== undefined && known !== version) return { done: false };
        written ??= await this.#writeParts(value, { signal, to: toValueParts(key), expireIn });
        const next: ValueRecord = { ...written.stored, version: token, due: Date.now() + ttlMs };
        const change = this.#change(["mcp", "value", key], versionstamp).set(["mcp", "value", key], next, { expireIn });
        if (record) dropParts(change, record, toValueParts(key));
        if (!await commitWritten(change, written)) return;
        written = undefined;
        return { done: true };
      });
      this.#sweep();
      return isSet;
    } finally {
      await this.#discard(written, signal);
    }
  }

  delete(key: string, { version, signal }: DeleteOptions & EngineOptions): Promise<boolean> {
    return repeat(signal, async () => {
      const { record, versionstamp } = await this.#findValue(key);
      if (!record) return { done: true };
      if (version !== undefined && record.version !== version) return { done: false };
      const change = this.#change(["mcp", "value", key], versionstamp).delete(["mcp", "value", key]);
      dropParts(change, record, toValueParts(key));
      if ((await change.commit()).ok) return { done: true };
    });
  }

  async list(
    prefix: string,
    { after = "", limit, signal }: ListOptions & EngineOptions,
  ): Promise<readonly StoredEntry[]> {
    const found: StoredEntry[] = [];
    this.#file.check();
    // "~" sorts after all characters that are allowed in keys.
    const end: DenoKvKey = ["mcp", "value", `${prefix}~`];
    const start: DenoKvKey = ["mcp", "value", after >= prefix && after ? `${after} ` : prefix];
    for await (const { key, value: record } of this.#kv.list({ start, end })) {
      if (found.length === limit) break;
      if (!isValue(record) || record.due <= Date.now()) continue;
      const name = String(key[2]);
      const value = "text" in record
        ? { value: record.text, version: record.version }
        : await this.get(name, { signal });
      if (value) found.push({ key: name, ...value });
    }
    return found;
  }

  async append(log: string, value: string, options: AppendOptions & EngineWriteOptions): Promise<number> {
    const { ttlMs, max, token, signal } = options;
    const newEpoch = crypto.randomUUID();
    let written: Written | undefined;
    let writtenTo: string | undefined;
    try {
      const id = await repeat(signal, async () => {
        const { record, versionstamp } = await this.#findLog(log);
        const now = Date.now();
        const isAlive = record && record.due > now;
        const { epoch, oldest, first, last } = isAlive ? record : { ...NEW_LOG, epoch: newEpoch };
        const name: DenoKvKey = ["mcp", "token", epoch, token];
        const named = await this.#kv.get(name);
        const repeated = Number(named.value ?? 0);
        if (repeated >= first) return { done: repeated };
        // If another process has created the log in the meantime, its epoch is different.
        if (writtenTo !== epoch) await this.#discard(written, signal);
        if (writtenTo !== epoch || !written) {
          written = await this.#writeParts(value, { signal, to: toEntryParts(epoch) });
          writtenTo = epoch;
        }
        const id = last + 1;
        const kept = Math.max(first, id - max + 1);
        const left = Math.min(kept, oldest + DROPPED);
        const change = this.#change(["mcp", "log", log], versionstamp)
          .check({ key: name, versionstamp: named.versionstamp })
          .set(["mcp", "log", log], { oldest: left, first: kept, last: id, epoch, due: now + ttlMs })
          .set(["mcp", "entry", epoch, id], { ...written.stored, token })
          .set(name, id)
          .set(["mcp", "ring", now, token], log, { expireIn: RING_MS })
          .set(RUNG, token);
        // If the log has expired, mark its old entries for removal by a sweep.
        if (record && !isAlive) change.set(["mcp", "dead", record.epoch], now);
        await this.#dropEntries(change, epoch, oldest, left);
        if (!await commitWritten(change, written)) return;
        written = undefined;
        return { done: id };
      });
      this.#onRing?.(log);
      this.#sweep();
      return id;
    } finally {
      await this.#discard(written, signal);
    }
  }

  read(log: string, { after = 0, limit, signal }: ReadOptions & EngineOptions): Promise<LogPage> {
    return repeat(signal, async () => {
      const head = toHead((await this.#findLog(log)).record);
      const from = Math.max(after + 1, head.first);
      const count = Math.min(limit, head.last - from + 1);
      const entries: {
        readonly id: number;
        readonly value: string;
      }[] = [];
      if (count <= 0) return { done: { ...head, entries } };
      const [start, end] = [from, from + count].map((id) => ["mcp", "entry", head.epoch, id] as const);
      for await (const { key, value: record } of this.#kv.list({ start, end }, { limit: count })) {
        const text = isEntry(record) ? await this.#readText(record, toEntryParts(head.epoch)) : undefined;
        if (text !== undefined) entries.push({ id: Number(key[3]), value: text });
      }
      // If entries are missing, they were removed after the state of the log was read, so read again.
      if (entries.length === count) return { done: { ...head, entries } };
    });
  }

  async trim(log: string, before: number, { signal }: EngineOptions): Promise<void> {
    const isDone = await repeat(signal, () => this.#trim(log, before));
    // Remove the other entries in the background, because the operation could otherwise exceed its timeout.
    if (!isDone) this.#trimRest(log, before).catch(() => {});
  }

  /** Drops entries, and removes up to {@linkcode DROPPED} of them. Resolves to whether all of them were removed. */
  async #trim(log: string, before: number): Promise<{ readonly done: boolean } | undefined> {
    const { record, versionstamp } = await this.#findLog(log);
    if (!record) return { done: true };
    const first = Math.max(record.first, Math.min(before, record.last + 1));
    if (record.oldest >= first) return { done: true };
    const oldest = Math.min(first, record.oldest + DROPPED);
    const next: LogRecord = { ...record, oldest, first };
    const change = this.#change(["mcp", "log", log], versionstamp).set(["mcp", "log", log], next);
    await this.#dropEntries(change, record.epoch, record.oldest, oldest);
    if ((await change.commit()).ok) return { done: oldest === first };
  }

  async #trimRest(log: string, before: number): Promise<void> {
    const { signal } = new AbortController();
    while (!this.#isClosed && !await repeat(signal, () => this.#trim(log, before)));
  }

  async heads(logs: readonly string[]): Promise<readonly LogHead[]> {
    const records = await this.#getMany(logs.map((log) => ["mcp", "log", log]));
    return records.map(({ value }) => toHead(isLog(value) ? value : undefined));
  }

  async listen(onRing: (log: string) => void, onLost: (error?: unknown) => void): Promise<() => void> {
    let rung = (await this.#kv.get(RUNG)).versionstamp;
    let from = Date.now();
    const heard = new Map<string, number>();
    const look = async () => {
      this.#file.check();
      const { versionstamp } = await this.#kv.get(RUNG);
      if (versionstamp === rung) return;
      rung = versionstamp;
      // Keep the tokens of recent records. Each check reads recent records again, because another process may write a
      // record late, or with a slow clock.
      for (const [token, time] of heard) if (time < from - LATE_MS) heard.delete(token);
      const start: DenoKvKey = ["mcp", "ring", from - LATE_MS];
      for await (const { key, value: log } of this.#kv.list({ start, end: ["mcp", "ring", Infinity] })) {
        const [time, token] = [Number(key[2]), String(key[3])];
        if (heard.has(token)) continue;
        heard.set(token, time);
        from = Math.max(from, time);
        onRing(String(log));
      }
    };
    let isOver = false;
    let stop = () => {};
    const goOn = () => {
      if (isOver) return;
      stop = systemClock.start(() => void look().then(goOn, reportLoss), LOOK_MS, { background: true });
    };
    const reportLoss = (error: unknown) => {
      if (isLocked(error)) return goOn();
      if (!isOver) onLost(error);
    };
    goOn();
    this.#onRing = onRing;
    return () => {
      isOver = true;
      stop();
      this.#onRing = undefined;
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#kv.close();
  }

  async #findValue(key: string): Promise<{ readonly record?: ValueRecord; readonly versionstamp: string | null }> {
    this.#file.check();
    const { value, versionstamp } = await this.#kv.get(["mcp", "value", key]);
    return { record: isValue(value) && value.due > Date.now() ? value : undefined, versionstamp };
  }

  async #findLog(log: string): Promise<{ readonly record?: LogRecord; readonly versionstamp: string | null }> {
    this.#file.check();
    const { value, versionstamp } = await this.#kv.get(["mcp", "log", log]);
    return { record: isLog(value) ? value : undefined, versionstamp };
  }

  #change(key: DenoKvKey, versionstamp: string | null): DenoKvAtomic {
    return this.#kv.atomic().check({ key, versionstamp });
  }

  async #getMany(keys: readonly DenoKvKey[]): Promise<readonly DenoKvEntry[]> {
    this.#file.check();
    return (await Promise.all(toBatches(keys, READ_KEYS).map((batch) => this.#kv.getMany(batch)))).flat();
  }

  /**
   * Writes the parts of a text, before the value or entry that refers to the parts. Until this value or entry is
   * committed, a pending record names the parts, so that a sweep finds the parts of a process that has ended.
   */
  async #writeParts(text: string, { signal, to, expireIn }: PartOptions): Promise<Written> {
    if (text.length <= INLINE) return { stored: { text } };
    const bytes = new TextEncoder().encode(text);
    const parts = Array.from(
      { length: Math.ceil(bytes.length / PART_BYTES) },
      (_, i) => bytes.slice(i * PART_BYTES, (i + 1) * PART_BYTES),
    );
    const name = crypto.randomUUID();
    const key: DenoKvKey = ["mcp", "pending", name];
    const stored = { parts: parts.length, name };
    const record: PendingRecord = { from: to, stored, since: Date.now() };
    let versionstamp: string | null = null;
    for (const [i, batch] of toBatches(parts, COMMIT_PARTS).entries()) {
      versionstamp = await repeat(signal, async () => {
        // After a sweep has removed the pending record together with the parts, no parts are added.
        const change = this.#change(key, versionstamp);
        if (versionstamp === null) change.set(key, record);
        for (const [k, part] of batch.entries()) change.set([...to, name, i * COMMIT_PARTS + k], part, { expireIn });
        const { ok, versionstamp: made = null } = await change.commit();
        if (ok) return { done: versionstamp ?? made };
      });
    }
    return { stored, pending: { key, versionstamp, record } };
  }

  // Removes the parts of a text, unless the text was committed. If this fails, a later sweep removes the parts.
  async #discard(written: Written | undefined, signal: AbortSignal): Promise<void> {
    const { pending } = written ?? {};
    if (pending) await repeat(signal, async () => ({ done: await this.#dropPending(pending) })).catch(() => {});
  }

  async #dropPending({ key, versionstamp, record }: NonNullable<Written["pending"]>): Promise<void> {
    const change = this.#change(key, versionstamp).delete(key);
    dropParts(change, record.stored, record.from);
    await change.commit();
  }

  async #readText(stored: Stored, from: DenoKvKey): Promise<string | undefined> {
    if ("text" in stored) return stored.text;
    const parts = await this.#getMany(Array.from({ length: stored.parts }, (_, i) => [...from, stored.name, i]));
    const decoder = new TextDecoder();
    let text = "";
    for (const { value } of parts) {
      if (!(value instanceof Uint8Array)) return;
      text += decoder.decode(value, { stream: true });
    }
    return text + decoder.decode();
  }

  async #dropEntries(change: DenoKvAtomic, epoch: string, oldest: number, left: number): Promise<void> {
    const keys = Array.from({ length: left - oldest }, (_, i): DenoKvKey => ["mcp", "entry", epoch, oldest + i]);
    for (const [i, { value: record }] of (await this.#getMany(keys)).entries()) {
      change.delete(keys[i]);
      if (!isEntry(record)) continue;
      change.delete(["mcp", "token", epoch, record.token]);
      dropParts(change, record, toEntryParts(epoch));
    }
  }

  // Removes expired logs, and parts that were never committed. Deno KV itself removes only expired values.
  #sweep(): void {
    const now = Date.now();
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + SWEEP_MS;
    this.#sweepLogs(now - SWEEP_MS).catch(() => this.#sweepAt = 0); // After a failure, the next append sweeps again.
  }

  async #sweepLogs(before: number): Promise<void> {
    for await (const { key, value, versionstamp } of this.#kv.list({ start: ["mcp", "log"], end: ["mcp", "log~"] })) {
      if (!isLog(value) || value.due > before || this.#isClosed) continue;
      const [, , log] = key.map(String);
      await this.#change(["mcp", "log", log], versionstamp).delete(["mcp", "log", log])
        .set(["mcp", "dead", value.epoch], value.due).commit();
    }
    for await (const { key } of this.#kv.list({ start: ["mcp", "dead"], end: ["mcp", "dead~"] })) {
      const [, , epoch] = key.map(String);
      for (const kind of ["entry", "token", "part"]) await this.#clear(["mcp", kind, epoch]);
      if (!this.#isClosed) await this.#kv.atomic().delete(["mcp", "dead", epoch]).commit();
    }
    const pending = this.#kv.list({ start: ["mcp", "pending"], end: ["mcp", "pending~"] });
    for await (const { key, value: record, versionstamp } of pending) {
      if (isPending(record) && isKey(key) && record.since < before) {
        await this.#dropPending({ key, versionstamp, record });
      }
    }
  }

  async #clear(prefix: DenoKvKey): Promise<void> {
    const end = [...prefix.slice(0, -1), `${prefix[prefix.length - 1]}~`];
    const keys: DenoKvKey[] = [];
    for await (const { key } of this.#kv.list({ start: prefix, end })) if (isKey(key)) keys.push(key);
    for (const batch of toBatches(keys, CLEARED)) {
      if (this.#isClosed) return;
      const change = this.#kv.atomic();
      for (const key of batch) change.delete(key);
      await change.commit();
    }
  }
}

function toValueParts(key: string): DenoKvKey {
  return ["mcp", "value part", key];
}

function toEntryParts(epoch: string): DenoKvKey {
  return ["mcp", "part", epoch];
}

function dropParts(change: DenoKvAtomic, stored: Stored, from: DenoKvKey): void {
  if ("text" in stored) return;
  for (let i = 0; i < stored.parts; i++) change.delete([...from, stored.name, i]);
}

/** Commits a change that refers to a text. Returns `false` if a version did not match. */
async function commitWritten(change: DenoKvAtomic, { pending }: Written): Promise<boolean> {
  if (pending) change.check(pending).delete(pending.key);
  return (await change.commit()).ok;
}

function toHead(record: LogRecord | undefined): LogHead {
  if (!record || record.due <= Date.now()) return { first: 1, last: 0, epoch: "" };
  return { first: record.first, last: record.last, epoch: record.epoch };
}

function isKey(key: readonly unknown[]): key is DenoKvKey {
  return key.every((part) => typeof part === "string" || typeof part === "number");
}

const isValue = (value: unknown): value is ValueRecord => has(value, "version", "due");
const isLog = (value: unknown): value is LogRecord => has(value, "epoch", "due");
const isPending = (value: unknown): value is PendingRecord => has(value, "since", "stored");
const isEntry = (value: unknown): value is EntryRecord => has(value, "token");

function has(value: unknown, ...names: readonly string[]): boolean {
  return typeof value === "object" && value !== null && names.every((name) => name in value);
}

function toBatches<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** Repeats until `signal` aborts. An attempt fails if another process has changed the same key or locked the file. */
async function repeat<T>(signal: AbortSignal, attempt: () => Promise<{ readonly done: T } | undefined>): Promise<T> {
  for (let i = 0; !signal.aborted; i++) {
    try {
      const result = await attempt();
      if (result) return result.done;
    } catch (error) {
      if (!isLocked(error)) throw toFinal(error);
    }
    // Wait for a random time. Otherwise the same processes could conflict in every attempt.
    await delay(Math.random() * Math.min(2 ** i, 50), { clock: systemClock });
  }
  throw new Error(
    "Cannot finish the operation in Deno KV: until the timeout (timeoutMs), every attempt conflicted with another process",
  );
}

// Tests whether an error means that the file was locked, so that nothing was committed.
function isLocked(error: unknown): boolean {
  return error instanceof Error && /database is locked|busy/i.test(error.message);
}

/**
 * Deno KV throws a `TypeError` also for errors that a retry can fix, but a store does not retry after a `TypeError`.
 */
function toFinal(error: unknown): unknown {
  if (!(error instanceof TypeError) || /too large|exceed/i.test(error.message)) return error;
  return new Error(error.message, { cause: error });
}
