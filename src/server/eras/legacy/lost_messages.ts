/**
 * Warns of messages that reach the wrong instance of a server. Instances with the same secret accept each other's
 * sessions, but without a store they cannot pass on an answer, a cancellation or a notification to each other.
 */
import type { Incoming } from "../../../core/protocol/jsonrpc.ts";
import type { Core } from "../../engine/core.ts";
import { openVersioned, sealVersioned } from "../../call/versioned_seal.ts";

/** The kinds of messages that an instance detects as lost. */
type Lost = "answer" | "cancellation" | "stream";

const QUESTION = "ask-";
const PURPOSE = "question";

/**
 * Number of milliseconds after its start for which an instance may see sessions of an earlier process, because the two
 * processes overlap during a restart, or because the clocks of two machines differ.
 */
const OVERLAP_MS = 60_000;

/** Number of milliseconds within which the first message of a session follows the stream of the session. */
const FIRST_MESSAGE_MS = 5000;

const REMEDY = "set the same store in all instances, or send all requests with one Mcp-Session-Id to the same instance";

/** The lost messages of a server. Warns only once for each kind, because a client can repeat a message. */
export class LostMessages {
  /** Identifies this process in session ids and question ids. */
  readonly instance: string = crypto.randomUUID().slice(0, 8);
  readonly #start: number;
  // Bound: one per kind of message.
  readonly #warned = new Set<Lost>();
  #hasEvicted = false;

  constructor({ createdAt, ticker }: Core) {
    // Without a time, use the time of the first request: later than the start, so that a warning is never false.
    this.#start = createdAt || ticker.clock.date();
  }

  /** Returns `undefined` if instances share a store, or share no secret. */
  static of(core: Core): LostMessages | undefined {
    if (core.shared || !core.sealer.isShared) return;
    return core.state.slot(LostMessages, () => new LostMessages(core));
  }

  /** Returns whether another instance has created a value while this instance was running. */
  isForeign(instance: unknown, time: number, overlapMs = OVERLAP_MS): boolean {
    return typeof instance === "string" && instance !== this.instance && time >= this.#start + overlapMs;
  }

  /** Records an eviction. This instance no longer knows whether earlier messages of a session have reached it. */
  recordEviction(): void {
    this.#hasEvicted = true;
  }

  /** Whether this instance knows all sessions whose messages have reached it. */
  get knowsSessions(): boolean {
    return !this.#hasEvicted;
  }

  hasWarned(lost: Lost): boolean {
    return this.#warned.has(lost);
  }

  warn(lost: Lost, text: string): void {
    if (this.#warned.has(lost)) return;
    this.#warned.add(lost);
    console.warn(`${text}; ${REMEDY}`);
  }
}

/** Detects messages of one session that have reached different instances. */
export class SessionWatch {
  readonly #core: Core;
  readonly #lost: LostMessages;
  readonly #isForeign: boolean;
  #hasMessage = false;
  #hasRequest = false;

  constructor(core: Core, lost: LostMessages, isForeign: boolean) {
    this.#core = core;
    this.#lost = lost;
    this.#isForeign = isForeign;
  }

  receive({ kind }: Pick<Incoming, "kind">): void {
    this.#hasMessage = true;
    if (kind === "request" || kind === "batch") this.#hasRequest = true;
  }

  /** Creates the id of a question. No client can make up an id that another instance would report as lost. */
  async makeQuestionId(): Promise<string> {
    const { sealer, ticker } = this.#core;
    return QUESTION + await sealVersioned(sealer, PURPOSE, [this.#lost.instance, ticker.clock.date()]);
  }

  /**
   * Warns if the response answers a question of another instance. A late answer to a question of this instance, or to a
   * question from before the start of this instance, is ordinary.
   */
  async findLostAnswer(id: string | number): Promise<void> {
    const { limits: { request }, sealer } = this.#core;
    const isSealed = typeof id === "string" && id.startsWith(QUESTION) && id.length <= request.idCharacters;
    if (!isSealed || this.#lost.hasWarned("answer")) return;
    const opened = await openVersioned(sealer, PURPOSE, id.slice(QUESTION.length));
    if (!Array.isArray(opened) || !this.#lost.isForeign(opened[0], opened[1], 0)) return;
    this.#warn(
      "answer",
      "Cannot deliver an answer",
      "another instance has asked the question, and the instances share no store",
    );
  }

  /**
   * Warns if a cancellation for an unknown call is the first request that this instance gets in the session. Otherwise
   * the call has probably ended before the cancellation arrived, which is ordinary.
   */
  findLostCancellation(): void {
    if (!this.#isForeign || this.#hasRequest || !this.#lost.knowsSessions) return;
    this.#warn(
      "cancellation",
      "Cannot cancel a call",
      "another instance has created the session, and no request of the session has reached this instance",
    );
  }

  /** Warns if no message reaches this instance soon after its stream opened. Returns a function that stops waiting. */
  watchStream(): () => void {
    if (!this.#isForeign || this.#hasMessage) return () => {};
    const { ticker } = this.#core;
    const timeout = ticker.startTimeout(FIRST_MESSAGE_MS, () => {
      if (this.#hasMessage || !this.#lost.knowsSessions) return;
      this.#warn(
        "stream",
        "Cannot send notifications of all changes",
        "another instance has created the session, and only the session's stream has reached this instance",
      );
    });
    return () => ticker.cancel(timeout);
  }

  #warn(lost: Lost, failure: string, state: string): void {
    this.#lost.warn(lost, `${failure} for a client of ${this.#core.identity.name}: ${state}`);
  }
}
