/**
 * Measures how long sessions last.
 */
import type { SessionEvent } from "../server/call/observer.ts";

/** Maximum number of open sessions whose creation time is kept. The duration of further sessions is not measured. */
const MAX_SESSIONS = 10_000;

export class SessionTimes {
  // Bound: `MAX_SESSIONS`.
  readonly #created = new Map<string, number>();

  /** Returns a duration in seconds. `undefined` if the session has not ended, or its creation time is unknown. */
  end({ state, transport, id }: SessionEvent): number | undefined {
    // Without an id, only a stdio session can be identified, because stdio has a single session.
    const key = id ?? (transport === "stdio" ? transport : undefined);
    if (key === undefined) return;
    if (state === "created" && this.#created.size < MAX_SESSIONS) this.#created.set(key, performance.now());
    if (state !== "ended") return;
    const since = this.#created.get(key);
    this.#created.delete(key);
    return since === undefined ? undefined : (performance.now() - since) / 1000;
  }
}
