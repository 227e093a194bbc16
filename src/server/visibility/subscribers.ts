/**
 * Counts the subscribers to each URI. Calls the provider's hooks when the first subscription begins and when the last
 * subscription ends.
 */
import type { ChangeNotifier } from "../call/context.ts";
import type { Reporter } from "../call/observer.ts";

export interface SubscriptionHooks {
  /** Called when a URI gets its first subscriber. */
  readonly subscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /** Called when the last subscription to a URI has ended. */
  readonly unsubscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
}

/** The state of a URI that has subscribers, or whose hook is still running. */
interface Entry {
  readonly hooks: SubscriptionHooks;
  count: number;
  /** Whether the most recently called hook is `subscribe`. */
  isOn: boolean;
  /** Whether one of the provider's hooks is running. */
  isBusy: boolean;
}

export class Subscribers {
  readonly #core: Reporter;
  readonly #server: ChangeNotifier;
  // Bound: `connections.streams` and `streams.watchedUris`.
  readonly #entries = new Map<string, Entry>();

  /** The hooks receive `server`, so that they can announce changes. */
  constructor(core: Reporter, server: ChangeNotifier) {
    this.#core = core;
    this.#server = server;
  }

  /** Returns a function that removes the subscriber, and that must be called only once. */
  add(uri: string, hooks: SubscriptionHooks): () => void {
    const known = this.#entries.get(uri);
    // Create a new entry if the provider was replaced while the URI had subscribers.
    const entry = known?.hooks === hooks ? known : { hooks, count: 0, isOn: false, isBusy: false };
    this.#entries.set(uri, entry);
    entry.count++;
    this.#runHooks(uri, entry);
    return () => {
      entry.count--;
      this.#runHooks(uri, entry);
    };
  }

  // Calls one hook at a time, so that `unsubscribe` is never called before a slow `subscribe` has ended. A subscription
  // that begins and ends while a hook runs causes no further calls.
  async #runHooks(uri: string, entry: Entry): Promise<void> {
    if (entry.isBusy) return;
    entry.isBusy = true;
    while (entry.isOn !== entry.count > 0) {
      entry.isOn = !entry.isOn;
      const { hooks } = entry;
      try {
        await (entry.isOn ? hooks.subscribe?.(uri, this.#server) : hooks.unsubscribe?.(uri, this.#server));
      } catch (error) {
        this.#core.report(error, { subject: uri });
      }
    }
    entry.isBusy = false;
    if (!entry.count && this.#entries.get(uri) === entry) this.#entries.delete(uri);
  }
}
