/**
 * A task whose handler runs in this process.
 */
import { McpError, type Params, type Result } from "../../library.ts";
import type { Redirect, RedirectedQuestion, ServerHandle } from "../extension.ts";
import type { OnceOptions } from "../../server/call/context.ts";
import type { Reads } from "../../server/call/handler_call.ts";
import { toBytes, toRecordBytes } from "./bytes.ts";
import {
  isEnded,
  type OpenQuestion,
  type TaskFailure,
  type TaskRecord,
  type TaskStatus,
  type TaskWork,
  withReads,
} from "./task_record.ts";
import { ProgressReport } from "./progress_report.ts";
import {
  toAnswers,
  toStoredAnswers,
  withAnswers,
  withoutAnswers,
  withoutFurtherAnswers,
  withoutQuestions,
  withQuestion,
} from "./task_answers.ts";
import { type Keep, TaskBytes } from "./task_bytes.ts";
import { type FoundTask, MAX_VALUES, type TaskStore, VALUE_BYTES } from "./task_store.ts";

export interface TaskHost {
  readonly server: ServerHandle;
  readonly store: TaskStore;
  /** Called when the state that clients can see has changed. */
  onChange(task: RunningTask): void;
  /** Called when the task has ended in this process, or when another process has taken over the task. */
  onEnd(task: RunningTask): void;
}

export interface TaskParts {
  readonly host: TaskHost;
  /** The store, with operations that count towards the share of the task's client. */
  readonly store: TaskStore;
  readonly record: TaskRecord;
  /** Version of the record in the store. `null` before the record is first written. */
  readonly version: string | null;
  /** The term of the process's lease in which the record was written. `undefined` before the record is first written. */
  readonly term?: number;
}

/** A question whose answer the handler awaits. */
interface Waiting {
  readonly question: RedirectedQuestion;
  readonly answer: (value: unknown) => void;
}

/** A task whose handler runs in this process. The task writes changes of its record one after another. */
// Bound: `extensions.bytes`, which counts the values and the questions of the task.
export class RunningTask {
  /** The task's record, as last written to the store or read from it. */
  record: TaskRecord;
  /** Settles when the handler has asked its first question. */
  readonly asked: Promise<void>;
  /** Settles when the task has ended in this process. */
  readonly over: Promise<void>;
  /** Cancels the handler. Does nothing until the handler starts. */
  cancelHandler: (message: string) => void = () => {};
  /** While `false`, the handler's progress, log messages and questions are sent directly to the client. */
  isTask: boolean;
  /** Returns the resources that the handler has read. Replaced when the handler is called. */
  toReads: () => Reads = () => [];
  /** Hash of the caller of the handler. Set when the handler is called. */
  caller = "";
  /** Whether the handler has been called. */
  hasRun = false;
  readonly #host: TaskHost;
  #store: TaskStore;
  /** The term of the process's lease in which this process has confirmed that it runs the task. */
  #term?: number;
  /** Values that the handler has created with `once`, as JSON. */
  readonly #values = new Map<string, string>();
  readonly #bytes = new TaskBytes(() => this.#store.toTtl(this.record));
  readonly #making = new Map<string, Promise<string>>();
  readonly #waiting = new Map<string, Waiting>();
  /** Keys of the questions to which the handler has got the first answer in the store. */
  readonly #settled = new Set<string>();
  readonly #asked = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #version: string | null;
  #writing: Promise<unknown>;
  /** Resolves when the record has been written to the store. Rejects if the record cannot be written. */
  readonly #begun = Promise.withResolvers<void>();
  readonly #progress: ProgressReport;
  #isLost = false;
  /** Whether the handler has ended or its result is not needed. A handler that ignores its signal may still run. */
  #isOver = false;

  /** Creates a task whose handler has not started. */
  constructor({ host, store, record, version, term }: TaskParts, { isTask }: { readonly isTask: boolean }) {
    this.#host = host;
    this.#store = store;
    this.#term = term;
    this.record = record;
    this.#version = version;
    this.isTask = isTask;
    this.asked = this.#asked.promise;
    this.over = this.#over.promise;
    // Later writes wait until the new record has been written.
    this.#writing = version === null ? this.#begun.promise : Promise.resolve();
    this.#begun.promise.catch(() => {});
    this.#progress = new ProgressReport({
      clock: host.server.clock,
      write: (statusMessage) => this.#writeProgress(statusMessage),
    });
  }

  /** Receives the handler's progress, log messages, questions and `once` values. */
  readonly redirect: Redirect = {
    progress: (progress, { total, message }, direct) => {
      if (!this.isTask) return void direct();
      this.#progress.add(message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`));
    },
    // Drop log messages of a task, because the specification does not define how to send log messages of a task.
    log: (_level, _data, _logger, direct) => void (this.isTask || direct()),
    ask: async (question, direct) => {
      if (this.isTask) return await this.#ask(question);
      const answer = await direct();
      const { key, method, params } = question;
      this.#settled.add(key);
      this.#keepWork(({ questions, answers }) => ({
        questions: { ...questions, [key]: { method, params } },
        answers: { ...answers, [key]: answer },
      }));
      return answer;
    },
    once: async (key, make, direct, options) => JSON.parse(await this.#once(key, make, direct, options)),
  };

  /** Turns the call into a task, and writes the task's record. Rejects if the record cannot be written. */
  async begin(): Promise<void> {
    this.isTask = true;
    this.#keepWork(() => ({ made: [...this.#values] }));
    this.record = this.#withReads(this.record);
    try {
      if (!this.#charge(this.record)) throw toFull();
      this.#term = await this.#store.lease.confirm();
      const version = await this.#store.set(this.record, null);
      if (version === undefined) throw new Error("Cannot begin a task: the id is already used");
      this.#version = version;
      this.#begun.resolve();
    } catch (error) {
      this.#begun.reject(error);
      // Unless the store has rejected the record, mark the task as cancelled, because the record may have been written,
      // or may still be written. Otherwise another process could run the task after this process has ended.
      if (!isFinal(error)) {
        this.#write(({ work: _, ...record }) => ({ ...record, status: "cancelled", by: null })).catch(() => {});
      }
      throw error;
    }
  }

  /** Ends a task whose record could not be written. Rejects all promises that the handler awaits with `reason`. */
  abandon(reason: unknown): void {
    this.#isOver = true;
    this.#bytes.end();
    this.#begun.reject(reason);
  }

  /** Counts the task's bytes against the client's share from now on. Returns `false` if there is no room. */
  charge(keep: Keep): boolean {
    this.#bytes.keep = keep;
    return this.#charge(this.record);
  }

  chargeEnded(): void {
    this.#bytes.acceptEnded(toRecordBytes(this.record));
  }

  /**
   * Prepares another run of the handler: loads the `once` values that earlier runs have stored, and confirms that no
   * other process can run the task. From now on, uses `store` and `keep`. Counts the stored bytes even if there is no
   * room, because the task was accepted when it began.
   */
  async load(store: TaskStore, keep: Keep): Promise<void> {
    this.#store = store;
    const { made = [] } = this.record.work ?? {};
    const journal = await this.#repeat(() => store.readValues(this.record.id));
    for (const [key, json] of [...made, ...journal]) this.#values.set(key, json);
    this.#bytes.keep = keep;
    this.#accept([...journal].reduce((sum, [key, json]) => sum + toValueBytes(key, json), 0));
    await this.#confirm();
  }

  /**
   * Writes the outcome of the handler. If the server closes and the handler can resume, releases the task instead, so
   * that another process can run it.
   */
  async follow(ending: Promise<Result>): Promise<void> {
    try {
      await this.#end(await toEnd(ending));
    } catch {
      // The store does not answer until the server closes, or another process runs the task.
    } finally {
      this.#isOver = true;
      this.#progress.stop();
      this.#host.onEnd(this);
      this.#over.resolve();
    }
  }

  /**
   * Stores answers, and passes the first valid answer to each question to the handler. Invalid answers are ignored. If
   * the handler has not asked a question again since this process has taken over the task, stores the answers until the
   * handler asks.
   */
  async answer(responses: Params): Promise<void> {
    const valid = new Map<string, unknown>();
    const accepted: [key: string, value: unknown][] = [];
    for (const [key, value] of toAnswers(responses)) {
      const waiting = this.#waiting.get(key);
      if (!waiting && (this.#settled.has(key) || !this.#isKnown(key))) continue;
      if (waiting && await waiting.question.check(value) !== undefined) continue;
      if (waiting) valid.set(key, value);
      accepted.push([key, value]);
    }
    if (!accepted.length) {
      // Another process may have taken over the task, and ask other questions. A write would find this out itself.
      await this.#look();
      if (this.#isLost) throw new Error(OVER);
      return;
    }
    // Leave out questions that got their answer during the checks, or during the write of another answer.
    const toFresh = () => Object.fromEntries(accepted.filter(([key]) => !this.#settled.has(key)));
    await this.#change((record) => withAnswers(record, toFresh()));
    await this.#deliver(accepted.map(([key]) => key), valid);
  }

  /**
   * Whether this process no longer runs the task, because another process has changed or taken over the task, or
   * because the store has deleted the task.
   */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether the handler of any run has asked a question. */
  #isKnown(key: string): boolean {
    return this.#waiting.has(key) || Object.hasOwn(this.record.work?.questions ?? {}, key);
  }

  /** Applies a change that another process has written: clients' answers, or a cancellation. */
  async adopt({ base, version, answers = {}, isCancelled }: Adopted): Promise<void> {
    if (isCancelled) {
      if (isEnded(this.record)) return;
      const { work: _, ...record } = this.record;
      this.record = { ...record, status: "cancelled", updatedAt: this.#host.server.clock.date(), by: null };
      this.#host.onChange(this);
      this.#abandon("the task was cancelled");
      return await this.#deleteValues();
    }
    await this.#queue(async () => {
      if (this.#isLost || isEnded(this.record)) return;
      // If the versions differ, another process may have stored an earlier answer, whose message has not arrived yet.
      if (this.#version !== base) return await this.#readChange();
      this.#version = version;
      this.record = withAnswers(this.record, answers);
      this.#accept();
    });
    await this.#deliver();
  }

  async cancel(): Promise<void> {
    await this.#finish("cancelled", {});
    this.cancelHandler("Cannot continue the handler: the task was cancelled");
  }

  /** Reads the record again, because this process may have missed messages about answers or a cancellation. */
  async refresh(): Promise<void> {
    // A client of another instance may have subscribed to the task.
    this.record = { ...this.record, isWatched: true };
    await this.#queue(async () => {
      if (!this.#isLost && !isEnded(this.record)) await this.#reread();
    });
    this.#host.onChange(this);
  }

  /** Announces each change to clients on all instances. Returns `false` if the task was already watched. */
  watch(): boolean {
    const { isWatched = false } = this.record;
    if (!isWatched) this.record = { ...this.record, isWatched: true };
    return !isWatched;
  }

  async #ask(question: RedirectedQuestion): Promise<unknown> {
    const { method, params } = question;
    if (this.#isOver || this.#isLost || isEnded(this.record)) throw new Error(OVER);
    const { answers = {} } = this.record.work ?? {};
    const { key, stale } = this.#findKey(question);
    if (Object.hasOwn(answers, key) && await question.check(answers[key]) === undefined) {
      this.#settled.add(key);
      return answers[key];
    }
    const { promise, resolve: answer } = Promise.withResolvers<unknown>();
    this.#waiting.set(key, { question, answer });
    this.#asked.resolve();
    await this.#writing;
    await this.#confirm();
    try {
      await this.#change((record) => withQuestion(withoutQuestions(record, stale), key, { method, params }));
    } catch (error) {
      this.#waiting.delete(key);
      throw error;
    }
    // Deliver an answer that has arrived while the question was being written.
    await this.#deliver([key]);
    return await promise;
  }

  /**
   * Returns the key under which clients see a question. If an earlier run has asked a different question with the same
   * key, the question gets another key, because a client may have answered the earlier question, or still show it to
   * the user. Also returns the keys of these earlier questions.
   */
  #findKey({ key: wanted, method, params }: RedirectedQuestion): { readonly key: string; readonly stale: string[] } {
    const { questions = {}, answers = {} } = this.record.work ?? {};
    const text = toJson({ method, params });
    const stale: string[] = [];
    let found: string | undefined;
    for (let key = wanted, count = 2;; key = `${wanted} (${count++})`) {
      if (this.#waiting.has(key)) continue;
      const known = Object.hasOwn(questions, key) ? questions[key] : undefined;
      if (!known && !Object.hasOwn(answers, key)) return { key: found ?? key, stale };
      if (!found && known && toJson(known) === text) found = key;
      else stale.push(key);
    }
  }

  /** Passes stored answers to the questions with the given keys. By default, to all questions that wait for an answer. */
  async #deliver(keys: Iterable<string> = [...this.#waiting.keys()], valid?: ReadonlyMap<string, unknown>) {
    const errors: unknown[] = [];
    for (const key of keys) {
      const waiting = this.#waiting.get(key);
      // An author's check that throws must not affect other questions.
      if (waiting) await this.#deliverTo(key, waiting, valid).catch((error) => errors.push(error));
    }
    // Otherwise the record of a task that writes nothing else would grow with each further answer.
    if (withoutFurtherAnswers(this.record, this.#settled) !== this.record) await this.#change((record) => record);
    if (errors.length) throw errors[0];
  }

  /**
   * Settles a question with the first valid answer in the store, and removes the invalid answers before this answer
   * from the store. If no answer is valid, the client can answer again. `valid` contains answers that were already
   * checked.
   */
  async #deliverTo(key: string, waiting: Waiting, valid?: ReadonlyMap<string, unknown>): Promise<void> {
    const isValid = async (value: unknown) =>
      valid?.get(key) === value || await waiting.question.check(value) === undefined;
    let stored: readonly unknown[];
    // Only this process removes answers, and only invalid answers, so no other answer can become the first valid one.
    while (this.#waiting.get(key) === waiting && (stored = toStoredAnswers(this.record, key)).length) {
      let first = 0;
      while (first < stored.length && !await isValid(stored[first])) first++;
      if (first) await this.#change((record) => withoutAnswers(record, key, stored.slice(0, first)));
      if (first === stored.length) continue;
      // The task may have ended during the write.
      if (isEnded(this.record)) return;
      this.#waiting.delete(key);
      this.#settled.add(key);
      waiting.answer(stored[first]);
    }
  }

  async #once(
    key: string,
    make: () => unknown,
    direct: () => Promise<unknown>,
    options?: OnceOptions,
  ): Promise<string> {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const making = this.#making.get(key) ?? this.#make(key, make, direct, options);
    this.#making.set(key, making);
    try {
      return await making;
    } finally {
      this.#making.delete(key);
    }
  }

  async #make(
    key: string,
    make: () => unknown,
    direct: () => Promise<unknown>,
    options?: OnceOptions,
  ): Promise<string> {
    if (this.#values.size + this.#making.size >= MAX_VALUES) {
      throw new RangeError(
        `Cannot store the value of ctx.once(${
          JSON.stringify(key)
        }): a task can store at most ${MAX_VALUES} values; combine several values under one key`,
      );
    }
    // Do not create a value after the task has ended in this process, because another process may now be creating the
    // value.
    if (this.#isOver || this.#isLost || isEnded(this.record)) throw new Error(OVER);
    if (this.isTask) {
      await this.#confirm();
      await this.#check();
    }
    const json = this.isTask ? await this.#makeWithin(key, make, options) : JSON.stringify(await direct());
    if (this.isTask) {
      // Do not store a value after the end of the task, because nobody would read the value.
      if (isEnded(this.record)) throw new Error(OVER);
      if (!this.#bytes.reserve({ values: this.#bytes.values + toValueBytes(key, json) })) throw toFull();
      // Wait until the record is in the store. Otherwise, if writing the record fails, the stored value would belong to
      // no task. Write the resources that the value may come from first, because a later run does not read them again.
      await (this.#withReads(this.record) === this.record ? this.#writing : this.#change((record) => record));
      // The token prevents a repeated write from adding the value twice. A write can be repeated although it has
      // succeeded, if the response was lost.
      const token = crypto.randomUUID();
      await this.#repeat(() => this.#store.addValue(this.record, { key, json, token }));
      // The task may have ended during the write.
      await this.#deleteValues();
    }
    this.#values.set(key, json);
    this.#making.delete(key);
    return json;
  }

  /** Reserves `maxBytes` while `make` runs, because its work is lost if there is no room for the value. */
  async #makeWithin(key: string, make: () => unknown, { maxBytes }: OnceOptions = {}): Promise<string> {
    const run = async () => JSON.stringify(await make()) ?? "null";
    if (maxBytes === undefined) return await run();
    // The client is charged when the task has begun.
    await this.#writing;
    // Escaping quotes doubles the bytes at most.
    const room = toValueBytes(key, "") + 4 * maxBytes;
    if (!this.#bytes.reserve({ values: this.#bytes.values + room })) throw toFull();
    try {
      return await run();
    } finally {
      this.#bytes.reserve({ values: this.#bytes.values - room });
    }
  }

  async #writeProgress(statusMessage: string): Promise<boolean> {
    // Drop a message that is too large for the store, and continue with later messages.
    await this.#change((record) => ({ ...record, statusMessage })).catch((error) => {
      if (!isFinal(error)) throw error;
    });
    return !isEnded(this.record);
  }

  async #end(end: End): Promise<void> {
    const { canResume } = this.record.work ?? {};
    if (this.#isLost || isEnded(this.record)) return;
    if (end.result) return await this.#complete(end.result);
    const { why, error } = end;
    // Whether this process refused the call before the handler started, because it has no capacity or is closing.
    const isRefused = !this.hasRun && (error.code === BUSY || this.#host.server.signal.aborted);
    if (canResume && (why === "closing" || isRefused)) return await this.#change((record) => ({ ...record, by: null }));
    const message = why === "closing" ? CLOSED : why === "timeout" ? TOO_LONG : error.message;
    await this.#fail({ ...error, message });
  }

  async #complete(result: Result): Promise<void> {
    try {
      await this.#finish("completed", { result });
    } catch (error) {
      if (!isFinal(error)) throw error;
      // The result is too large for the store, or exceeds the client's share of memory.
      await this.#fail({ code: INTERNAL_ERROR, message: `Cannot store the result of the task: ${toText(error)}` });
    }
  }

  async #fail(error: TaskFailure): Promise<void> {
    const finish = (error: TaskFailure) => this.#finish("failed", { statusMessage: error.message, error });
    try {
      await finish(error);
    } catch (cause) {
      if (!isFinal(cause)) throw cause;
      // The error is too large for the store. If the task did not end, its handler would run again and again.
      await finish({ code: error.code, message: `Cannot store the error of the task: ${toText(cause)}` });
    }
  }

  async #finish(status: TaskStatus, to: Partial<TaskRecord>): Promise<void> {
    await this.#change(({ work: _, ...record }) => ({ ...record, ...to, status, by: null }));
  }

  #keepWork(change: (work: TaskWork) => Partial<TaskWork>): void {
    const { work } = this.record;
    if (work) this.record = { ...this.record, work: { ...work, ...change(work) } };
  }

  #withReads(record: TaskRecord): TaskRecord {
    return withReads(record, this.toReads(), this.caller);
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
    const { clock } = this.#host.server;
    while (true) {
      if (isEnded(this.record)) return;
      if (this.#isLost) throw new Error("Cannot change the task: this process no longer runs the task");
      // Each write contains the resources that the handler has read, because what it writes may depend on them.
      const changed = withoutFurtherAnswers(change(this.record), this.#settled);
      const next = { ...this.#withReads(changed), updatedAt: clock.date() };
      // Write the end of a task that has failed or was cancelled in any case.
      if (!this.#charge(next) && (!isEnded(next) || next.status === "completed")) throw toFull();
      const version = await this.#repeat(() => this.#store.set(next, this.#version));
      if (version !== undefined) {
        const { isWatched } = this.record;
        this.#version = version;
        this.record = isWatched ? { ...next, isWatched } : next;
        this.#host.onChange(this);
        return await this.#markEnded();
      }
      await this.#reread();
    }
  }

  /** Call this after another process has stored answers, cancelled the task or taken over the task. */
  async #reread(): Promise<void> {
    await this.#apply(await this.#find());
  }

  #find(): Promise<FoundTask | undefined> {
    return this.#repeat(() => this.#store.get(this.record.id));
  }

  async #apply(found: FoundTask | undefined): Promise<void> {
    const { by, run } = this.record;
    if (!found) return this.#abandon("the task is no longer in the store");
    this.#version = found.version;
    // Keep `isWatched`, because this process may not have written `isWatched` to the store yet.
    this.record = this.record.isWatched ? { ...found.record, isWatched: true } : found.record;
    this.#accept();
    if (isEnded(found.record)) {
      this.#host.onChange(this);
      // This process may have ended the task itself, if only the response of the store was lost.
      await this.#markEnded();
      return this.#abandon("the task has ended");
    }
    if (found.record.by !== by || found.record.run !== run) return this.#abandon("another process runs the task");
    // Deliver the answers in a microtask: delivering may write the record, and this function runs during a write.
    queueMicrotask(() => this.#deliver().catch(() => {}));
  }

  async #markEnded(): Promise<void> {
    if (isEnded(this.record)) await this.#repeat(() => this.#store.markEnded(this.record));
    await this.#deleteValues();
  }

  // Delete the values before their bytes are released, because the store would otherwise keep them without a charge.
  async #deleteValues(): Promise<void> {
    if (!isEnded(this.record)) return;
    // An earlier run may have stored values that this process has not loaded.
    const hasValues = this.#bytes.values > 0 || this.record.run > 1;
    if (hasValues) await this.#repeat(() => this.#store.deleteValues(this.record));
  }

  /** Counts the bytes of a record that is about to be written. Returns `false` if there is no room. */
  #charge(record: TaskRecord): boolean {
    return this.#bytes.reserve({ record: toRecordBytes(record) });
  }

  /** Counts bytes that are already in the store, even if there is no room. */
  #accept(values?: number): void {
    this.#bytes.accept({ record: toRecordBytes(this.record), values });
  }

  /**
   * Waits until other processes certainly see this process's lease, so that none of them can run the task. If they may
   * have found the lease expired since this process wrote the record, writes the record again: a takeover that has
   * begun then fails. Rejects if another process runs the task, or if the task has ended.
   */
  async #confirm(): Promise<void> {
    // No other process knows a task that is not in the store.
    if (!this.#store.isShared || this.#version === null) return;
    while (true) {
      const term = await this.#repeat(async () => await this.#store.lease.confirm());
      if (this.#isOver || this.#isLost || isEnded(this.record)) throw new Error(OVER);
      if (term === this.#term) return;
      await this.#change((record) => record);
      this.#term = term;
    }
  }

  /** Throws if the task has ended, because the message of another process about a cancellation may be lost. */
  async #check(): Promise<void> {
    if (!this.#store.isShared || this.#version === null) return;
    await this.#look();
    if (this.#isOver || this.#isLost || isEnded(this.record)) throw new Error(OVER);
  }

  /** Reads the record again if another process has changed it. */
  async #look(): Promise<void> {
    if (!this.#store.isShared) return;
    await this.#queue(async () => {
      if (!this.#isLost && !isEnded(this.record)) await this.#readChange();
    });
  }

  async #readChange(): Promise<void> {
    const found = await this.#find();
    if (found?.version !== this.#version) await this.#apply(found);
  }

  #abandon(state: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.cancelHandler(`Cannot continue the handler: ${state}`);
  }

  async #repeat<T>(run: () => Promise<T>): Promise<T> {
    return await untilDone(run, this.#host.server, () => this.#isLost);
  }
}

/**
 * Retries an operation while the store does not respond, or the client has used up its share of the store, until the
 * server closes or `isOver` returns `true`.
 */
export async function untilDone<T>(
  run: () => Promise<T>,
  { clock, signal }: Pick<ServerHandle, "clock" | "signal">,
  isOver: () => boolean = () => false,
): Promise<T> {
  while (true) {
    try {
      return await run();
    } catch (error) {
      if (isFinal(error) && error.code !== BUSY || signal.aborted || isOver()) throw error;
      await new Promise<void>((resolve) => clock.start(resolve, RETRY_MS, { background: true }));
    }
  }
}

/** A change of the record that another process has written. */
export interface Adopted {
  /** The version of the record before the change. */
  readonly base: string;
  readonly version: string;
  readonly answers?: Params;
  readonly isCancelled?: boolean;
}

/** `why` is the reason of the cancellation, if the handler was cancelled. */
type End =
  | { readonly result: Result }
  | { readonly result?: undefined; readonly error: TaskFailure; readonly why?: unknown };

async function toEnd(ending: Promise<Result>): Promise<End> {
  try {
    return { result: await ending };
  } catch (error) {
    const { code = INTERNAL_ERROR, message, data, why } = Object(error);
    return { error: { code, message: String(message), ...data !== undefined && { data } }, why };
  }
}

function toJson({ method, params }: OpenQuestion): string {
  return JSON.stringify({ method, params });
}

function toValueBytes(key: string, json: string): number {
  return VALUE_BYTES + toBytes([key, json]);
}

function isFinal(error: unknown): error is Error & { readonly code?: number } {
  return error instanceof RangeError || error instanceof TypeError || error instanceof McpError;
}

function toText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function toFull(): McpError {
  return McpError.busy(
    "Cannot store data of the task: the server already stores too many bytes for this client; wait until older tasks expire",
  );
}

const INTERNAL_ERROR = -32_603;
const BUSY = -31_503;
const OVER = "Cannot continue the handler: the task has ended in this process";
const CLOSED = "The server closed before the task was finished; call the tool again if the call can safely be repeated";
export const TOO_LONG = "The task took longer than its time to live (ttlMs)";

/** Milliseconds between two attempts to reach a store that does not respond. */
const RETRY_MS = 1000;
