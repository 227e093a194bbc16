/**
 * Finds and changes the tasks of one server, whether they run in this process, run in another process, or have ended.
 */
import { McpError, type Params } from "../../library.ts";
import type { KeptBytes, ServerHandle } from "../extension.ts";
import { toBytes } from "./bytes.ts";
import { EndedTasks } from "./ended_tasks.ts";
import { type RunningTask, toFull, untilDone } from "./running_task.ts";
import { toAnswers, withAnswers } from "./task_answers.ts";
import type { Keep } from "./task_bytes.ts";
import { Takeover, type TakeoverHost } from "./takeover.ts";
import { isEnded, type TaskRecord } from "./task_record.ts";
import { TaskStore } from "./task_store.ts";

/** Sends the new state of a task to the clients that subscribe to the task. */
export type Announce = (record: TaskRecord) => void;

export class Jobs implements TakeoverHost {
  readonly server: ServerHandle;
  readonly store: TaskStore;
  /** The first eight characters of the id of each task that this process has started. */
  readonly prefix: string = toPrefix();
  readonly #announce: Announce;
  // Bound: `calls.detached`.
  readonly #running = new Map<string, RunningTask>();
  readonly #ended: EndedTasks;
  // Bound: `calls.running`, because each read is part of a call.
  readonly #reading = new Map<string, Promise<TaskRecord | undefined>>();
  readonly #takeover: Takeover;
  /**
   * Prefixes of the task ids for which this process is responsible, each with the time at which the last task with this
   * prefix expires.
   */
  // Bound: one per instance whose tasks this process has taken over, and that have not expired.
  readonly #prefixes = new Map([[this.prefix, Infinity]]);
  /** Time at which this process's entry in the store expires, in milliseconds since 1970. */
  #knownUntil = 0;
  /** The term of the lease in which this process has written its entry. */
  #term?: number;
  #opening?: Promise<void>;
  #adopting: Promise<void> = Promise.resolve();
  #stopListening?: () => void;
  readonly #stopWatching: () => void;
  #release?: () => void;
  /** The tools whose tasks cannot resume, which was reported. */
  // Bound: one per tool.
  readonly #reported = new Set<string>();

  /** Starts to search for tasks that the server can take over. */
  constructor(server: ServerHandle, announce: Announce) {
    this.server = server;
    this.store = new TaskStore(server);
    this.#announce = announce;
    this.#ended = new EndedTasks(server.clock);
    this.#takeover = new Takeover(this);
    this.#takeover.start();
    this.#stopWatching = server.handlers.watch(() => this.#cancelRemoved());
  }

  /** Reports to the observer that tasks of a tool cannot resume. Each tool is reported once. */
  reportOnce(tool: string, problem: string): void {
    if (this.#reported.has(tool)) return;
    this.#reported.add(tool);
    this.server.report(new TypeError(problem));
  }

  makeId(): string {
    return this.prefix + toRandom(18);
  }

  /** Writes a new task to the store. Rejects if the task cannot be written, or if its tool was removed. */
  async begin(task: RunningTask): Promise<void> {
    if (!this.#hasTool(task)) {
      throw McpError.invalidParams("Cannot begin a task: the tool was removed from the server");
    }
    await this.adopt(this.prefix, task.record);
    await task.begin();
    this.#running.set(task.record.id, task);
    // The tool may have been removed while the task was written.
    this.#cancelRemoved();
  }

  #hasTool({ record: { tool } }: RunningTask): boolean {
    return this.server.handlers.has("tool", tool);
  }

  // Cancels the tasks whose tool was removed from the server, because no caller can get their results.
  #cancelRemoved(): void {
    for (const task of this.#running.values()) if (!this.#hasTool(task)) task.cancel().catch(() => {});
  }

  add(task: RunningTask): void {
    this.#running.set(task.record.id, task);
  }

  /** Makes this process responsible for tasks with this prefix, until the given task has expired. */
  async adopt(prefix: string, { createdAt, ttlMs }: TaskRecord): Promise<void> {
    if (!this.store.isShared) return;
    await (this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    }));
    // Run the writes one after another, because each write must contain the prefixes of all earlier writes.
    const adopting = this.#adopting.then(() => this.#adopt(prefix, createdAt + ttlMs));
    this.#adopting = adopting.catch(() => {});
    await adopting;
  }

  async #adopt(prefix: string, until: number): Promise<void> {
    const known = this.#prefixes.get(prefix);
    const last = Math.max(known ?? 0, until);
    const term = await this.store.lease.confirm();
    // While the lease was expired, another process may have taken over all tasks, and have removed the entry.
    if (known === undefined || until > this.#knownUntil || term !== this.#term) {
      const now = this.server.clock.date();
      for (const [each, end] of this.#prefixes) if (end < now) this.#prefixes.delete(each);
      // Let the entry live twice as long as required, so that most new tasks do not have to write the entry.
      const left = 2 * (Math.max(this.#knownUntil, until) - now);
      await this.#setCrew(this.store.lease.id, left, [...this.#prefixes.keys(), prefix]);
      // Set `#knownUntil` only after the write has succeeded. If later tasks relied on an entry that was never written,
      // no other process could find these tasks after this process has ended.
      this.#knownUntil = now + left;
      this.#term = term;
    }
    this.#prefixes.set(prefix, last);
  }

  async #setCrew(by: string | null, ms: number, prefixes: Iterable<string> = this.#prefixes.keys()): Promise<void> {
    await this.store.setCrew({ prefix: this.prefix, by, prefixes: [...new Set(prefixes)] }, ms);
  }

  onChange(task: RunningTask): void {
    if (task.record.isWatched) this.#announce(task.record);
  }

  onEnd(task: RunningTask): void {
    const { id, by } = task.record;
    this.#running.delete(id);
    if (isEnded(task.record)) {
      task.chargeEnded();
      this.#ended.add(task.record);
    } else if (by === null || !task.isLost) {
      // The handler has ended, and no other process runs the task: this process has released the task, or the write of
      // the release or of the end has failed.
      this.#takeover.leave(task.record);
    }
  }

  announce(record: TaskRecord): void {
    this.#announce(record);
  }

  /**
   * Returns a task. Returns `undefined` if the task does not exist or belongs to another caller. Rejects with the error
   * for the client if the caller may not call the task's tool. Without `caller`, the task may belong to any caller.
   */
  async find(id: string, caller?: Caller): Promise<TaskRecord | undefined> {
    const store = caller?.store ?? this.store;
    const record = this.#running.get(id)?.record ?? this.#ended.get(id) ?? await this.#read(id, store);
    return record && await mayUse(record, caller) ? record : undefined;
  }

  async *list(): AsyncGenerator<TaskRecord> {
    for await (const { record } of this.store.list("")) yield record;
  }

  /** Returns `false` if the caller has no such task. Rejects as {@linkcode find} does. */
  async answer(id: string, answers: Params, caller?: Caller): Promise<boolean> {
    return await this.#change(id, caller, (running) => running.answer(answers), (record) => {
      const asked = record.work?.questions ?? {};
      const open = Object.fromEntries(toAnswers(answers).filter(([key]) => Object.hasOwn(asked, key)));
      // Send also answers that are already in the record, because the message about them may have been lost.
      return { next: withAnswers(record, open), news: Object.keys(open).length ? { answers: open } : undefined };
    });
  }

  /** Cancels a task, unless the task has ended. Returns `false` if the caller has no such task. */
  async cancel(id: string, caller?: Caller): Promise<boolean> {
    return await this.#change(id, caller, (running) => running.cancel(), ({ work: _, ...record }) => {
      const next = { ...record, status: "cancelled" as const, updatedAt: this.server.clock.date(), by: null };
      return { next, news: { isCancelled: true } };
    }, (record) => this.#repeatCancel(record, caller));
  }

  // The client may have repeated its request because the message to the process that ran the task was lost.
  async #repeatCancel(record: TaskRecord, caller: Caller | undefined): Promise<void> {
    const { id, crew, status } = record;
    if (status !== "cancelled" || crew === this.prefix || !this.store.isShared) return;
    const kept = caller?.keep(MESSAGE_BYTES);
    if (caller && !kept) throw toFull();
    kept?.expireIn(MESSAGE_MS);
    const store = caller?.store ?? this.store;
    await store.publishTo(crew, { id, isCancelled: true });
    await store.markEnded(record);
  }

  /**
   * Asks the process that runs the task to announce each change to all instances, so that this process can notify its
   * subscribed clients. The caller's subscription has been granted.
   */
  async watch(id: string, { store }: Caller): Promise<void> {
    const running = this.#running.get(id);
    if (running) return void running.watch();
    const record = this.#ended.get(id) ?? await this.#read(id, store);
    if (record && !isEnded(record) && !record.isWatched) await store.publishTo(record.crew, { id, isWatched: true });
  }

  /** Returns the current state of a task for a subscriber. Returns `undefined` if the caller has no such task. */
  async load(id: string, { owner, store }: Caller): Promise<TaskRecord | undefined> {
    const record = this.#running.get(id)?.record ?? this.#ended.get(id) ?? (await store.get(id))?.record;
    return record?.owner === owner ? record : undefined;
  }

  /** Releases unfinished tasks so that other processes can run them. Resolves when all handlers have ended. */
  async stop(): Promise<void> {
    this.#takeover.stop();
    this.#stopWatching();
    // Wait for the search first, because it may just be taking over a task.
    await this.#takeover.untilIdle();
    await Promise.all([...this.#running.values()].map(({ over }) => over));
    this.#ended.close();
    this.#stopListening?.();
    if (!this.#opening) return;
    // Ignore store errors, because other processes take over the tasks when the lease has expired.
    await this.#leave().catch(() => {});
    this.#release?.();
  }

  async #leave(): Promise<void> {
    if (!this.#takeover.hasLeft) return await this.store.deleteCrew(this.prefix);
    await this.#setCrew(null, Math.max(this.#knownUntil - this.server.clock.date(), 1));
  }

  async #open(): Promise<void> {
    // Acquire the lease before the first task is written. Otherwise another process could find a task without a lease,
    // and take over the task.
    this.#release = await this.store.lease.hold();
    this.#stopListening = await this.store.listen(this.prefix, {
      onNews: (news) => void this.#obey(news).catch(() => {}),
      onGap: () => this.#refreshAll(),
    });
  }

  // Concurrent requests for a task share one read of the store.
  async #read(id: string, store: TaskStore): Promise<TaskRecord | undefined> {
    if (!isTaskId(id)) return;
    // If the read of another request fails, read again, because only the other request's client may have been refused.
    const shared = await this.#reading.get(id)?.catch(() => undefined);
    if (shared) return shared;
    const reading = store.get(id).then((found) => found?.record);
    this.#reading.set(id, reading);
    try {
      const record = await reading;
      if (record && isEnded(record)) this.#ended.add(record);
      return record;
    } finally {
      if (this.#reading.get(id) === reading) this.#reading.delete(id);
    }
  }

  /**
   * Changes a task. If the task does not run in this process, writes the change to the store and notifies the process
   * that runs the task. Calls `onEnded` instead if the task has already ended.
   */
  async #change(
    id: string,
    caller: Caller | undefined,
    changeHere: (running: RunningTask) => Promise<unknown>,
    change: (record: TaskRecord) => Change,
    onEnded?: (record: TaskRecord) => Promise<void>,
  ): Promise<boolean> {
    const store = caller?.store ?? this.store;
    for (let left = ATTEMPTS; left; left--) {
      // Look for the task in this process in each attempt, because this process may have taken over the task since the
      // last attempt.
      const running = this.#running.get(id);
      if (running && !running.isLost && await mayUse(running.record, caller)) {
        // The task may have ended during the check.
        if (this.#running.get(id) !== running) continue;
        try {
          await changeHere(running);
        } catch (error) {
          // This process has learned from the store that it no longer runs the task, so try the task in the store.
          if (running.isLost) continue;
          throw error;
        }
        return true;
      }
      const found = isTaskId(id) ? await store.get(id) : undefined;
      if (!found || !await mayUse(found.record, caller)) return false;
      if (isEnded(found.record)) {
        await onEnded?.(found.record);
        return true;
      }
      const { next, news } = change(found.record);
      const kept = caller && this.#keepAnswers(found.record, { next, news }, caller);
      const release = () => kept?.forEach((each) => each.end());
      let version: string | undefined = found.version;
      if (next !== found.record) {
        version = await store.set(next, found.version).catch((error) => {
          // After any other error, the record may have been written.
          if (error instanceof RangeError) release();
          throw error;
        });
      }
      if (version === undefined) {
        release();
        continue;
      }
      // Notify clients here only if no process runs the task. A process that runs the task notifies clients itself.
      if (found.record.by === null && next.isWatched && next !== found.record) this.#announce(next);
      if (news && found.record.by !== null) {
        await store.publishTo(found.record.crew, { id, base: found.version, version, ...news });
      }
      // Notify others first, because this write may fail.
      await store.markEnded(next);
      // A process that runs the task deletes the values itself, because it may still be adding a value.
      if (isEnded(next) && found.record.by === null) await store.deleteValues(next);
      return true;
    }
    throw McpError.busy(
      `Cannot change the task: in all ${ATTEMPTS} attempts, another process changed the task first; try again`,
    );
  }

  /** Counts the answers in the record and the messages against the client's share. Throws if there is no room. */
  #keepAnswers(record: TaskRecord, { next, news }: Change, { keep }: Caller): KeptBytes[] {
    const { answers } = news ?? {};
    if (!answers) return [];
    const amounts: [bytes: number, ms: number][] = [];
    if (next !== record) amounts.push([toBytes(answers), this.store.toTtl(record)]);
    if (record.by !== null) amounts.push([MESSAGE_BYTES + toBytes(answers), MESSAGE_MS]);
    const all: KeptBytes[] = [];
    for (const [bytes, ms] of amounts) {
      const kept = keep(bytes);
      if (!kept) {
        for (const each of all) each.end();
        throw toFull();
      }
      kept.expireIn(ms);
      all.push(kept);
    }
    return all;
  }

  /** Reads the running tasks again, because this process may have missed messages about them. */
  #refreshAll(): void {
    for (const task of this.#running.values()) {
      task.refresh().catch(() => {});
    }
  }

  /** Handles a message from another process about a task that runs in this process. */
  async #obey(news: unknown): Promise<void> {
    const { id, isWatched, ...rest } = Object(news);
    const running = this.#running.get(id);
    if (!isWatched) return await running?.adopt(rest);
    // The other process may have missed changes of a task that was not watched.
    if (running) return void (running.watch() && this.#announce(running.record));
    // The task has ended since the other process read its record, so the other process waits for its end in vain.
    const find = async () => this.#ended.get(id) ?? (await this.store.get(id))?.record;
    const record = await untilDone(find, this.server);
    if (record && isEnded(record)) this.#announce(record);
  }
}

export interface Caller {
  /** Id of the principal. `undefined` if the caller has no principal. */
  readonly owner: string | undefined;
  /** The tasks in the store, with operations that count towards the caller's share. */
  readonly store: TaskStore;
  /** Counts bytes that are stored for the caller. */
  readonly keep: Keep;
  /** Rejects if the caller may not call the task's tool. Without `check`, the owner may use the task in any case. */
  readonly check?: (record: TaskRecord) => Promise<void>;
}

// A request without a caller comes from an operator, who can use all tasks.
async function mayUse(record: TaskRecord, caller: Caller | undefined): Promise<boolean> {
  if (caller && record.owner !== caller.owner) return false;
  await caller?.check?.(record);
  return true;
}

/** The changed record of a task, and the message to the process that runs the task. */
interface Change {
  readonly next: TaskRecord;
  readonly news?: { readonly answers?: Params; readonly isCancelled?: boolean };
}

/** Maximum attempts to change a task. An attempt fails if another process changes the task at the same time. */
const ATTEMPTS = 20;

/** Milliseconds for which a store keeps a message to another process. */
const MESSAGE_MS = 3_600_000;

/** Estimated bytes that a message takes in a store in addition to its answers. */
const MESSAGE_BYTES = 512;

/**
 * Matches task ids: 6 bytes that identify a process, and 18 random bytes, as Base64url. The random part is long,
 * because a task without a principal is protected only by its id.
 */
const ID = /^[\w-]{32}$/;

export function isTaskId(id: string): boolean {
  return ID.test(id);
}

/** Returns a prefix that begins with a letter, because a command line reads an argument with a dash as an option. */
function toPrefix(): string {
  const random = crypto.getRandomValues(new Uint8Array(6));
  random[0] &= 0x7f;
  return toBase64Url(random);
}

function toRandom(bytes: number): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(bytes)));
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
}
