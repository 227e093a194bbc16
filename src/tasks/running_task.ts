/**
 * A task whose handler runs in this process.
 *
 * @module
 */
import { McpError, type Params, type Result } from "../library.ts";
import type { ExtensionServer, Redirect, RedirectedQuestion } from "../extension.ts";
import { type Charge, toBytes } from "./charge.ts";
import { isEnded, type TaskError, type TaskRecord, type TaskStatus, type TaskWork } from "./task_record.ts";
import { MAX_VALUES, type TaskStore } from "./task_store.ts";

/** The parts of a server that a task uses. */
export interface TaskHost {
  readonly server: ExtensionServer;
  readonly store: TaskStore;
  /** Called with each new state that clients may see. */
  onChange(task: RunningTask): void;
  /** Called when the handler has ended, or when another process runs the task. */
  onEnd(task: RunningTask): void;
}

/** The record of a task, and where it is stored. */
export interface TaskParts {
  readonly host: TaskHost;
  readonly record: TaskRecord;
  /** Version of the record in the store. `null` before the record is first written. */
  readonly version: string | null;
}

/** A question whose answer the handler awaits. */
interface Waiting {
  readonly question: RedirectedQuestion;
  readonly answer: (value: unknown) => void;
}

/** A task whose handler runs in this process. Changes of its record are written one after the other. */
export class RunningTask {
  /** The record of the task as it is in the store. */
  record: TaskRecord;
  /** Settles when the handler has asked its first question. */
  readonly asked: Promise<void>;
  /** Settles when the task has ended in this process. */
  readonly over: Promise<void>;
  /** Cancels the handler. Set when the handler starts. */
  cancelHandler: (message: string) => void = () => {};
  /** The bytes that the client is charged. Set when the call becomes a task. */
  charge?: Charge;
  /**
   * Whether the call has become a task. Until then, progress, log messages and questions of the handler are sent to the
   * client.
   */
  isTask: boolean;
  /** Whether the handler has been called. */
  hasRun = false;
  readonly #host: TaskHost;
  /** Values of `once`, as JSON. */
  readonly #values = new Map<string, string>();
  readonly #making = new Map<string, Promise<string>>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #asked = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #version: string | null;
  #writing: Promise<unknown>;
  /** Settles when the record is in the store. */
  readonly #begun = Promise.withResolvers<void>();
  #message?: string;
  #isReporting = false;
  #stopReporting?: () => void;
  /** Whether another process runs the task. */
  #isLost = false;
  /**
   * Whether the handler has ended, or its result is no longer needed. The handler may still run if it ignores its
   * signal.
   */
  #isOver = false;

  /** Creates a task whose handler has not started. */
  constructor({ host, record, version }: TaskParts, { isTask }: { readonly isTask: boolean }) {
    this.#host = host;
    this.record = record;
    this.#version = version;
    this.isTask = isTask;
    this.asked = this.#asked.promise;
    this.over = this.#over.promise;
    // All writes wait until the record itself has been written.
    this.#writing = version === null ? this.#begun.promise : Promise.resolve();
    this.#begun.promise.catch(() => {});
  }

  /** Receives the progress, log messages, questions and values of the handler. */
  readonly redirect: Redirect = {
    progress: (progress, { total, message }, direct) => {
      if (!this.isTask) return void direct();
      this.#report(message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`));
    },
    // Drop the log messages of a task, because the specification has no log messages of tasks.
    log: (_level, _data, _logger, direct) => void (this.isTask || direct()),
    ask: async (question, direct) => {
      if (this.isTask) return await this.#ask(question);
      const answer = await direct();
      this.#keepWork(({ answers }) => ({ answers: { ...answers, [question.key]: answer } }));
      return answer;
    },
    once: async (key, make, direct) => JSON.parse(await this.#once(key, make, direct)),
  };

  /** Makes the call a task, and writes its record. Rejects if the record cannot be written. */
  async begin(): Promise<void> {
    this.isTask = true;
    this.#keepWork(() => ({ made: [...this.#values] }));
    try {
      const version = await this.#host.store.set(this.record, null);
      if (version === undefined) throw new Error("Cannot begin a task: its id is in use");
      this.#version = version;
      this.#begun.resolve();
    } catch (error) {
      this.#begun.reject(error);
      // After an error other than a rejection, the record may be in the store, or arrive there later. Mark the task as
      // cancelled, or it would run again after the end of this process.
      if (!isFinal(error)) {
        this.#write(({ work: _, ...record }) => ({ ...record, status: "cancelled", by: null })).catch(() => {});
      }
      throw error;
    }
  }

  /** Ends a task whose record could not be written. Promises that its handler awaits reject with `reason`. */
  abandon(reason: unknown): void {
    this.#isOver = true;
    this.#begun.reject(reason);
  }

  /** Reads the values of `once` that other processes have written. */
  async load(): Promise<void> {
    const { made = [] } = this.record.work ?? {};
    const journal = await this.#repeat(() => this.#host.store.readValues(this.record.id));
    for (const [key, json] of [...made, ...journal]) this.#values.set(key, json);
  }

  /**
   * Writes the outcome of the handler. If the server closes and the handler can resume, the task is left to another
   * process instead.
   */
  async follow(ending: Promise<Result>): Promise<void> {
    try {
      await this.#end(await toEnd(ending));
    } catch {
      // The store does not answer until the server closes, or another process runs the task.
    } finally {
      this.#isOver = true;
      this.#stopReporting?.();
      this.#host.onEnd(this);
      this.#over.resolve();
    }
  }

  /** Answers the questions to which the given answers are valid. Other answers are ignored. */
  async answer(responses: Params): Promise<void> {
    const valid: [key: string, value: unknown][] = [];
    for (const [key, value] of Object.entries(responses)) {
      const waiting = this.#waiting.get(key);
      if (waiting && await waiting.question.check(value) === undefined) valid.push([key, value]);
    }
    // Remove these questions now, so that they accept no further answers: the handler must get the answer that is
    // stored.
    const taken = valid.flatMap(([key, value]) => {
      const waiting = this.#waiting.get(key);
      return waiting && this.#waiting.delete(key) ? [{ key, value, waiting }] : [];
    });
    if (!taken.length) return;
    try {
      await this.#change((record) =>
        withAnswers(record, Object.fromEntries(taken.map(({ key, value }) => [key, value])))
      );
    } catch (error) {
      for (const { key, waiting } of taken) this.#waiting.set(key, waiting);
      throw error;
    }
    for (const { value, waiting } of taken) waiting.answer(value);
  }

  /** Adopts a change that another process has written: answers from clients, or a cancellation. */
  async adopt({ base, version, answers = {}, others = {}, isCancelled }: Adopted): Promise<void> {
    if (isCancelled) {
      const { work: _, ...record } = this.record;
      this.record = { ...record, status: "cancelled", updatedAt: this.#host.server.clock.date(), by: null };
      this.#host.onChange(this);
      return this.#lose("the task was cancelled");
    }
    await this.#queue(() => {
      // If the versions differ, the next write fails and reads the record again.
      if (this.#version === base) {
        this.#version = version;
        this.record = withAnswers(this.record, answers);
      }
      return Promise.resolve();
    });
    await this.#deliver(answers);
    await this.answer(others);
  }

  /** Cancels the task for its caller. */
  async cancel(): Promise<void> {
    await this.#finish("cancelled", {});
    this.cancelHandler("Cannot go on: the task was cancelled");
  }

  /** Notifies clients on other instances of each change from now on. */
  watch(): void {
    this.record = { ...this.record, isWatched: true };
    this.#host.onChange(this);
  }

  async #ask(question: RedirectedQuestion): Promise<unknown> {
    const { key, method, params } = question;
    if (this.#isOver || this.#isLost || isEnded(this.record)) throw new Error(OVER);
    const { answers = {} } = this.record.work ?? {};
    if (Object.hasOwn(answers, key) && await question.check(answers[key]) === undefined) return answers[key];
    const { promise, resolve: answer } = Promise.withResolvers<unknown>();
    this.#waiting.set(key, { question, answer });
    this.#asked.resolve();
    await this.#change((record) => withQuestion(record, key, { method, params }));
    // An answer may have arrived while the question was written.
    await this.#deliver(this.record.work?.answers ?? {});
    return await promise;
  }

  /**
   * Settles the questions whose stored answers are valid. Removes invalid answers, so that the client can answer again.
   */
  async #deliver(answers: Params): Promise<void> {
    for (const [key, value] of Object.entries(answers)) {
      const waiting = this.#waiting.get(key);
      if (!waiting) continue;
      if (await waiting.question.check(value) === undefined) this.#settle(key, value);
      else await this.#change((record) => withoutAnswer(record, key, value));
    }
  }

  #settle(key: string, value: unknown): void {
    this.#waiting.get(key)?.answer(value);
    this.#waiting.delete(key);
  }

  async #once(key: string, make: () => unknown, direct: () => Promise<unknown>): Promise<string> {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const making = this.#making.get(key) ?? this.#make(key, make, direct);
    this.#making.set(key, making);
    try {
      return await making;
    } finally {
      this.#making.delete(key);
    }
  }

  async #make(key: string, make: () => unknown, direct: () => Promise<unknown>): Promise<string> {
    if (this.#values.size + this.#making.size >= MAX_VALUES) {
      throw new RangeError(
        `Cannot keep the value of ctx.once(${
          JSON.stringify(key)
        }): a task has at most ${MAX_VALUES} values; combine some`,
      );
    }
    // Do not create the value here, because another process may be creating it now.
    if (this.#isOver || this.#isLost || isEnded(this.record)) throw new Error(OVER);
    const json = JSON.stringify(await (this.isTask ? make() : direct())) ?? "null";
    if (this.isTask) {
      if (this.charge?.grow(toBytes(json)) === false) throw toFull();
      // Wait until the record is in the store. Without its task, a value would stay in the store.
      await this.#writing;
      // The token makes a repeated write safe, because a write whose response was lost may have succeeded.
      const token = crypto.randomUUID();
      await this.#repeat(() => this.#host.store.addValue(this.record, { key, json, token }));
    }
    this.#values.set(key, json);
    this.#making.delete(key);
    return json;
  }

  // At most one report is written at a time, and {@linkcode REPORT_MS} pass before the next, because a handler may
  // report progress very often.
  #report(message: string): void {
    this.#message = message;
    if (this.#isReporting) return;
    this.#isReporting = true;
    const write = async () => {
      const statusMessage = this.#message;
      this.#message = undefined;
      // Drop a message that is too large for the store. Later messages are written.
      await this.#change((record) => ({ ...record, statusMessage })).catch((error) => {
        if (!isFinal(error)) throw error;
      });
      if (isEnded(this.record)) return;
      this.#stopReporting = this.#host.server.clock.start(
        () => {
          this.#isReporting = false;
          if (this.#message !== undefined) this.#report(this.#message);
        },
        REPORT_MS,
        { background: true },
      );
    };
    write().catch(() => {});
  }

  async #end(end: End): Promise<void> {
    const { canResume } = this.record.work ?? {};
    if (this.#isLost || isEnded(this.record)) return;
    if (end.result) return await this.#complete(end.result);
    const { why, error } = end;
    // The call was refused before its handler started, because this process has no capacity or is closing.
    const isRefused = !this.hasRun && (error.code === BUSY || this.#host.server.signal.aborted);
    if (canResume && (why === "closing" || isRefused)) return await this.#change((record) => ({ ...record, by: null }));
    const message = why === "closing" ? CLOSED : why === "timeout" ? TOO_LONG : error.message;
    await this.#finish("failed", { statusMessage: message, error: { ...error, message } });
  }

  async #complete(result: Result): Promise<void> {
    try {
      if (this.charge?.grow(toBytes(result)) === false) throw toFull();
      await this.#finish("completed", { result });
    } catch (error) {
      if (!isFinal(error)) throw error;
      // The result is too large for the store, or the client has used up its share of memory.
      const message = `Cannot keep the result of the task: ${toText(error)}`;
      await this.#finish("failed", { statusMessage: message, error: { code: INTERNAL_ERROR, message } });
    }
  }

  async #finish(status: TaskStatus, to: Partial<TaskRecord>): Promise<void> {
    await this.#change(({ work: _, ...record }) => ({ ...record, ...to, status, by: null }));
  }

  #keepWork(change: (work: TaskWork) => Partial<TaskWork>): void {
    const { work } = this.record;
    if (work) this.record = { ...this.record, work: { ...work, ...change(work) } };
  }

  async #change(change: (record: TaskRecord) => TaskRecord): Promise<void> {
    await this.#queue(() => this.#write(change));
  }

  async #queue(run: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(run);
    this.#writing = done.catch(() => {});
    await done;
  }

  async #write(change: (record: TaskRecord) => TaskRecord): Promise<void> {
    const { store, server: { clock } } = this.#host;
    while (true) {
      if (isEnded(this.record)) return;
      if (this.#isLost) throw new Error("Cannot change the task: another process runs it");
      const next = { ...change(this.record), updatedAt: clock.date() };
      const version = await this.#repeat(() => store.set(next, this.#version));
      if (version !== undefined) {
        const { isWatched } = this.record;
        this.#version = version;
        this.record = isWatched ? { ...next, isWatched } : next;
        return this.#host.onChange(this);
      }
      await this.#reread();
    }
  }

  /**
   * Reads the record again after another process has changed it: clients have answered, the task was cancelled, or
   * another process runs it.
   */
  async #reread(): Promise<void> {
    const { store } = this.#host;
    const { id, by, run } = this.record;
    const found = await this.#repeat(() => store.get(id));
    if (!found) return this.#lose("the task is not in the store any more");
    this.#version = found.version;
    // Keep `isWatched`, which may not be in the store yet.
    this.record = this.record.isWatched ? { ...found.record, isWatched: true } : found.record;
    if (isEnded(found.record)) {
      this.#host.onChange(this);
      return this.#lose("the task has ended");
    }
    if (found.record.by !== by || found.record.run !== run) return this.#lose("another process runs the task");
    // Deliver the answers later. Doing so may write, and this function runs within a write.
    queueMicrotask(() => this.#deliver(found.record.work?.answers ?? {}).catch(() => {}));
  }

  #lose(state: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.cancelHandler(`Cannot go on: ${state}`);
  }

  // Repeats an operation while the store does not answer, until the server closes.
  async #repeat<T>(run: () => Promise<T>): Promise<T> {
    const { clock, signal } = this.#host.server;
    while (true) {
      try {
        return await run();
      } catch (error) {
        if (isFinal(error) || signal.aborted || this.#isLost) throw error;
        await new Promise<void>((resolve) => clock.start(resolve, RETRY_MS, { background: true }));
      }
    }
  }
}

/** A change that another process has written. */
export interface Adopted {
  /** The version that the other process has replaced, and the version that it has written. */
  readonly base: string;
  readonly version: string;
  readonly answers?: Params;
  /**
   * Answers that the other process has not written, because the questions already have an answer in the store. The
   * stored answer may be invalid.
   */
  readonly others?: Params;
  readonly isCancelled?: boolean;
}

/** The outcome of a handler: a result, or an error with the reason why the handler was cancelled. */
type End =
  | { readonly result: Result }
  | { readonly result?: undefined; readonly error: TaskError; readonly why?: unknown };

async function toEnd(ending: Promise<Result>): Promise<End> {
  try {
    return { result: await ending };
  } catch (error) {
    const { code = INTERNAL_ERROR, message, data, why } = Object(error);
    return { error: { code, message: String(message), ...data !== undefined && { data } }, why };
  }
}

/** Adds answers to a record. */
export function withAnswers(record: TaskRecord, answers: Params): TaskRecord {
  const { work } = record;
  return work ? withStatus({ ...record, work: { ...work, answers: { ...work.answers, ...answers } } }) : record;
}

/** Removes an answer, unless it has been replaced in the meantime. */
function withoutAnswer(record: TaskRecord, key: string, value: unknown): TaskRecord {
  const { work } = record;
  if (!work || JSON.stringify(work.answers[key]) !== JSON.stringify(value)) return record;
  const { [key]: _, ...answers } = work.answers;
  return withStatus({ ...record, work: { ...work, answers } });
}

function withQuestion(record: TaskRecord, key: string, question: TaskWork["questions"][string]): TaskRecord {
  const { work } = record;
  if (!work) return record;
  return withStatus({ ...record, work: { ...work, questions: { ...work.questions, [key]: question } } });
}

function withStatus(record: TaskRecord): TaskRecord {
  const { questions = {}, answers = {} } = record.work ?? {};
  const isAsking = Object.keys(questions).some((key) => !Object.hasOwn(answers, key));
  return { ...record, status: isAsking ? "input_required" : "working" };
}

function isFinal(error: unknown): boolean {
  return error instanceof RangeError || error instanceof TypeError || error instanceof McpError;
}

function toText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Creates the error for a client that exceeds its share of memory. */
export function toFull(): McpError {
  return McpError.busy(
    "Cannot begin a task: the server already keeps too many bytes for this client; wait until older tasks expire",
  );
}

const INTERNAL_ERROR = -32_603;
const BUSY = -31_503;
const OVER = "Cannot go on: the task has ended in this process";
const CLOSED = "The server has closed before the task was finished; call the tool again if that is safe";
const TOO_LONG = "The task took longer than its time to live (ttlMs)";

/** Minimum milliseconds between two writes of messages that the handler reports. */
const REPORT_MS = 250;

/** Milliseconds between attempts to write to a store that does not answer. */
const RETRY_MS = 1000;
