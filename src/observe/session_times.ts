/**
 * How long sessions last.
 *
 * @module
 */
import type { SessionEvent } from "../core/call/observer.ts";

/** Maximum sessions whose start is known. The duration of others is not measured. */
const MAX_SESSIONS = 10_000;

/** When each open session was created. */
export class SessionTimes {
  readonly #created = new Map<string, number>();

  /** Returns the seconds that a session has lasted, if it has ended and its start is known. */
  end({ state, transport, id }: SessionEvent): number | undefined {
    // Of the transports whose sessions have no id, stdio has one session only.
    const key = id ?? (transport === "stdio" ? transport : undefined);
    if (key === undefined) return;
    if (state === "created" && this.#created.size < MAX_SESSIONS) this.#created.set(key, performance.now());
    if (state !== "ended") return;
    const since = this.#created.get(key);
    this.#created.delete(key);
    return since === undefined ? undefined : (performance.now() - since) / 1000;
  }
}
