/**
 * Warns, in development, of work that a handler does before a question. In revisions without sessions the handler runs
 * again from the top when the answer comes, and that work is done again.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import { quote } from "../protocol/errors.ts";
import type { Call } from "./call.ts";
import type { Clock } from "./timers.ts";

/** Work that a handler does before a question, and again when the answer comes. */
export interface RepeatedWork {
  /** The call, such as `tools/call "order"`. */
  readonly place: string;
  /** The key of the question. */
  readonly key: string;
  /** What the handler does, such as `logs a message`. */
  readonly work: readonly string[];
}

/** What a handler has done since it began, or since its last question was answered. */
interface Stretch {
  /** Such as `logs a message`. */
  readonly work: Set<string>;
  /** When the stretch began, in milliseconds. Time spent in `ctx.once` moves it, because that work is not repeated. */
  since: number;
  /** How many `ctx.once` run. */
  kept: number;
}

/** Milliseconds of a stretch that are too many to spend twice. */
const SLOW_MS = 100;

/** How much repeated work is remembered, so that each is reported once. */
const MOST_REPORTS = 1000;

/** Says what is repeated, and what to do about it. */
export function toWarning({ place, key, work }: RepeatedWork): string {
  return `Cannot run ${place} without repeating work: before the question ${quote(key)} it ${work.join(", ")}, and ` +
    "again when the answer comes; do this after the last question, or keep its value with ctx.once(key, make)";
}

/** Watches the calls of a server in development. */
export class RerunWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #onRepeat: (repeated: RepeatedWork) => void;
  readonly #stretches = new WeakMap<Call, Stretch>();
  readonly #reported = new Set<string>();

  /** A watch that calls `onRepeat` once for each kind of repeated work. */
  constructor(clock: Pick<Clock, "now">, onRepeat: (repeated: RepeatedWork) => void) {
    this.#clock = clock;
    this.#onRepeat = onRepeat;
  }

  /** Begins a stretch. */
  begin(call: Call): void {
    this.#stretches.set(call, { work: new Set(), since: this.#clock.now(), kept: 0 });
  }

  /** Notes work, such as `logs a message`. */
  note(call: Call, work: string): void {
    const stretch = this.#stretches.get(call);
    if (stretch && !stretch.kept) stretch.work.add(work);
  }

  /** Asks a question; the answer begins a stretch. */
  async ask<T>(call: Call, key: string, ask: () => Promise<T>): Promise<T> {
    this.#report(call, key);
    try {
      return await ask();
    } finally {
      this.begin(call);
    }
  }

  /** Runs `ctx.once`, whose work is not repeated. */
  async once<T>(call: Call, run: () => Promise<T>): Promise<T> {
    const stretch = this.#stretches.get(call);
    const began = this.#clock.now();
    if (stretch) stretch.kept++;
    try {
      return await run();
    } finally {
      if (stretch && !--stretch.kept) stretch.since += this.#clock.now() - began;
    }
  }

  #report(call: Call, key: string): void {
    const stretch = this.#stretches.get(call);
    if (!stretch) return;
    const spent = Math.round(this.#clock.now() - stretch.since);
    const isSlow = spent >= SLOW_MS;
    const { method, params: { name, uri } } = call;
    const place = `${method} ${quote(name ?? uri ?? "")}`;
    const id = JSON.stringify([place, key, ...stretch.work, isSlow]);
    if (!stretch.work.size && !isSlow) return;
    if (this.#reported.has(id) || this.#reported.size >= MOST_REPORTS) return;
    this.#reported.add(id);
    this.#onRepeat({ place, key, work: [...stretch.work, ...isSlow ? [`takes ${spent} ms`] : []] });
  }
}
