/**
 * Warns, in development, about work before a question. In revisions without sessions, the handler runs again from the
 * top when the answer arrives, which repeats this work.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import type { RunningServer } from "./context.ts";
import type { Params } from "../../protocol/jsonrpc.ts";
import type { Clock } from "../capacity/timers.ts";

/** Work that a handler does before a question, and repeats when the answer arrives. */
export interface RepeatedWork {
  /** Method and subject of the call, such as `tools/call "order"`. */
  readonly place: string;
  /** Key of the question. */
  readonly key: string;
  /** Descriptions of the work, such as `logs a message`. */
  readonly work: readonly string[];
}

/** Work of a handler since it started, or since its last question was answered. */
export interface Stretch {
  /** Descriptions such as `logs a message`. */
  readonly work: Set<string>;
  /** Start time in milliseconds. Time spent in `ctx.once` moves it forward, because that work is not repeated. */
  since: number;
  /** Number of `ctx.once` calls that are running. */
  kept: number;
}

/** A call that is watched. */
interface Watched {
  stretch?: Stretch;
  readonly method: string;
  readonly params: Params;
}

/** Milliseconds of work above which the repetition is reported. */
const SLOW_MS = 100;

/** Maximum number of reports to remember, so that each report is printed only once. */
const MAX_REPORTS = 1000;

/** Formats the warning with its remedy. */
export function toWarning({ place, key, work }: RepeatedWork): string {
  return `Cannot run ${place} without repeating work: before the question ${JSON.stringify(key)} it ${
    work.join(", ")
  }, and ` +
    "again when the answer arrives; do this after the last question, or keep its value with ctx.once(key, make)";
}

/** Watches all calls of a server in development. */
export class RerunWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #onRepeat: (repeated: RepeatedWork) => void;
  readonly #reported = new Set<string>();

  /** Creates a watch that calls `onRepeat` once for each kind of repeated work. */
  constructor(clock: Pick<Clock, "now">, onRepeat: (repeated: RepeatedWork) => void) {
    this.#clock = clock;
    this.#onRepeat = onRepeat;
  }

  /** Starts to record the work of a call. */
  begin(call: Watched): void {
    call.stretch = { work: new Set(), since: this.#clock.now(), kept: 0 };
  }

  /** Records work of a call, such as `logs a message`. */
  note({ stretch }: Watched, work: string): void {
    if (stretch && !stretch.kept) stretch.work.add(work);
  }

  /** Wraps the methods of a server that announce changes. The wrappers record each call as work. */
  watchServer(call: Watched, { resourceUpdated, listChanged, handlers }: RunningServer): RunningServer {
    const note = () => this.note(call, "announces a change");
    return {
      handlers,
      resourceUpdated(uri) {
        note();
        resourceUpdated(uri);
      },
      listChanged(list, options) {
        note();
        listChanged(list, options);
      },
    };
  }

  /** Asks a question, and reports the work before it. The answer starts a new record. */
  async ask<T>(call: Watched, key: string, ask: () => Promise<T>): Promise<T> {
    this.#report(call, key);
    try {
      return await ask();
    } finally {
      this.begin(call);
    }
  }

  /** Runs `ctx.once`. The work inside does not count, because it is not repeated. */
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
    if (this.#reported.has(id) || this.#reported.size >= MAX_REPORTS) return;
    this.#reported.add(id);
    this.#onRepeat({ place, key, work: [...stretch.work, ...isSlow ? [`takes ${spent} ms`] : []] });
  }
}
