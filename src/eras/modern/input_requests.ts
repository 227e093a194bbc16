/**
 * The rounds of one call: what was asked, what was answered, and what is still open.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import { INTERNAL_ERROR, INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject, type Params, type Result } from "../../protocol/jsonrpc.ts";
import { toBase64Url } from "../../protocol/base64.ts";
import type { Call } from "../../core/call.ts";
import type { Question } from "../../core/question.ts";
import type { Core } from "../../core/core.ts";

/** What travels sealed between two rounds. */
interface State {
  /** What the state is bound to: principal, method and parameters. */
  readonly bound: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
  readonly round: number;
  /** Questions that were sent, as text, by key. */
  readonly asked: readonly (readonly [key: string, question: string])[];
  /** Answers that were read, with the question each one answers. */
  readonly answered: readonly (readonly [key: string, question: string, answer: unknown])[];
  /** Values made once. */
  readonly made: readonly (readonly [key: string, json: string])[];
}

const PURPOSE = "requestState";

/**
 * The questions and answers of one call. An answer counts only for the question as it was asked: if the handler asks
 * something else under the same key when it runs again, the user is asked again.
 */
export class InputRequests {
  readonly #core: Core;
  readonly #call: Call;
  readonly #open = new Map<string, Question>();
  readonly #answered = new Map<string, readonly [question: string, answer: unknown]>();
  readonly #made = new Map<string, string>();
  #asked = new Map<string, string>();
  #given: Params = {};
  #round = 0;

  /** The answers of a call that has just begun. */
  constructor(core: Core, call: Call) {
    this.#core = core;
    this.#call = call;
  }

  /** Whether the client has to be asked before there can be a result. */
  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Takes up what the client brought back; throws if it is not what was handed out. */
  async restore(): Promise<void> {
    const { inputResponses: given = {}, requestState: text } = this.#call.params;
    if (!isObject(given)) throw refuse("inputResponses is not an object");
    // Without the state nobody knows which question an answer was for: a yes to paying 10 must not pay 12.
    if (text === undefined) return;
    if (typeof text !== "string") throw refuse("requestState is not a string");
    const { sealer, limits: { calls }, ticker } = this.#core;
    // What was sealed here under this purpose is a State; nothing else opens.
    const state = (text.length <= calls.stateBytes * 2 ? await sealer.open(PURPOSE, text) : undefined) as
      | State
      | undefined;
    if (!state) throw refuse("requestState was changed, or made by another server or with another secret");
    if (state.expires < ticker.clock.date()) {
      throw refuse("requestState has expired (calls.stateMs); start again without it");
    }
    if (state.bound !== await this.#bond()) throw refuse("requestState belongs to another call");
    this.#round = state.round;
    this.#given = given;
    this.#asked = new Map(state.asked);
    for (const [key, question, answer] of state.answered) this.#answered.set(key, [question, answer]);
    for (const [key, json] of state.made) this.#made.set(key, json);
  }

  /** The answer, if there is one for exactly this question; else the question is open and the handler unwinds. */
  async ask(key: string, question: Question): Promise<unknown> {
    const text = JSON.stringify([question.method, question.params]);
    const kept = this.#answered.get(key);
    let answer: unknown;
    if (kept?.[0] === text) answer = kept[1];
    else if (this.#asked.get(key) === text && Object.hasOwn(this.#given, key)) {
      answer = this.#given[key];
    } else return this.#leaveOpen(key, question);
    const reading = question.read(answer);
    const checked = reading instanceof Promise ? await reading : reading;
    if (checked.problem !== undefined) return this.#leaveOpen(key, question);
    this.#answered.set(key, [text, answer]);
    return checked.value;
  }

  /** The value made under this key in an earlier round, or now. */
  async once(key: string, make: () => unknown): Promise<unknown> {
    let json = this.#made.get(key);
    if (json === undefined) {
      json = JSON.stringify(await make()) ?? "null";
      this.#made.set(key, json);
    }
    return JSON.parse(json);
  }

  /** The result that asks the client. */
  async toResult(): Promise<Result> {
    const { sealer, limits: { calls }, ticker } = this.#core;
    if (this.#round >= calls.rounds) throw refuse(`the client was asked ${calls.rounds} times already (calls.rounds)`);
    const questions = [...this.#open];
    const state: State = {
      bound: await this.#bond(),
      expires: ticker.clock.date() + calls.stateMs,
      round: this.#round + 1,
      asked: questions.map(([key, { method, params }]) => [key, JSON.stringify([method, params])]),
      answered: [...this.#answered].map(([key, [question, answer]]) => [key, question, answer]),
      made: [...this.#made],
    };
    const requestState = await sealer.seal(PURPOSE, state);
    if (requestState.length > calls.stateBytes) {
      throw new Error(`Cannot ask the client: the call's state is longer than ${calls.stateBytes} (calls.stateBytes)`);
    }
    return {
      resultType: "input_required",
      inputRequests: Object.fromEntries(questions.map(([key, { method, params }]) => [key, { method, params }])),
      requestState,
    };
  }

  #leaveOpen(key: string, question: Question): never {
    this.#open.set(key, question);
    // Of this class, because others are reported as the server's fault. No client sees it: the questions go out instead.
    throw new McpError(INTERNAL_ERROR, "The client is being asked; this handler runs again when it has answered");
  }

  async #bond(): Promise<string> {
    const { principal, method, params } = this.#call;
    const { _meta, inputResponses: _responses, requestState: _state, ...rest } = params;
    const text = toCanonical([principal?.id ?? null, method, rest]);
    return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
  }
}

function refuse(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot go on with the call: ${state}`);
}

// A client may write the keys of the same arguments in another order when it comes back.
function toCanonical(value: unknown): string {
  return JSON.stringify(
    value,
    (_key, part) => isObject(part) ? Object.fromEntries(Object.entries(part).sort(byKey)) : part,
  );
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
