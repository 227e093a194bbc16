/**
 * Reports code that blocks the event loop, and therefore all calls. Active with `--watch` and `--inspect`. The server
 * itself reports handlers whose synchronous part blocks. For code after an `await`, the handler is unknown, so the
 * report contains no name.
 */
import type { Endpoint } from "../host.ts";
import { platform } from "./platform.ts";

/** Milliseconds between two checks of the clock. */
const PERIOD_MS = 100;

/** Minimum delay to report, in milliseconds. Garbage collection and other programs also cause shorter delays. */
const LAG_MS = 100;

/** Milliseconds without reports after a report, because a server under load would otherwise fill the terminal. */
const QUIET_MS = 10_000;

export class LagWatch {
  #last: number;
  /** Milliseconds for which handlers that the server names have blocked the event loop in the current period. */
  #namedMs = 0;
  /** The number of handlers that have started in the current period. */
  #starts = 0;
  /** Delays are ignored until a handler has started in an earlier period, because the first handlers load code. */
  #isWarm = false;
  /** Whether a call was running at the end of the last period. */
  #wasRunning = false;
  #quietUntil = -Infinity;

  /** Creates a watch. `now` is the time on the monotonic clock, in milliseconds. */
  constructor(now: number) {
    this.#last = now;
  }

  /** Called when a handler starts. */
  start(): void {
    this.#starts++;
  }

  /** Called when a handler that the server names has blocked the event loop for `ms` milliseconds. */
  block(ms: number): void {
    this.#namedMs += ms;
  }

  /**
   * Called after each period, or later if code blocks the event loop. Returns a warning if calls were delayed and named
   * handlers do not explain the delay. `isRunning` states whether a call is running.
   */
  tick(now: number, isRunning: boolean): string | undefined {
    const lag = Math.round(now - this.#last - PERIOD_MS - this.#namedMs);
    // A call that has blocked until its end is no longer running.
    const isBusy = this.#isWarm && (isRunning || this.#wasRunning || this.#starts > 0);
    this.#isWarm ||= this.#starts > 0;
    this.#wasRunning = isRunning;
    this.#last = now;
    this.#namedMs = this.#starts = 0;
    // Ignore the delay if no call is running. Reloading the file also blocks the event loop, but delays no call.
    if (!isBusy || lag <= LAG_MS || now < this.#quietUntil) return;
    this.#quietUntil = now + QUIET_MS;
    return `Cannot serve calls: code blocked the event loop for ${lag} ms, perhaps a handler after its first await; ` +
      "split long work with awaits, or move the work to a worker thread";
  }
}

/** Prints delays of the event loop while calls are running. Does not keep the process alive. */
export function watchLag(endpoints: readonly Endpoint[]): void {
  const watch = new LagWatch(performance.now());
  for (const endpoint of endpoints) {
    endpoint.develop({ start: () => watch.start(), block: (ms) => watch.block(ms) });
  }
  const tick = () => {
    // `stats` is missing if the server comes from an older copy of this library.
    const isRunning = endpoints.some(({ server }) => (server.stats?.().running ?? 0) > 0);
    const warning = watch.tick(performance.now(), isRunning);
    if (warning !== undefined) console.warn(warning);
    platform.startBackgroundTimer(tick, PERIOD_MS);
  };
  platform.startBackgroundTimer(tick, PERIOD_MS);
}
