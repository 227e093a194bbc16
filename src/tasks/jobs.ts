/**
 * The tasks of one server: those that run here, those that other processes run, and those that have ended.
 *
 * @module
 */
import { McpError, type Params } from "../library.ts";
import type { ExtensionServer } from "../extension.ts";
import { type Charge, toBytes } from "./charge.ts";
import { Ended } from "./ended_tasks.ts";
import { type RunningTask, withAnswers } from "./running_task.ts";
import { Takeover, type TakeoverHost } from "./takeover.ts";
import { isEnded, type TaskRecord } from "./task_record.ts";
import { TaskStore } from "./task_store.ts";

/** Tells the clients that listen to a task what has become of it. */
export type Announce = (record: TaskRecord) => void;

/** The tasks of one server. */
export class Jobs implements TakeoverHost {
  readonly server: ExtensionServer;
  readonly store: TaskStore;
  /** Begins the ids of the tasks of this process. */
  readonly prefix: string = toRandom(6);
  readonly #announce: Announce;
  readonly #running = new Map<string, RunningTask>();
  readonly #ended: Ended;
  readonly #reading = new Map<string, Promise<TaskRecord | undefined>>();
  readonly #takeover: Takeover;
  /** Prefixes of the tasks that this process is responsible for, and when the last of them expires. */
  readonly #prefixes = new Map([[this.prefix, Infinity]]);
  /** Time until which others know of this process, in milliseconds since 1970. */
  #knownUntil = 0;
  #opening?: Promise<void>;
  #adopting: Promise<void> = Promise.resolve();
  #stopListening?: () => void;
  #release?: () => void;
  /** Whether a task was left for another process. */
  #hasLeft = false;

  /** Creates the tasks of a server that has started. */
  constructor(server: ExtensionServer, announce: Announce) {
    this.server = server;
    this.store = new TaskStore(server);
    this.#announce = announce;
    this.#ended = new Ended(server.clock);
    this.#takeover = new Takeover(this);
    this.#takeover.start();
  }

  /** Makes a new id. */
  makeId(): string {
    return this.prefix + toRandom(18);
  }

  /** Writes a task, which runs from now on. Rejects if that fails. */
  async begin(task: RunningTask): Promise<void> {
    await this.adopt(this.prefix, task.record);
    await task.begin();
    this.#running.set(task.record.id, task);
  }

  /** Adds a task that this process has taken over. */
  add(task: RunningTask): void {
    this.#running.set(task.record.id, task);
  }

  /** Makes this process responsible for the tasks whose ids begin with a prefix, until the end of one of them. */
  async adopt(prefix: string, { createdAt, ttlMs }: TaskRecord): Promise<void> {
    if (!this.store.isShared) return;
    await (this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    }));
    // One after another, because a later write names the prefixes of all earlier ones.
    const adopting = this.#adopting.then(() => this.#adopt(prefix, createdAt + ttlMs));
    this.#adopting = adopting.catch(() => {});
    await adopting;
  }

  async #adopt(prefix: string, until: number): Promise<void> {
    const known = this.#prefixes.get(prefix);
    const last = Math.max(known ?? 0, until);
    if (known === undefined || until > this.#knownUntil) {
      const now = this.server.clock.date();
      for (const [each, end] of this.#prefixes) if (end < now) this.#prefixes.delete(each);
      // For twice as long, so that it is not written for each task.
      const left = 2 * (Math.max(this.#knownUntil, until) - now);
      await this.#setCrew(this.store.lease.id, left, [...this.#prefixes.keys(), prefix]);
      // Not before: without a crew in the store, nobody finds the tasks of this process after its end.
      this.#knownUntil = now + left;
    }
    this.#prefixes.set(prefix, last);
  }

  async #setCrew(by: string | null, ms: number, prefixes: Iterable<string> = this.#prefixes.keys()): Promise<void> {
    await this.store.setCrew({ prefix: this.prefix, by, prefixes: [...new Set(prefixes)] }, ms);
  }

  /** Ends what a client is charged with when its task expires. */
  chargeUntilExpired(record: TaskRecord, charge: Charge): void {
    this.#ended.charge(record, charge);
  }

  onChange(task: RunningTask): void {
    if (task.record.isWatched) this.#announce(task.record);
  }

  onEnd(task: RunningTask): void {
    const { id, by } = task.record;
    this.#running.delete(id);
    if (isEnded(task.record)) {
      // Its parameters, questions and values are gone.
      task.charge?.finish(toBytes(task.record));
      this.#ended.add(task.record);
    } else if (by === null) {
      this.#hasLeft = true;
      this.#takeover.leave(id);
    }
  }

  /** Tells the clients that listen to a task. */
  announce(record: TaskRecord): void {
    this.#announce(record);
  }

  /** Returns a task of a caller. Returns `undefined` for a task of another caller. Without `owner`, any caller may have it. */
  async find(id: string, caller?: Caller): Promise<TaskRecord | undefined> {
    const record = this.#running.get(id)?.record ?? this.#ended.get(id) ?? await this.#read(id);
    return record && isOf(record, caller) ? record : undefined;
  }

  /** Returns all tasks in the store. */
  async *list(): AsyncGenerator<TaskRecord> {
    for await (const { record } of this.store.list("")) yield record;
  }

  /** Answers questions of a task. Returns `false` if the caller has no such task. */
  async answer(id: string, answers: Params, caller?: Caller): Promise<boolean> {
    return await this.#change(id, caller, (running) => running.answer(answers), (record) => {
      const asked = record.work?.questions ?? {};
      const open = Object.entries(answers).filter(([key]) => Object.hasOwn(asked, key));
      const isAnswered = ([key]: readonly [string, unknown]) => Object.hasOwn(record.work?.answers ?? {}, key);
      const fresh = Object.fromEntries(open.filter((each) => !isAnswered(each)));
      // The process that runs the task checks answers. It may find that the one it has is not valid.
      const others = Object.fromEntries(open.filter(isAnswered));
      const next = Object.keys(fresh).length ? withAnswers(record, fresh) : record;
      return { next, news: open.length ? { answers: fresh, others } : undefined };
    });
  }

  /** Cancels a task, unless it has ended. Returns `false` if the caller has no such task. */
  async cancel(id: string, caller?: Caller): Promise<boolean> {
    return await this.#change(id, caller, (running) => running.cancel(), ({ work: _, ...record }) => {
      const next = { ...record, status: "cancelled" as const, updatedAt: this.server.clock.date(), by: null };
      return { next, news: { isCancelled: true } };
    });
  }

  /** Lets the clients of this process learn of each change of a task. */
  async watch(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running) return running.watch();
    const record = await this.find(id);
    if (record && !isEnded(record)) await this.store.tell(record.crew, { id, isWatched: true });
  }

  /** Stops what belongs to the tasks, when no handler runs any more. */
  async stop(): Promise<void> {
    this.#takeover.stop();
    await Promise.all([...this.#running.values()].map(({ over }) => over));
    await this.#takeover.settle();
    this.#ended.close();
    this.#stopListening?.();
    if (!this.#opening) return;
    // Without the store, other processes find out when the lease expires.
    await this.#leave().catch(() => {});
    this.#release?.();
  }

  async #leave(): Promise<void> {
    if (!this.#hasLeft) return await this.store.deleteCrew(this.prefix);
    await this.#setCrew(null, Math.max(this.#knownUntil - this.server.clock.date(), 1));
  }

  async #open(): Promise<void> {
    // Others must find the lease before they find a task.
    this.#release = await this.store.lease.hold();
    this.#stopListening = await this.store.listen(this.prefix, (news) => void this.#obey(news).catch(() => {}));
  }

  // Many clients may ask for the same task at the same time.
  async #read(id: string): Promise<TaskRecord | undefined> {
    if (!ID.test(id)) return;
    const reading = this.#reading.get(id) ?? this.store.get(id).then((found) => found?.record);
    this.#reading.set(id, reading);
    try {
      const record = await reading;
      if (record && isEnded(record)) this.#ended.add(record);
      return record;
    } finally {
      this.#reading.delete(id);
    }
  }

  /** Changes a task: one that runs here, or one that another process runs or will run, which is then notified. */
  async #change(
    id: string,
    caller: Caller | undefined,
    changeHere: (running: RunningTask) => Promise<unknown>,
    change: (record: TaskRecord) => Change,
  ): Promise<boolean> {
    for (let left = ATTEMPTS; left; left--) {
      // This process may take the task over between two attempts.
      const running = this.#running.get(id);
      if (running && isOf(running.record, caller)) {
        await changeHere(running);
        return true;
      }
      const found = ID.test(id) ? await this.store.get(id) : undefined;
      if (!found || !isOf(found.record, caller)) return false;
      if (isEnded(found.record)) return true;
      const { next, news } = change(found.record);
      const version = next === found.record ? found.version : await this.store.set(next, found.version);
      if (version === undefined) continue;
      // Otherwise the process that runs it does so.
      if (found.record.by === null && next.isWatched && next !== found.record) this.#announce(next);
      if (news && found.record.by !== null) {
        await this.store.tell(found.record.crew, { id, base: found.version, version, ...news });
      }
      return true;
    }
    throw McpError.busy(`Cannot change the task: ${ATTEMPTS} other changes came first; try again`);
  }

  /** Does what another process asks for. */
  async #obey(news: unknown): Promise<void> {
    const { id, isWatched, ...rest } = Object(news);
    const running = this.#running.get(id);
    if (isWatched) running?.watch();
    else await running?.adopt(rest);
  }
}

/** Who asks for a task. */
export interface Caller {
  /** Id of the principal, if there is one. */
  readonly owner: string | undefined;
}

// An operator may use the tasks of all callers.
function isOf({ owner }: TaskRecord, caller: Caller | undefined): boolean {
  return !caller || owner === caller.owner;
}

/** A change of a task, and what the process that runs it must know. */
interface Change {
  readonly next: TaskRecord;
  readonly news?: { readonly answers?: Params; readonly isCancelled?: boolean };
}

/** Number of attempts to change a task that its process changes at the same time. */
const ATTEMPTS = 20;

/** An id: 6 bytes that stand for a process, and 18 random ones, because the id of a task may be all that protects it. */
const ID = /^[\w-]{32}$/;

function toRandom(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return btoa(String.fromCharCode(...random)).replaceAll("+", "-").replaceAll("/", "_");
}
