/**
 * Reports, with `--watch` and `--inspect`, that something blocks all calls of a server. The server itself names handlers
 * whose synchronous part does. What runs after an `await` belongs to no handler for certain, so it is reported without a
 * name.
 *
 * @module
 */
import type { Endpoint } from "../host.ts";
import { platform } from "./platform.ts";

/** Milliseconds between two looks at the clock. */
const PERIOD_MS = 100;

/** Milliseconds of delay that are reported. Shorter ones are also caused by garbage collection and other programs. */
const LAG_MS = 100;

/** Milliseconds in which one delay is reported, so that a server under load does not fill the terminal. */
const QUIET_MS = 10_000;

/** Finds delays of the event loop. */
export class LagWatch {
  #last: number;
  /** Milliseconds of the current period that handlers with a name have taken. */
  #namedMs = 0;
  /** Handlers that have started in the current period. */
  #starts = 0;
  /** Whether handlers have started before the current period. The first ones load code. */
  #isWarm = false;
  #quietUntil = -Infinity;

  /** Starts at a time in milliseconds. */
  constructor(now: number) {
    this.#last = now;
  }

  /** Called when a handler starts. */
  start(): void {
    this.#starts++;
  }

  /** Called when a handler with a name has blocked all calls. */
  block(ms: number): void {
    this.#namedMs += ms;
  }

  /**
   * Called after each period, late if something blocks. Returns the warning, if calls have waited for something without a
   * name. `isRunning` tells whether a call runs.
   */
  tick(now: number, isRunning: boolean): string | undefined {
    const lag = Math.round(now - this.#last - PERIOD_MS - this.#namedMs);
    const isBusy = this.#isWarm && (isRunning || this.#starts > 0);
    this.#isWarm ||= this.#starts > 0;
    this.#last = now;
    this.#namedMs = this.#starts = 0;
    // A reload of the file also blocks, but no call waits for it.
    if (!isBusy || lag <= LAG_MS || now < this.#quietUntil) return;
    this.#quietUntil = now + QUIET_MS;
    return `Cannot serve calls: something blocked all of them for ${lag} ms, such as a handler after its first await; ` +
      "split long work with awaits, or move it to a worker thread";
  }
}

/** Prints delays of the event loop while calls run. Does not keep the process alive. */
export function watchLag(endpoints: readonly Endpoint[]): void {
  const watch = new LagWatch(performance.now());
  for (const endpoint of endpoints) {
    endpoint.develop({ start: () => watch.start(), block: (ms) => watch.block(ms) });
  }
  const tick = () => {
    // A server of an older copy of this library has no numbers.
    const isRunning = endpoints.some(({ server }) => (server.stats?.().running ?? 0) > 0);
    const warning = watch.tick(performance.now(), isRunning);
    if (warning !== undefined) console.warn(warning);
    platform.startBackgroundTimer(tick, PERIOD_MS);
  };
  platform.startBackgroundTimer(tick, PERIOD_MS);
}
