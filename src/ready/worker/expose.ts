/**
 * Runs in a worker thread, and calls the thread's handler for each call that the server sends.
 */
import { toState } from "../../core/kit/error_state.ts";
import { quote } from "../../core/protocol/errors.ts";
import { LOG_LEVELS } from "../../core/protocol/types.ts";
import { CancelError, fromReasonNumber } from "../../server/call/cancel_error.ts";
import type { Context, ElicitOptions, OnceOptions, Principal } from "../../server/call/context.ts";
import { checkOptions } from "../../core/known_options.ts";
import { createLog } from "../../server/call/log.ts";
import { ELICIT } from "../../server/call/question_kinds.ts";
import { toForm } from "../../core/schema/form.ts";
import { deno, findThread, findThreadLocks, type ThreadGlobal } from "../../core/runtime.ts";
import { guardConsole } from "../../server/transports/stdio/stdout_guard.ts";
import { type CallInfo, type FromThread, toError, toSentError, type ToThread } from "./messages.ts";

/**
 * The context of a handler in a worker thread. Its methods work like the methods of {@linkcode Context}. The HTTP
 * request, services and other objects that cannot be copied to a thread are not available.
 *
 * `signal.aborted` and `signal.throwIfAborted()` also work while the handler blocks its thread. Use these members in
 * long loops, because Deno cannot terminate a thread that never returns to its event loop.
 */
export interface WorkerContext extends
  Pick<
    Context,
    "method" | "client" | "principal" | "meta" | "signal" | "progress" | "log" | "elicit" | "elicitUrl" | "sample"
  >,
  Pick<Context, "roots" | "once" | "idempotencyToken"> {
}

/** A handler that runs in a worker thread. */
export type WorkerHandler<Input, Output> = (input: Input, ctx: WorkerContext) => Output | Promise<Output>;

/**
 * Makes a handler available to {@linkcode worker}. In the file whose URL you pass to `worker`, call this function once,
 * and export the result as the default export. Outside of a worker thread, the function only returns the handler, so
 * that tests can import the file.
 *
 * In the thread, `console.log` writes to standard error, because the server may use standard output for MCP messages.
 *
 * ```ts
 * import { exposeWorker } from "@x/mcp/worker";
 *
 * export default exposeWorker(({ below }: { below: number }, { progress, signal }) => {
 *   let count = 0;
 *   for (let n = 2; n < below; n++) {
 *     if (n % 10_000 === 0) {
 *       signal.throwIfAborted();
 *       progress(n, { total: below });
 *     }
 *     let d = 2;
 *     while (d * d <= n && n % d) d++;
 *     if (d * d > n) count++;
 *   }
 *   return `${count} primes`;
 * });
 * ```
 */
export function exposeWorker<Input, Output>(handler: WorkerHandler<Input, Output>): WorkerHandler<Input, Output> {
  const thread = findThread();
  if (thread) new Exposed(thread, handler);
  return handler;
}

/** Maximum number of messages per call that the server has not processed yet. Further notifications are dropped. */
const MAX_SENT = 64;

/** Handles the messages that the thread receives, and runs the handler. */
class Exposed {
  readonly #thread: ThreadGlobal;
  // The input type is `never`, because the class does not know the handler's input type. The server validates the
  // input.
  readonly #handler: WorkerHandler<never, unknown>;
  #call?: ExposedCall;

  constructor(thread: ThreadGlobal, handler: WorkerHandler<never, unknown>) {
    this.#thread = thread;
    this.#handler = handler;
    guardConsole();
    // The cast is safe, because only the pool sends messages to the thread.
    thread.addEventListener("message", ({ data }) => this.#receive(data as ToThread));
    this.#announceEnd();
    const ready = () => this.#send({ kind: "ready" });
    const locks = findThreadLocks();
    // Hold a lock until the thread has ended, so that the server can detect the end, which can be long after
    // `terminate()`.
    if (locks && thread.name) locks.request(thread.name, () => (ready(), new Promise(() => {})));
    else ready();
  }

  // Makes `close` and `exit` notify the server before the thread ends, because Deno does not report the end of a
  // thread. Both stop the thread's code immediately.
  #announceEnd(): void {
    if (!deno) return;
    for (const [owner, name] of [[this.#thread, "close"], [deno, "exit"]] as const) {
      const end: unknown = Reflect.get(owner, name);
      if (typeof end !== "function") continue;
      const value = (...args: readonly unknown[]) => {
        this.#send({ kind: "gone" });
        end.apply(owner, args);
      };
      Reflect.defineProperty(owner, name, { value, configurable: true, writable: true });
    }
  }

  #send(message: FromThread): void {
    this.#thread.postMessage(message);
  }

  #receive(message: ToThread): void {
    if (message.kind === "run") this.#run(message);
    else if (message.kind === "cancel") this.#call?.cancel(toError(message.reason));
    else this.#call?.answer(message);
  }

  async #run({ input, info: info, done }: ToThread & { readonly kind: "run" }): Promise<void> {
    const call = this.#call = new ExposedCall(done, (message) => this.#send(message));
    let message: FromThread;
    try {
      const cancelled = Atomics.load(done, 1);
      if (cancelled) throw new CancelError(fromReasonNumber(cancelled));
      // The cast is safe, because the server has validated the input.
      message = { kind: "result", value: await this.#handler(input as never, call.toContext(info)) };
    } catch (error) {
      message = { kind: "failed", error: toSentError(error) };
    }
    // End the context before sending the result. Otherwise the server would assign later messages from this handler to
    // the next call.
    call.end();
    try {
      this.#send(message);
    } catch (error) {
      const state = `${toState(describe(error))}; return plain data, without functions, streams or responses`;
      const wrong = new TypeError(`Cannot send the result of a worker thread: ${state}`);
      this.#send({ kind: "failed", error: toSentError(wrong) });
    }
  }
}

/** Ids are unique per thread, because a response may arrive after its call has ended. */
let lastId = 0;

/** A call that the thread is running, and its context. */
class ExposedCall {
  #isOver = false;
  readonly #controller = new AbortController();
  readonly #post: (message: FromThread) => void;
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>();
  /**
   * Shared memory: the number of messages from this call that the server has processed, and the reason for a
   * cancellation. A handler that blocks the thread can read this memory, but cannot receive messages.
   */
  readonly #done: Int32Array;
  /** The number of requests and notifications that this call has sent to the server. */
  #sent = 0;

  constructor(done: Int32Array, post: (message: FromThread) => void) {
    this.#done = done;
    this.#post = post;
  }

  answer({ id, value, error }: ToThread & { readonly kind: "answer" }): void {
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    if (error) answer?.reject(toError(error));
    else answer?.resolve(value);
  }

  /** The context of an ended call sends no messages. */
  end(): void {
    this.#isOver = true;
  }

  cancel(reason: unknown): void {
    abort(this.#controller, reason);
  }

  toContext({ withheld = [], ...info }: CallInfo): WorkerContext {
    const wanted = info.client.logLevel;
    if (info.principal) withhold(info.principal, withheld);
    return {
      ...info,
      signal: toLiveSignal(this.#controller, this.#done),
      progress: (progress, options) => this.#notify("progress", [progress, options]),
      log: createLog((level, data, logger) => {
        if (!wanted || LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(wanted)) return Promise.resolve();
        return this.#notify("log", [level, data, logger]);
      }),
      elicit: (key, question) => this.#elicit(key, question),
      elicitUrl: (key, options) => this.#ask("elicitUrl", [key, options]),
      sample: (key, request) => this.#ask("sample", [key, request]),
      roots: () => this.#ask("roots", []),
      once: (key, make, options) => this.#once(key, make, options),
    } as WorkerContext; // The cast is safe, because the server responds with return values of the methods of `Context`.
  }

  async #elicit(key: string, options: ElicitOptions) {
    // Reject unknown options here, because the thread does not send unknown options to the server.
    checkOptions(`ask ${quote(key)}`, options, ELICIT);
    const { message, schema, singleUse } = options;
    const form = toForm(schema, `the question ${JSON.stringify(key)}`);
    const asked = { message, schema: form.requestedSchema, singleUse };
    // The schema validates the answer in the thread, because the server has only the JSON Schema of the form. The cast
    // is safe, because the server responds with the answer to a form.
    const answer = await this.#ask("elicit", [key, asked]) as { action: "accept"; content: unknown };
    if (answer.action !== "accept") return answer;
    const checked = await form.check(answer.content);
    if (checked.problem === undefined) return { action: "accept", content: checked.value };
    throw new TypeError(`Cannot use the answer to ${JSON.stringify(key)}: ${checked.problem}`);
  }

  async #once(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    // The cast is safe, because the server responds to `once` with these fields.
    const { isKnown, value } = await this.#ask("once", [key, options]) as { isKnown: boolean; value: unknown };
    if (isKnown) return value;
    try {
      return await this.#ask("keep", [key, await make()]);
    } catch (error) {
      if (!this.#isOver) this.#post({ kind: "use", name: "drop", args: [key, toSentError(error)] });
      throw error;
    }
  }

  // Sends a notification, or drops the notification if the server still has `MAX_SENT` messages to process.
  // The thread cannot wait for the server, because a handler may block the thread.
  #notify(name: string, args: readonly unknown[]): Promise<void> {
    if (this.#isOver || this.#sent - Atomics.load(this.#done, 0) >= MAX_SENT) return Promise.resolve();
    // The cast is safe, because the server responds to a notification without a value.
    return this.#ask(name, args) as Promise<void>;
  }

  #ask(name: string, args: readonly unknown[]): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>();
    // Mark a rejection as handled, because an unhandled rejection would end the thread.
    answer.promise.catch(() => {});
    if (this.#isOver) {
      answer.reject(
        new Error(`Cannot use ctx.${name}: the call has ended; await the result of ctx.${name} in the handler`),
      );
    } else {
      const id = ++lastId;
      this.#post({ kind: "use", name, args, id });
      this.#answers.set(id, answer);
      this.#sent++;
    }
    return answer.promise;
  }
}

/** Defines a getter that throws for each field of the principal that could not be copied to the thread. */
function withhold(principal: Principal, names: readonly string[]): void {
  for (const name of names) {
    const get = () => {
      throw new TypeError(
        `Cannot read principal.${name} in a worker thread: the value cannot be copied; use plain data`,
      );
    };
    Object.defineProperty(principal, name, { get });
  }
}

/** Reads the cancellation from shared memory, because a thread that is blocked receives no messages. */
function toLiveSignal(controller: AbortController, done: Int32Array): AbortSignal {
  const { signal } = controller;
  const update = () => {
    const cancelled = Atomics.load(done, 1);
    if (cancelled) abort(controller, new CancelError(fromReasonNumber(cancelled)));
  };
  const read = (name: "aborted" | "reason") => ({
    configurable: true,
    get: (): unknown => {
      update();
      return Reflect.get(AbortSignal.prototype, name, signal);
    },
  });
  const throwIfAborted = () => {
    update();
    AbortSignal.prototype.throwIfAborted.call(signal);
  };
  return Object.defineProperties(signal, {
    aborted: read("aborted"),
    reason: read("reason"),
    throwIfAborted: { configurable: true, value: throwIfAborted },
  });
}

function abort(controller: AbortController, reason: unknown): void {
  // Remove the replaced properties before aborting. Deno reads the properties while it aborts the signal, and their
  // getters would call this function again.
  for (const name of ["aborted", "reason", "throwIfAborted"]) Reflect.deleteProperty(controller.signal, name);
  controller.abort(reason);
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
