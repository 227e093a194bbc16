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

/** Warnings that are remembered, so that each is given once. */
const MOST_WARNINGS = 1000;

/** Watches the calls of a server in development. */
export class RerunWatch {
  readonly #clock: Clock;
  readonly #warn: (text: string) => void;
  readonly #stretches = new WeakMap<Call, Stretch>();
  readonly #warned = new Set<string>();

  /** A watch that tells `warn` of each kind of repeated work once. */
  constructor(clock: Clock, warn: (text: string) => void) {
    this.#clock = clock;
    this.#warn = warn;
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
    const { work, since } = stretch;
    const spent = Math.round(this.#clock.now() - since);
    const { method, params: { name, uri } } = call;
    const place = `${method} ${quote(name ?? uri ?? "")}`;
    const kinds = [...work, ...spent >= SLOW_MS ? ["takes time"] : []];
    const id = JSON.stringify([place, key, kinds]);
    if (!kinds.length || this.#warned.has(id) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(id);
    const listed = [...work, ...spent >= SLOW_MS ? [`takes ${spent} ms`] : []].join(", ");
    this.#warn(
      `Cannot run ${place} without repeating work: before the question ${quote(key)} it ${listed}, and again when ` +
        "the answer comes; move this behind the last question, or keep its value with ctx.once(key, make)",
    );
  }
}
