/**
 * Stores the tasks of one server: the task records, the journals, and the processes that run the tasks.
 *
 * A record is written with its version, so that concurrent changes are detected. The values of `once` are in a separate
 * log, the journal, because a record would have to be rewritten with all values whenever a value is added.
 */
import type { ServerHandle, StoreView } from "../extension.ts";
import type { Context } from "../../library.ts";
import { PageSize, readPage } from "../../stores/page_size.ts";
import { memoryStore } from "../../stores/stores.ts";
import { isEnded, isExpired, type TaskRecord } from "./task_record.ts";

export interface FoundTask {
  readonly record: TaskRecord;
  readonly version: string;
}

/** The tasks for which a process is responsible until its lease expires. Other processes then take over the tasks. */
export interface Crew {
  readonly prefix: string;
  /** Id of the process's lease. `null` if the process has released its tasks. */
  readonly by: string | null;
  /** Prefixes of task ids: the process's own prefix, and the prefixes of processes whose tasks it has taken over. */
  readonly prefixes: readonly string[];
}

export interface FoundCrew {
  readonly crew: Crew;
  readonly version: string;
}

/** A value that `once` has created. The token prevents adding the value twice. */
export interface JournalValue {
  readonly key: string;
  readonly json: string;
  readonly token: string;
}

export interface Listener {
  readonly onNews: (news: unknown) => void;
  /** Called if the store has dropped messages before this process could read them. */
  readonly onGap: () => void;
}

export class TaskStore {
  /** Whether other processes use the same store. */
  readonly isShared: boolean;
  readonly #server: ServerHandle;
  readonly #store: StoreView;

  /**
   * Uses `store`, whose operations belong to a client or to this process. By default, uses the server's store for this
   * process. If the server has no store, tasks are stored in memory.
   */
  constructor(server: ServerHandle, store?: StoreView) {
    this.#server = server;
    this.isShared = server.store !== undefined;
    this.#store = store ?? server.store?.own ?? memoryStore({ clock: server.clock, bytes: MEMORY_BYTES });
  }

  /** Returns the tasks, with operations that count towards the share of the client of a request. */
  by(ctx: Context): TaskStore {
    const { store } = this.#server;
    return store ? new TaskStore(this.#server, store.by(ctx)) : this;
  }

  /** The lease of this process, which shows other processes that this process is running. */
  get lease(): StoreView["lease"] {
    return this.#store.lease;
  }

  /** Returns the milliseconds for which the store keeps the data of a task that is written now. */
  toTtl({ createdAt, ttlMs }: TaskRecord): number {
    return Math.max(createdAt + ttlMs - this.#server.clock.date(), 0) + GRACE_MS;
  }

  async get(id: string): Promise<FoundTask | undefined> {
    const found = await this.#store.get(`t-${id}`);
    const record = found && this.#readTask(found.value);
    return record && { record, version: found.version };
  }

  /**
   * Writes a task if the stored version is `version`, or, with `null`, if the store does not contain the task. Returns
   * the new version, or `undefined` if the task was not written.
   */
  async set(record: TaskRecord, version: string | null): Promise<string | undefined> {
    return await this.#store.set(`t-${record.id}`, JSON.stringify(record), { ttlMs: this.toTtl(record), version });
  }

  /**
   * Records that a task has ended, so that its record cannot be put back by somebody who can write to the store. Does
   * nothing for a task that has not ended, or that cannot resume.
   */
  async markEnded(record: TaskRecord): Promise<void> {
    const { mark } = record;
    if (mark === undefined || !isEnded(record)) return;
    const ttlMs = Math.min(this.toTtl(record) + SKEW_MS, MAX_TTL_MS);
    await this.#store.set(`e-${mark}`, "1", { ttlMs });
  }

  async isMarked({ mark }: TaskRecord): Promise<boolean> {
    return mark !== undefined && await this.#store.get(`e-${mark}`) !== undefined;
  }

  async *list(prefix: string): AsyncGenerator<FoundTask> {
    for await (const { value, version } of this.#listAll(`t-${prefix}`)) {
      const record = this.#readTask(value);
      if (record) yield { record, version };
    }
  }

  /** Adds a `once` value to the journal of a task. Repeated calls with the same token add the value only once. */
  async addValue(record: TaskRecord, { key, json, token }: JournalValue): Promise<void> {
    const { id, run } = record;
    const text = JSON.stringify([run, key, json]);
    await this.#store.append(`j-${id}`, text, { ttlMs: this.toTtl(record), max: MAX_VALUES, token });
  }

  /**
   * Returns the `once` values of a task by key, as JSON. For each key, returns the value from the latest run, because a
   * process whose lease has expired may still add values while a later run is in progress.
   */
  async readValues(id: string): Promise<Map<string, string>> {
    const values = new Map<string, { readonly run: number; readonly json: string }>();
    let after = 0;
    const page = new PageSize();
    const read = async (limit: number) => await this.#store.read(`j-${id}`, { after, limit });
    while (true) {
      const { entries, first, last } = await readPage(page, read, ({ entries }) => entries);
      if (after === 0 && first > 1) {
        throw new RangeError(
          "Cannot resume the task: the store has dropped the task's first ctx.once values; store fewer values",
        );
      }
      for (const { id: place, value } of entries) {
        // An entry that cannot be opened is not in the page.
        if (place > ++after) throw toForeign();
        const [run, key, json]: [number, string, string] = JSON.parse(value);
        const known = values.get(key);
        if (!known || known.run < run) values.set(key, { run, json });
      }
      if (after >= last) return new Map([...values].map(([key, { json }]) => [key, json]));
      if (!entries.length) throw toForeign();
    }
  }

  /** Deletes the `once` values of a task that has ended. */
  async deleteValues({ id }: TaskRecord): Promise<void> {
    await this.#store.trim(`j-${id}`, Number.MAX_SAFE_INTEGER);
  }

  /** Writes the entry of a process. The store keeps the entry for `ttlMs` milliseconds and a grace period. */
  async setCrew(crew: Crew, ttlMs: number): Promise<void> {
    const text = JSON.stringify(crew);
    await this.#store.set(`i-${crew.prefix}`, text, { ttlMs: Math.min(ttlMs + GRACE_MS, MAX_TTL_MS) });
  }

  /** For a process without tasks. With `version`, keeps an entry that it has written since the version was read. */
  async deleteCrew(prefix: string, version?: string): Promise<void> {
    await this.#store.delete(`i-${prefix}`, { version });
  }

  async listCrews(): Promise<readonly FoundCrew[]> {
    const crews: FoundCrew[] = [];
    for await (const { value, version } of this.#listAll("i-")) crews.push({ crew: JSON.parse(value), version });
    return crews;
  }

  async publishTo(prefix: string, news: unknown): Promise<void> {
    await this.#store.publish(`c-${prefix}`, JSON.stringify(news));
  }

  /**
   * Listens to the messages that are published to a prefix, and removes them. Otherwise each message would renew the
   * time to live of all earlier messages, although their clients are no longer charged. Returns a function that stops
   * listening.
   */
  async listen(prefix: string, { onNews, onGap }: Listener): Promise<() => void> {
    const topic = `c-${prefix}`;
    let last = 0;
    let stopTimer: (() => void) | undefined;
    const trim = async () => {
      stopTimer = undefined;
      await this.#store.trim(topic, last + 1);
    };
    const stop = await this.#store.subscribe(topic, (text, id) => {
      last = id;
      // If this fails, the messages are removed together with later messages.
      stopTimer ??= this.#server.clock.start(() => void trim().catch(() => {}), TRIM_MS, { background: true });
      onNews(JSON.parse(text));
    }, { onGap });
    return () => {
      stop();
      stopTimer?.();
    };
  }

  // Ignores a record that the store should have deleted, because somebody may have put it back.
  #readTask(value: string): TaskRecord | undefined {
    const record: TaskRecord = JSON.parse(value);
    return isExpired(record, this.#server.clock.date() - GRACE_MS) ? undefined : record;
  }

  async *#listAll(prefix: string) {
    let after: string | undefined;
    const page = new PageSize();
    let wanted = 0;
    const read = async (limit: number) => {
      wanted = limit;
      return await this.#store.list(prefix, { after, limit });
    };
    while (true) {
      const found = await readPage(page, read, (found) => found);
      yield* found;
      if (found.length < wanted) return;
      after = found[found.length - 1].key;
    }
  }
}

function toForeign(): TypeError {
  return new TypeError(
    "Cannot resume the task: a value of ctx.once was sealed with another secret or library version; use the same secret and version on all instances",
  );
}

/** Estimated bytes that a `once` value takes in the store in addition to its key and its JSON. */
export const VALUE_BYTES = 256;

/** Maximum number of `once` values per task. */
export const MAX_VALUES = 1000;

/** Milliseconds for which the store keeps an expired record, so that clients can still read the outcome. */
const GRACE_MS = 60_000;

/**
 * Additional milliseconds for which the store keeps the record of an end, because a record that is put back has not
 * expired yet for an instance whose clock is slow.
 */
const SKEW_MS = 3_600_000;

/** Milliseconds after which messages that this process has received are removed, so that many are removed at once. */
const TRIM_MS = 60_000;

/** Maximum time to live of a stored value, in milliseconds: one year. */
const MAX_TTL_MS = 31_536_000_000;

/**
 * Maximum size in bytes of the store in memory: twice the limit on bytes that extensions store for clients. Clients are
 * charged for the data of their tasks for as long as the store keeps it, so they reach their own limit first. The rest
 * is for what they are not charged for, such as the keys of the store.
 */
const MEMORY_BYTES = 268_435_456;
