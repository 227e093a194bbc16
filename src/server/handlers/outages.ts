/**
 * Remembers which sources of lists fail. A list of several sources goes without a source that fails.
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import type { Call } from "../call/call.ts";
import type { Context } from "../call/context.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";

type Caller = Context["caller"];

/** Errors of sources that report their outages themselves. */
export const reportedErrors: WeakSet<object> = new WeakSet();

export class Outages {
  // Bound: the number of sources.
  readonly #reported = new Set<string>();
  // Bound: the number of sources.
  readonly #missed = new Map<string, BoundedMap<Caller, void>>();

  /** Returns the outages of the call's path of the server, which the lists and the search for a URI share. */
  static of({ state }: Pick<FeatureParts, "state">, { host: { server } }: Call): Outages {
    const byPath = state.slot(Outages, () => new WeakMap<object, Outages>());
    const outages = byPath.get(server) ?? new Outages();
    byPath.set(server, outages);
    return outages;
  }

  /** Returns whether the failure of a source must be reported, because it is the first one since the source worked. */
  begin(source: string): boolean {
    if (this.#reported.has(source)) return false;
    this.#reported.add(source);
    return true;
  }

  /** Call when a source has been listed to its last page. */
  end(source: string): void {
    this.#reported.delete(source);
  }

  /** Remembers that a caller has got a list without the source. */
  miss(source: string, caller: Caller): void {
    const callers = this.#missed.get(source) ?? new BoundedMap<Caller, void>({ full: "evict", max: MAX_CALLERS });
    this.#missed.set(source, callers);
    callers.set(caller, undefined);
  }

  /**
   * Returns whether the last list of this caller was without the source, and forgets all such callers. Other callers do
   * not count: a source can fail for one caller only, and would then seem to come back with each list of another caller.
   */
  takeMissed(source: string, caller: Caller): boolean {
    return !!this.#missed.get(source)?.has(caller) && this.#missed.delete(source);
  }
}

/** Maximum number of callers per source. One caller that gets the source again suffices to notify all of them. */
const MAX_CALLERS = 1000;
