/**
 * The questions and answers of a call, across all rounds.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 */
import { INVALID_PARAMS, McpError, quote, toBusy } from "../../../core/protocol/errors.ts";
import { type Params, type Result, toTypedResult } from "../../../core/protocol/jsonrpc.ts";
import type { Call } from "../../call/call.ts";
import type { OnceOptions } from "../../call/context.ts";
import type { Engine } from "../../engine/era.ts";
import type { ForwardedRound } from "../../call/forward.ts";
import { findForwardedEnds } from "../../call/forwarded_keys.ts";
import { OnceValues } from "../../call/once.ts";
import { type Question, QuestionError } from "../../call/question.ts";
import { toMarkTtl } from "../../engine/marking.ts";
import { type SingleUse, SpentIds, type UseOutcome } from "../../engine/single_use.ts";
import { findQuirk } from "../client_quirks.ts";
import { openState, refuse, type Round, sealState } from "./request_state.ts";
import { type StoredValue, StoredValues } from "./stored_values.ts";

/** Number of unusable answers to a question after which the call fails, so that it does not repeat forever. */
const MAX_MISFITS = 3;

function findSpentIds({ core: { state, ticker, limits } }: Pick<Engine, "core">): SpentIds {
  return state.slot(InputRequests, () => new SpentIds(ticker.clock, toMarkTtl(limits.calls.stateMs)));
}

/**
 * The questions and answers of a call. An answer is valid only for the exact question that the client received. If the
 * handler runs again and asks a different question under the same key, the server sends the new question.
 */
export class InputRequests {
  /** The requests of `ctx.forward` that have not ended, by key. */
  readonly forwarded: Map<string, ForwardedRound> = new Map();
  readonly #engine: Pick<Engine, "core" | "accounts" | "scheduler">;
  readonly #call: Call;
  readonly #open = new Map<string, Question>();
  readonly #answered = new Map<string, readonly [question: string, answer: unknown]>();
  readonly #once: OnceValues;
  #stored?: StoredValues;
  /** The number of unusable answers, by the key of the question. */
  readonly #misfits = new Map<string, number>();
  #asked = new Map<string, string>();
  /**
   * The keys that the client gets, by the keys of this run and the last run. A key that the client has received is never
   * used for another question, because the answer could then reach the wrong server.
   */
  readonly #names = new Map<string, string>();
  #answers: Params = {};
  #round = 0;
  /** Whether the next `requestState` can be used only once. */
  #isSingleUse = false;
  /** Set if the `requestState` that the client returned can be used only once. */
  #use?: SingleUse;

  constructor(engine: Pick<Engine, "core" | "accounts" | "scheduler">, call: Call) {
    this.#engine = engine;
    this.#call = call;
    this.#once = new OnceValues({
      limits: engine.core.limits.calls,
      reserve: (key, maxBytes) => this.#toStored().reserve(key, maxBytes),
    });
  }

  /** Whether the `requestState` that the client returned can be used only once. */
  get isSingleUse(): boolean {
    return !!this.#use;
  }

  /** Whether the client must answer a question before the call can have a result. */
  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Throws if the state is invalid or has expired, or if it belongs to another call. */
  async restore(): Promise<void> {
    const opened = await openState(this.#engine, this.#call);
    if (!opened) return;
    const { answers, before } = opened;
    this.#round = before.round;
    const named = before.asked.map(([key, , name = key]) => [key, name] as const);
    for (const [key, name] of named) this.#names.set(key, name);
    this.#answers = Object.fromEntries(
      named.flatMap(([key, name]) => Object.hasOwn(answers, name) ? [[key, answers[name]]] : []),
    );
    this.#asked = new Map(before.asked.map(([key, text]) => [key, text]));
    for (const [key, question, answer] of before.answered) this.#answered.set(key, [question, answer]);
    for (const [key, value] of before.made) this.#once.made.set(key, JSON.stringify(value));
    if (before.stored?.length) this.#toStored(before.stored);
    for (const [key, round] of before.forwarded ?? []) this.forwarded.set(key, round);
    this.#watchForwarded(before.forwarded);
    for (const [key, count] of before.misfits ?? []) this.#misfits.set(key, count);
    this.#use = before.use;
    this.#isSingleUse = !!before.use;
  }

  /** Throws if the state was already used, or if the store does not respond. */
  async markUsed(): Promise<void> {
    if (!this.#use) return;
    const { shared, limits } = this.#engine.core;
    const ttlMs = toMarkTtl(limits.calls.stateMs);
    const { account } = this.#call.link;
    const spent = findSpentIds(this.#engine);
    const outcome = await spent.markUsed(
      this.#use,
      shared && ((use) => shared.markUsed(account, use, { ttlMs, isDated: true })),
    );
    if (outcome !== "spent") throw toUseError(outcome);
  }

  /** Returns the answer to exactly this question. Otherwise records the question and throws, which ends the handler. */
  async ask(key: string, question: Question): Promise<unknown> {
    const text = JSON.stringify([question.method, question.params]);
    this.#isSingleUse ||= !!question.isSingleUse;
    const kept = this.#answered.get(key);
    let answer: unknown;
    // A new answer replaces an unusable answer of an earlier round.
    if (this.#asked.get(key) === text && Object.hasOwn(this.#answers, key)) answer = this.#answers[key];
    else if (kept?.[0] === text) answer = kept[1];
    else return this.#leaveOpen(key, question);
    const reading = question.read(answer);
    const checked = reading instanceof Promise ? await reading : reading;
    if (checked.problem !== undefined) {
      const count = (this.#misfits.get(key) ?? 0) + 1;
      this.#misfits.set(key, count);
      if (count < MAX_MISFITS) return this.#leaveOpen(key, question);
      throw new McpError(
        INVALID_PARAMS,
        `Cannot use the client's answer to ${quote(this.#names.get(key) ?? key)}: ${checked.problem}; ` +
          `the client has sent ${MAX_MISFITS} invalid answers`,
      );
    }
    this.#answered.set(key, [text, answer]);
    return checked.value;
  }

  /** Returns the value under this key from an earlier round. Calls `make` if the key has no value yet. */
  async once(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    const { large } = this.#once;
    if (this.#stored?.has(key) && !large.has(key)) large.set(key, await this.#stored.load(key));
    return await this.#once.get(key, make, options);
  }

  async toResult(): Promise<Result> {
    const stored = await this.#stored?.write(this.#once.large);
    // Keep the answers to questions that this run has not asked again, because it ended before. The run that asks them
    // again checks them.
    for (const [key, text] of this.#asked) {
      const isUnused = !this.#open.has(key) && !this.#answered.has(key);
      if (isUnused && Object.hasOwn(this.#answers, key)) this.#answered.set(key, [text, this.#answers[key]]);
    }
    const questions = [...this.#open].map(([key, { method, params }]) => [key, { method, params }] as const);
    const { core } = this.#engine;
    const use = this.#isSingleUse ? await this.#makeUse() : undefined;
    const requestState = await sealState(core, this.#call, {
      round: this.#round + 1,
      asked: questions.map(([key, { method, params }]) => {
        const text = JSON.stringify([method, params]);
        const name = this.#names.get(key);
        return name === undefined || name === key ? [key, text] : [key, text, name];
      }),
      answered: [...this.#answered].map(([key, [question, answer]]) => [key, question, answer]),
      // Seal parsed values, because sealing writes JSON and would escape every quote of a JSON text again.
      made: [...this.#once.made].map(([key, json]) => [key, JSON.parse(json)] as const),
      ...stored && { stored },
      ...this.forwarded.size && { forwarded: [...this.forwarded] },
      ...this.#misfits.size && { misfits: [...this.#misfits] },
      use,
    });
    // The client's quirk is not part of the state, because it changes nothing about the question.
    const { elicitation = (params: Params) => params } = findQuirk(this.#call.client) ?? {};
    const inputRequests = questions.map(([key, { method, params }]) => [
      this.#names.get(key) ?? key,
      { method, params: method === "elicitation/create" ? elicitation(params) : params },
    ]);
    return toTypedResult("input_required", { inputRequests: Object.fromEntries(inputRequests), requestState });
  }

  #toStored(stored: readonly StoredValue[] = []): StoredValues {
    return this.#stored ??= new StoredValues(this.#engine, this.#call, stored);
  }

  /** Ends the forwarded requests that this run does not continue, because the client does not send their answers again. */
  #watchForwarded(rounds: Round["forwarded"]): void {
    const ends = findForwardedEnds(this.#engine.core.state);
    if (!rounds || !ends.size) return;
    const call = this.#call;
    call.defer((end) => {
      // The client may repeat a request that was cancelled.
      if (end !== "result" && end !== "error") return;
      const left = rounds.filter(([key]) => !call.forwardedKeys?.has(key));
      for (const [, { requestState }] of left) for (const stop of ends) stop(requestState);
    });
  }

  #makeUse(): Promise<SingleUse> {
    const { shared } = this.#engine.core;
    const { account } = this.#call.link;
    const uses = shared && { since: () => shared.sinceSpent(account) };
    return findSpentIds(this.#engine).make(account.key, uses);
  }

  #leaveOpen(key: string, question: Question): never {
    this.#open.set(key, question);
    this.#nameFor(key, question);
    throw new QuestionError();
  }

  #nameFor(key: string, { name: wanted = key }: Question): void {
    if (this.#names.has(key)) return;
    const taken = new Set(this.#names.values());
    let name = wanted;
    for (let count = 2; taken.has(name); count++) name = `${wanted} ${count}`;
    this.#names.set(key, name);
  }
}

function toUseError(outcome: Exclude<UseOutcome, "spent">): McpError {
  switch (outcome) {
    case "marked":
      return refuse("this answer was already used; call again without requestState");
    case "cut-off":
      return refuse(
        "the server no longer knows whether this old answer was already used; call again without requestState",
      );
    case "elsewhere":
      return refuse(
        "only the process that asked the question knows whether this answer was already used; call again without requestState, or give all " +
          "instances the same store",
      );
    case "lost":
      return toBusy("continue the call: the store does not report whether this answer was already used");
  }
}
