/**
 * Finds tasks whose process has ended. Tasks that can resume are run again; other tasks fail.
 */
import { McpError, type Principal } from "../../library.ts";
import { RunningTask, type TaskHost, TOO_LONG } from "./running_task.ts";
import { isEnded, isExpired, type TaskRecord, toTimeLeft } from "./task_record.ts";
import type { Crew, FoundCrew, FoundTask } from "./task_store.ts";

/** The part of {@linkcode Jobs} that a takeover uses. */
export interface TakeoverHost extends TaskHost {
  /** The first characters of the ids of this process's tasks. The prefix also identifies this process in the store. */
  readonly prefix: string;
  /** Makes this process responsible for the tasks whose ids begin with a prefix, until the given task has expired. */
  adopt(prefix: string, record: TaskRecord): Promise<void>;
  /** Adds a task that this process has taken over. */
  add(task: RunningTask): void;
  /** Sends the new state of a task to the clients that subscribe to the task. */
  announce(record: TaskRecord): void;
}

/** A task that this process does not run, although its record may say so. */
interface LeftTask {
  /** The key of {@linkcode toUse}. */
  readonly use: string;
  /** The version that a write of this process may still replace, because the store did not respond to the write. */
  readonly over?: string;
}

interface WaitingTasks {
  /**
   * The version of the process's entry when its tasks were listed. A process that runs again writes its entry again.
   */
  readonly version: string;
  /** The keys of {@linkcode toUse} of the tasks, by id. */
  readonly uses: ReadonlyMap<string, string>;
}

// Bound: `extensions.bytes`, which counts the tasks.
export class Takeover {
  readonly #jobs: TakeoverHost;
  #isStopped = false;
  #stopTimer?: () => void;
  #looking?: Promise<void>;
  /**
   * The tasks that this process does not run, although their records may say so, by id: tasks that it has released,
   * tasks whose last write has failed, and tasks whose takeover may have been written. This process retries these tasks
   * itself, because other processes take over a process's tasks only after the process has ended.
   */
  readonly #left = new Map<string, LeftTask>();
  /**
   * The keys of {@linkcode toUse} of the tasks that this process has released since the current round began. A client
   * can use up its own share of this process, so one refusal must not delay the tasks of other clients. A round is a
   * search, or several searches if a search was refused {@linkcode MAX_REFUSALS} times.
   */
  readonly #refused = new Set<string>();
  /**
   * The tasks of ended processes that no process has taken over yet, by the prefix of their process. The next search
   * reads only these tasks. A list of all tasks would also contain the results of ended tasks.
   */
  readonly #waiting = new Map<string, WaitingTasks>();
  /** The number of tasks that this process has released since the current search began. */
  #refusals = 0;

  constructor(jobs: TakeoverHost) {
    this.#jobs = jobs;
  }

  /**
   * Searches immediately, and then every {@linkcode SEARCH_MS} milliseconds, or twice per lease duration if that is
   * shorter. Does nothing if the store is not shared with other processes.
   */
  start(): void {
    if (!this.#jobs.store.isShared) return;
    // Ignore store errors, because the next search tries again.
    this.#looking = this.#look().catch(() => {}).finally(() => {
      if (this.#isStopped) return;
      const ms = Math.min(this.#jobs.store.lease.ms / 2, SEARCH_MS);
      this.#stopTimer = this.#jobs.server.clock.start(() => this.start(), ms, { background: true });
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopTimer?.();
  }

  /** Whether there are tasks for which this process is responsible, but which it does not run. */
  get hasLeft(): boolean {
    return this.#left.size > 0;
  }

  /** Remembers a task that has not ended, but whose run in this process has ended. The next search retries the task. */
  leave(record: TaskRecord): void {
    const use = toUse(record);
    this.#left.set(record.id, { use });
    this.#refused.add(use);
    this.#refusals++;
  }

  /** Settles when no search is running. */
  async untilIdle(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { store, prefix } = this.#jobs;
    if (this.#refusals < MAX_REFUSALS) this.#refused.clear();
    this.#refusals = 0;
    const crews = await store.listCrews();
    for (const each of this.#waiting.keys()) {
      if (!crews.some(({ crew }) => crew.prefix === each)) this.#waiting.delete(each);
    }
    for (const found of crews) {
      const { crew, version } = found;
      if (this.#isOver) return;
      if (crew.prefix === prefix || crew.by !== null && await store.lease.isHeld(crew.by)) continue;
      // The process may have its lease again, and have written the entry again for a new task.
      if (await this.#takeOverAll(found)) await store.deleteCrew(crew.prefix, version);
    }
    await this.#retryLeft();
  }

  /** Whether a task waits for a later search, because this process has no capacity for it. */
  #mustWait(use: string): boolean {
    return this.#refusals >= MAX_REFUSALS || this.#refused.has(use);
  }

  async #retryLeft(): Promise<void> {
    const { store, prefix } = this.#jobs;
    for (const [id, left] of [...this.#left]) {
      if (this.#isOver) return;
      if (this.#mustWait(left.use)) continue;
      const found = await store.get(id);
      if (found && !isEnded(found.record)) {
        if (!await this.#isRun(found.record)) await this.#takeOver(found, id.slice(0, prefix.length)).catch(() => {});
        // Otherwise another process runs the task, unless a write of this process can still arrive.
        else if (found.version !== left.over) this.#left.delete(id);
        continue;
      }
      // The write of the end may have succeeded, although the store did not respond.
      if (found && left.over !== undefined) await this.#announceEnd(found.record);
      this.#left.delete(id);
    }
  }

  /**
   * Whether a process runs a task. Call this after the record was read. Otherwise a process that has regained its lease
   * in between, and has written its records again, would lose its tasks.
   */
  async #isRun({ id, by, crew }: TaskRecord): Promise<boolean> {
    const { store: { lease }, prefix } = this.#jobs;
    if (by === null) return false;
    return by === lease.id && crew === prefix ? !this.#left.has(id) : await lease.isHeld(by);
  }

  get #isOver(): boolean {
    return this.#isStopped || this.#jobs.server.signal.aborted;
  }

  /** Takes over all tasks of a process that has ended. Returns `false` if some tasks could not be taken over yet. */
  async #takeOverAll({ crew, version }: FoundCrew): Promise<boolean> {
    const known = this.#waiting.get(crew.prefix);
    const uses = new Map<string, string>();
    for await (const found of known?.version === version ? this.#readWaiting(known, uses) : this.#listTasks(crew)) {
      if (this.#isOver) return false;
      if (!await this.#takeOverOne(found, crew)) uses.set(found.record.id, toUse(found.record));
    }
    if (uses.size) this.#waiting.set(crew.prefix, { version, uses });
    else this.#waiting.delete(crew.prefix);
    return !uses.size;
  }

  async *#listTasks({ prefixes }: Crew): AsyncGenerator<FoundTask> {
    for (const prefix of prefixes) yield* this.#jobs.store.list(prefix);
  }

  /** Reads the tasks for which this process may have capacity. Adds the others to `uses`. */
  async *#readWaiting(known: WaitingTasks, uses: Map<string, string>): AsyncGenerator<FoundTask> {
    for (const [id, use] of known.uses) {
      const found = this.#mustWait(use) ? void uses.set(id, use) : await this.#jobs.store.get(id);
      if (found) yield found;
    }
  }

  /** Takes over a task of a process that has ended, if necessary. Returns `false` if a later search must try again. */
  async #takeOverOne(found: FoundTask, crew: Crew): Promise<boolean> {
    const { record } = found;
    if (isEnded(record)) return true;
    // A process that has released its tasks runs none of them, even if its lease has not expired yet.
    const isReleased = crew.by === null && record.crew === crew.prefix;
    if (!isReleased && await this.#isRun(record)) return record.crew !== crew.prefix;
    // Without capacity, skip tasks that can resume. The next search finds such a task again, unless a process with
    // capacity has taken it over.
    if (record.work?.canResume && this.#mustWait(toUse(record))) return false;
    return await this.#takeOver(found, record.id.slice(0, crew.prefix.length));
  }

  /** Takes over a task. Returns `false` if the task was changed after `version` was read. */
  async #takeOver({ record, version }: FoundTask, prefix: string): Promise<boolean> {
    const { store, server: { clock } } = this.#jobs;
    const { work } = record;
    // Never run a task without the whole principal of its owner, which an older version of the library did not store.
    if (!work?.canResume || work.caller?.id !== record.owner) return await this.#fail({ record, version }, LOST);
    if (isExpired(record, clock.date())) return await this.#fail({ record, version }, TOO_LONG);
    if (hasExpired(work.caller, clock.date()) && !work.afterExpiry) {
      return await this.#fail({ record, version }, EXPIRED);
    }
    if (await store.isMarked(record)) return await this.#fail({ record, version }, ENDED);
    await this.#jobs.adopt(prefix, record);
    const mine = { ...record, by: store.lease.id, crew: this.#jobs.prefix, run: record.run + 1, isWatched: true };
    const term = await store.lease.confirm();
    let taken: string | undefined;
    this.#expect(record, version);
    try {
      taken = await store.set(mine, version);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      // The record has reached the store's maximum value size. Let the task fail. Otherwise every search would stop at
      // this task, and never reach later tasks.
      return await this.#fail({ record, version }, `Cannot resume the task: ${error.message}`);
    }
    if (taken === undefined) return false;
    this.#left.delete(record.id);
    this.#run(new RunningTask({ host: this.#jobs, store, record: mine, version: taken, term }, { isTask: true }));
    return true;
  }

  async #fail({ record: left, version }: FoundTask, message: string): Promise<boolean> {
    const { store, server: { clock } } = this.#jobs;
    const { work: _, ...record } = left;
    const error = { code: McpError.internalError(message).code, message };
    const next = {
      ...record,
      status: "failed" as const,
      statusMessage: message,
      error,
      by: null,
      updatedAt: clock.date(),
    };
    this.#expect(left, version);
    if (await store.set(next, version) === undefined) return false;
    await this.#announceEnd(next);
    this.#left.delete(record.id);
    return true;
  }

  // Call this before a write. If the store does not respond, the record may be written, so the next search must look at
  // the task.
  #expect(record: TaskRecord, version: string): void {
    this.#left.set(record.id, { use: toUse(record), over: version });
  }

  async #announceEnd(record: TaskRecord): Promise<void> {
    const { store } = this.#jobs;
    this.#jobs.announce(record);
    await store.markEnded(record);
    await store.deleteValues(record);
  }

  #run(task: RunningTask): void {
    const { server } = this.#jobs;
    const { work } = task.record;
    if (!work) return;
    const controller = new AbortController();
    task.cancelHandler = (message) => controller.abort(new Error(message));
    this.#jobs.add(task);
    const { params, client, session } = work;
    void task.follow(server.call({
      method: "tools/call",
      params,
      client,
      principal: toPrincipal(work.caller, server.clock.date()),
      attached: work.attached,
      hasAllScopes: work.hasAllScopes,
      account: work.account,
      session,
      // The run gets values that earlier runs have made from these resources.
      reads: task.record.reads,
      data: task,
      timeoutMs: toTimeLeft(task.record, server.clock.date()),
      signal: controller.signal,
    }));
  }
}

function hasExpired(principal: Principal | undefined, now: number): boolean {
  return principal?.expiresAt !== undefined && principal.expiresAt <= now;
}

// Omits an `expiresAt` in the past, because the server would otherwise cancel the call immediately. Omitting it is
// safe, because the caller was authenticated when the task began.
function toPrincipal(stored: Principal | undefined, now: number): Principal | undefined {
  if (!stored || !hasExpired(stored, now)) return stored;
  const { expiresAt: _, ...rest } = stored;
  // The cast is safe, because `rest` contains all other members.
  return rest as Principal;
}

/** Returns a key for the tasks of one client and one tool, which this process either all has room for, or not. */
function toUse({ owner, tool, work }: TaskRecord): string {
  return JSON.stringify([owner, work?.account, tool]);
}

/**
 * Number of refusals after which a search tries no further tasks, because each refused task costs two writes to the
 * store. The next search begins with the tasks of other clients and tools.
 */
const MAX_REFUSALS = 8;

/**
 * Milliseconds between two searches. Tasks are taken over within five seconds after the lease has expired, because
 * several searches must find no lease.
 */
const SEARCH_MS = 1500;

const LOST =
  "The process that ran the task ended before the task was finished; call the tool again if the call can safely be repeated";
const ENDED = "Cannot resume the task: it has already ended, and somebody has put its record back into the store";
const EXPIRED = "Cannot resume the task: the caller's credentials have expired; call the tool again";
