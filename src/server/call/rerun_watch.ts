/**
 * Warns, in development, about work that a handler does before a question. In revisions without sessions, the handler
 * runs again from its beginning when the answer arrives, and repeats the work.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import type { RunningServer } from "./context.ts";
import type { Params } from "../../core/protocol/jsonrpc.ts";
import type { Clock } from "../../core/timers.ts";

/** Work that a handler does before a question, and repeats when the answer arrives. */
export interface RepeatedWork {
  /** Method and handler name of the call, such as `tools/call "order"`. */
  readonly place: string;
  readonly key: string;
  /** Descriptions of the work, such as `logs a message`. */
  readonly work: readonly string[];
}

/** The work that a handler has done since the handler started, or since the client's last answer. */
export interface Stretch {
  readonly work: Set<string>;
  /** Start time in milliseconds, plus the duration of each `ctx.once` call, whose work is not repeated. */
  since: number;
  /** Number of `ctx.once` calls that are running. */
  kept: number;
}

interface Watched {
  stretch?: Stretch;
  readonly method: string;
  readonly params: Params;
}

/** Milliseconds before a question from which the work is reported even without side effects. */
const SLOW_MS = 100;

/** Maximum number of reports per server. The server remembers the reports, so that no report is repeated. */
const MAX_REPORTS = 1000;

/** Formats the warning about repeated work, with a remedy. */
export function toWarning({ place, key, work }: RepeatedWork): string {
  return `Cannot run ${place} without repeating work: the handler ${work.join(" and ")} before the question ${
    JSON.stringify(key)
  }, and repeats ` +
    "this work when the answer arrives; do the work after the last question, or store its result with ctx.once(key, make)";
}

export class RerunWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #onRepeat: (repeated: RepeatedWork) => void;
  readonly #reported = new BoundedMap<string, void>({ full: "refuse", max: MAX_REPORTS });

  /** `onRepeat` is called once for each handler, question and kind of work. */
  constructor(clock: Pick<Clock, "now">, onRepeat: (repeated: RepeatedWork) => void) {
    this.#clock = clock;
    this.#onRepeat = onRepeat;
  }

  begin(call: Watched): void {
    call.stretch = { work: new Set(), since: this.#clock.now(), kept: 0 };
  }

  /** Records a call's work, such as `logs a message`. Ignores work inside `ctx.once`. */
  note({ stretch }: Watched, work: string): void {
    if (stretch && !stretch.kept) stretch.work.add(work);
  }

  /** Wraps the server's methods that announce changes, so that each announcement is recorded as work. */
  watchServer(call: Watched, { resourceUpdated, listChanged, handlers }: RunningServer): RunningServer {
    const note = () => this.note(call, "announces a change");
    return {
      handlers,
      resourceUpdated(uri, options) {
        note();
        resourceUpdated(uri, options);
      },
      listChanged(list, options) {
        note();
        listChanged(list, options);
      },
    };
  }

  /** Reports the work before a question, and asks the question. Starts a new record when the answer arrives. */
  async ask<T>(call: Watched, key: string, ask: () => Promise<T>): Promise<T> {
    this.#report(call, key);
    try {
      return await ask();
    } finally {
      this.begin(call);
    }
  }

  /** Runs `ctx.once`. The work of `run` is not recorded, because the work is not repeated. */
  async once<T>({ stretch }: Watched, run: () => Promise<T>): Promise<T> {
    const began = this.#clock.now();
    if (stretch) stretch.kept++;
    try {
      return await run();
    } finally {
      if (stretch && !--stretch.kept) stretch.since += this.#clock.now() - began;
    }
  }

  #report({ stretch, method, params: { name, uri } }: Watched, key: string): void {
    if (!stretch) return;
    const spent = Math.round(this.#clock.now() - stretch.since);
    const isSlow = spent >= SLOW_MS;
    const place = `${method} ${JSON.stringify(name ?? uri ?? "")}`;
    const id = JSON.stringify([place, key, ...stretch.work, isSlow]);
    if (!stretch.work.size && !isSlow) return;
    if (this.#reported.has(id) || !this.#reported.set(id)) return;
    this.#onRepeat({ place, key, work: [...stretch.work, ...isSlow ? [`takes ${spent} ms`] : []] });
  }
}
