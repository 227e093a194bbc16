/**
 * The tasks of one server in its store: their records, their journals, and the processes that run them.
 *
 * A record changes under its version. The values of `once` are in a separate log, the journal. In the record, all
 * values would be written again for each new value.
 *
 * @module
 */
import type { ExtensionServer, ExtensionStore } from "../extension.ts";
import { memoryStore } from "../stores/stores.ts";
import type { TaskRecord } from "./task_record.ts";

/** A record with its version in the store. */
export interface FoundTask {
  readonly record: TaskRecord;
  readonly version: string;
}

/**
 * The tasks for which a process is responsible. Other processes take over these tasks when the lease of the process has
 * ended.
 */
export interface Crew {
  readonly prefix: string;
  /** Id of the process. `null` if the process has given its tasks back. */
  readonly by: string | null;
  /** Prefixes of the tasks: the process's own prefix, and the prefixes of processes whose tasks it has taken over. */
  readonly prefixes: readonly string[];
}

/** A value of `once`, as JSON. */
export interface JournalValue {
  readonly key: string;
  readonly json: string;
  readonly token: string;
}

/** Reads and writes tasks in the store. */
export class TaskStore {
  /** Whether other processes can use the store. */
  readonly isShared: boolean;
  readonly #server: ExtensionServer;
  readonly #store: ExtensionStore;

  /** Opens the store of a server. If the server has no store, tasks are kept in memory. */
  constructor(server: ExtensionServer) {
    this.#server = server;
    this.isShared = server.store !== undefined;
    this.#store = server.store ?? memoryStore({ clock: server.clock, bytes: MEMORY_BYTES });
  }

  /** The lease of this process, which shows that it is running. */
  get lease(): ExtensionStore["lease"] {
    return this.#store.lease;
  }

  /** Returns a task. */
  async get(id: string): Promise<FoundTask | undefined> {
    const found = await this.#store.get(`t-${id}`);
    const record = found && await this.#open<TaskRecord>(`t-${id}`, found.value);
    return record && { record, version: found.version };
  }

  /**
   * Writes a task. Returns its new version, or `undefined` if its version in the store is not `version`. `null` means
   * that the store must not contain the task.
   */
  async set(record: TaskRecord, version: string | null): Promise<string | undefined> {
    const { clock } = this.#server;
    const ttlMs = Math.max(record.createdAt + record.ttlMs - clock.date(), 0) + GRACE_MS;
    const key = `t-${record.id}`;
    return await this.#store.set(key, await this.#seal(key, record), { ttlMs, version });
  }

  /** Removes a task. */
  async delete(id: string): Promise<void> {
    await this.#store.delete(`t-${id}`);
  }

  /** Returns the tasks whose ids begin with a prefix. */
  async *list(prefix: string): AsyncGenerator<FoundTask> {
    for await (const { key, value, version } of this.#listAll(`t-${prefix}`)) {
      const record = await this.#open<TaskRecord>(key, value);
      if (record) yield { record, version };
    }
  }

  /**
   * Adds a value of `once` to the journal of a task. If it is called again with the same token, the value is added only
   * once.
   */
  async addValue({ id, run, createdAt, ttlMs }: TaskRecord, { key, json, token }: JournalValue): Promise<void> {
    const left = Math.max(createdAt + ttlMs - this.#server.clock.date(), 0) + GRACE_MS;
    const text = await this.#seal(`j-${id}`, [run, key, json]);
    await this.#store.append(`j-${id}`, text, { ttlMs: left, max: MAX_VALUES, token });
  }

  /**
   * Returns the values of `once` of a task, as JSON. A process whose lease had expired may have added values after a
   * later run had begun. For each key, the value of the latest run counts.
   */
  async readValues(id: string): Promise<Map<string, string>> {
    const values = new Map<string, { readonly run: number; readonly json: string }>();
    let after = 0;
    while (true) {
      const { entries, first, last } = await this.#store.read(`j-${id}`, { after, limit: 100 });
      if (after === 0 && first > 1) {
        throw new RangeError(
          "Cannot resume the task: the first values of ctx.once are no longer stored; use fewer values",
        );
      }
      for (const { value } of entries) {
        const opened = await this.#open<[number, string, string]>(`j-${id}`, value);
        if (!opened) {
          throw new TypeError(
            "Cannot resume the task: a value of ctx.once was sealed with another secret or version; use the same on all instances",
          );
        }
        const [run, key, json] = opened;
        const known = values.get(key);
        if (!known || known.run < run) values.set(key, { run, json });
      }
      const newest = entries.at(-1);
      if (!newest || newest.id >= last) return new Map([...values].map(([key, { json }]) => [key, json]));
      after = newest.id;
    }
  }

  /** Writes the tasks for which a process is responsible. */
  async setCrew(crew: Crew, ttlMs: number): Promise<void> {
    const key = `i-${crew.prefix}`;
    await this.#store.set(key, await this.#seal(key, crew), { ttlMs: Math.min(ttlMs + GRACE_MS, MAX_TTL_MS) });
  }

  /** Removes a process that is no longer responsible for any task. */
  async deleteCrew(prefix: string): Promise<void> {
    await this.#store.delete(`i-${prefix}`);
  }

  /** Returns all processes that are responsible for tasks, with their tasks. */
  async listCrews(): Promise<readonly Crew[]> {
    const crews: Crew[] = [];
    for await (const { key, value } of this.#listAll("i-")) {
      const crew = await this.#open<Crew>(key, value);
      if (crew) crews.push(crew);
    }
    return crews;
  }

  /** Publishes a message to the process that is responsible for the tasks with this prefix. */
  async tell(prefix: string, news: unknown): Promise<void> {
    const topic = `c-${prefix}`;
    await this.#store.publish(topic, await this.#seal(topic, news));
  }

  /** Calls `listener` with each message for a prefix. Returns a function that stops listening. */
  async listen(prefix: string, listener: (news: unknown) => void): Promise<() => void> {
    const topic = `c-${prefix}`;
    return await this.#store.subscribe(topic, (text) => {
      this.#open(topic, text).then((news) => news !== undefined && listener(news), () => {});
    });
  }

  async *#listAll(prefix: string) {
    let after: string | undefined;
    while (true) {
      const page = await this.#store.list(prefix, { after, limit: PAGE });
      yield* page;
      if (page.length < PAGE) return;
      after = page[page.length - 1].key;
    }
  }

  // Values in the memory of this process need no seal.
  async #seal(place: string, value: unknown): Promise<string> {
    const all = [FORMAT, place, value];
    return this.isShared ? await this.#server.seal(all) : JSON.stringify(all);
  }

  async #open<T>(place: string, text: string): Promise<T | undefined> {
    const opened: unknown = this.isShared ? await this.#server.open(text) : JSON.parse(text);
    if (!Array.isArray(opened) || opened[0] !== FORMAT || opened[1] !== place) return;
    // Safe, because only this class seals these values, and only servers with the secret can seal a value.
    return opened[2] as T;
  }
}

/** The version of the format. A value with another format was written by another version of the library. */
const FORMAT = 1;

/** Values in one page of a list in the store. */
const PAGE = 100;

/** Maximum number of `once` values of one task. */
export const MAX_VALUES = 1000;

/**
 * Milliseconds for which the store keeps a task after its time to live, so that clients can still read how it ended.
 */
const GRACE_MS = 60_000;

/** Longest time to live in a store, in milliseconds: a year. */
const MAX_TTL_MS = 31_536_000_000;

/**
 * Maximum bytes of the store in memory. The maximum is larger than the bytes that extensions may keep for clients, so
 * that this limit is never reached first.
 */
const MEMORY_BYTES = 268_435_456;
