/**
 * Reports code that blocks all calls of a server. Active with `--watch` and `--inspect`. The server itself reports
 * handlers whose synchronous part blocks. Code after an `await` cannot be assigned to a handler, so it is reported
 * without a name.
 *
 * @module
 */
import type { Endpoint } from "../host.ts";
import { platform } from "./platform.ts";

/** Milliseconds between two readings of the clock. */
const PERIOD_MS = 100;

/**
 * Minimum length of a delay that is reported, in milliseconds. Garbage collection and other programs cause shorter
 * delays too.
 */
const LAG_MS = 100;

/**
 * Milliseconds after a report during which further delays are not reported. Otherwise a server under load would fill
 * the terminal.
 */
const QUIET_MS = 10_000;

/** Finds delays of the event loop. */
export class LagWatch {
  #last: number;
  /** Milliseconds of the current period for which named handlers have blocked. */
  #namedMs = 0;
  /** Handlers that have started in the current period. */
  #starts = 0;
  /**
   * Whether handlers have started before the current period. The first handlers are ignored, because they load code.
   */
  #isWarm = false;
  #quietUntil = -Infinity;

  /** Creates a watch. `now` is the current time in milliseconds of the monotonic clock. */
  constructor(now: number) {
    this.#last = now;
  }

  /** Called when a handler starts. */
  start(): void {
    this.#starts++;
  }

  /** Called when a named handler has blocked all calls for `ms` milliseconds. */
  block(ms: number): void {
    this.#namedMs += ms;
  }

  /**
   * Called after each period, or later if code blocks the event loop. Returns the warning if calls have waited and no
   * single call is known to have blocked them. `isRunning` is whether a call is running.
   */
  tick(now: number, isRunning: boolean): string | undefined {
    const lag = Math.round(now - this.#last - PERIOD_MS - this.#namedMs);
    const isBusy = this.#isWarm && (isRunning || this.#starts > 0);
    this.#isWarm ||= this.#starts > 0;
    this.#last = now;
    this.#namedMs = this.#starts = 0;
    // Ignore the delay if no call is running. A reload of the file also blocks, but no call waits for it.
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
    // `stats` is missing if the server uses an older copy of this library.
    const isRunning = endpoints.some(({ server }) => (server.stats?.().running ?? 0) > 0);
    const warning = watch.tick(performance.now(), isRunning);
    if (warning !== undefined) console.warn(warning);
    platform.startBackgroundTimer(tick, PERIOD_MS);
  };
  platform.startBackgroundTimer(tick, PERIOD_MS);
}
