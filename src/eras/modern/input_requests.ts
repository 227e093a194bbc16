/**
 * The questions and answers of one call, over several rounds.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import { INTERNAL_ERROR, INVALID_PARAMS, McpError, quote } from "../../protocol/errors.ts";
import { type Params, type Result, toTypedResult } from "../../protocol/jsonrpc.ts";
import type { Call } from "../../core/call.ts";
import { OnceValues } from "../../core/once.ts";
import type { Question } from "../../core/question.ts";
import type { Core } from "../../core/core.ts";
import { openState, sealState } from "./request_state.ts";

/** How many unusable answers to one question the server accepts. A client that repeats them would ask its user forever. */
const MAX_MISFITS = 3;

/**
 * The questions and answers of one call. An answer counts only for the exact question. If the handler asks something
 * else under the same key when it runs again, the user is asked again.
 */
export class InputRequests {
  readonly #core: Core;
  readonly #call: Call;
  readonly #open = new Map<string, Question>();
  readonly #answered = new Map<string, readonly [question: string, answer: unknown]>();
  readonly #once = new OnceValues();
  /** The number of unusable answers to each question. */
  readonly #misfits = new Map<string, number>();
  #asked = new Map<string, string>();
  #answers: Params = {};
  #round = 0;

  /** Creates the state of a new call. */
  constructor(core: Core, call: Call) {
    this.#core = core;
    this.#call = call;
  }

  /** Whether the client must answer a question before the call can have a result. */
  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Restores the state that the client returned. Throws if it is not a state from this server. */
  async restore(): Promise<void> {
    const opened = await openState(this.#core, this.#call);
    if (!opened) return;
    const { answers, before } = opened;
    this.#round = before.round;
    this.#answers = answers;
    this.#asked = new Map(before.asked);
    for (const [key, question, answer] of before.answered) this.#answered.set(key, [question, answer]);
    for (const [key, json] of before.made) this.#once.made.set(key, json);
    for (const [key, count] of before.misfits ?? []) this.#misfits.set(key, count);
  }

  /**
   * Returns the answer to exactly this question. Without one, records the question and throws, so that the handler
   * unwinds.
   */
  async ask(key: string, question: Question): Promise<unknown> {
    const text = JSON.stringify([question.method, question.params]);
    const kept = this.#answered.get(key);
    let answer: unknown;
    if (kept?.[0] === text) answer = kept[1];
    else if (this.#asked.get(key) === text && Object.hasOwn(this.#answers, key)) {
      answer = this.#answers[key];
    } else return this.#leaveOpen(key, question);
    const reading = question.read(answer);
    const checked = reading instanceof Promise ? await reading : reading;
    if (checked.problem !== undefined) {
      const count = (this.#misfits.get(key) ?? 0) + 1;
      this.#misfits.set(key, count);
      if (count < MAX_MISFITS) return this.#leaveOpen(key, question);
      throw new McpError(
        INVALID_PARAMS,
        `Cannot use the client's answer to ${quote(key)}: ${checked.problem}; the server asked ${MAX_MISFITS} times`,
      );
    }
    this.#answered.set(key, [text, answer]);
    return checked.value;
  }

  /** Returns the value of an earlier round under this key, or computes it. */
  once(key: string, make: () => unknown): Promise<unknown> {
    return this.#once.get(key, make);
  }

  /** Returns the result that asks the client. */
  async toResult(): Promise<Result> {
    const questions = [...this.#open].map(([key, { method, params }]) => [key, { method, params }] as const);
    const requestState = await sealState(this.#core, this.#call, {
      round: this.#round + 1,
      asked: questions.map(([key, { method, params }]) => [key, JSON.stringify([method, params])]),
      answered: [...this.#answered].map(([key, [question, answer]]) => [key, question, answer]),
      made: [...this.#once.made],
      ...this.#misfits.size && { misfits: [...this.#misfits] },
    });
    return toTypedResult("input_required", { inputRequests: Object.fromEntries(questions), requestState });
  }

  #leaveOpen(key: string, question: Question): never {
    this.#open.set(key, question);
    // An McpError, because other errors are reported as unexpected. No client sees it, because the questions are sent
    // instead.
    throw new McpError(INTERNAL_ERROR, "The client is being asked; this handler runs again when it has answered");
  }
}
