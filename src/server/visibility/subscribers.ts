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
  readonly owner?: string;
  count: number;
  /** Whether the most recently called hook is `subscribe`. */
  isOn: boolean;
  /** Whether one of the provider's hooks is running. */
  isBusy: boolean;
}

export class Subscribers {
  readonly #core: Reporter;
  readonly #toServer: (owner: string | undefined) => ChangeNotifier;
  // Callers may get a URI from different providers, and a provider may be replaced while a URI has subscribers.
  // Bound: `connections.streams` and `streams.watchedUris`.
  readonly #entries = new WeakMap<SubscriptionHooks, Map<string, Entry>>();

  /** The hooks receive what `toServer` returns for their owner, so that they can announce changes. */
  constructor(core: Reporter, toServer: (owner: string | undefined) => ChangeNotifier) {
    this.#core = core;
    this.#toServer = toServer;
  }

  /**
   * Returns a function that removes the subscriber, and that must be called only once. `owner` is the key of a provider
   * without a scheme.
   */
  add(uri: string, hooks: SubscriptionHooks, owner?: string): () => void {
    const entries = this.#entries.get(hooks) ?? new Map<string, Entry>();
    const entry = entries.get(uri) ?? { hooks, owner, count: 0, isOn: false, isBusy: false };
    this.#entries.set(hooks, entries.set(uri, entry));
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
      const { hooks, owner } = entry;
      try {
        const server = this.#toServer(owner);
        await (entry.isOn ? hooks.subscribe?.(uri, server) : hooks.unsubscribe?.(uri, server));
      } catch (error) {
        this.#core.report(error, { subject: uri });
      }
    }
    entry.isBusy = false;
    if (!entry.count) this.#entries.get(entry.hooks)?.delete(uri);
  }
}
