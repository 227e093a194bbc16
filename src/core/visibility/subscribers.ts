/**
 * Counts the subscribers of each URI, and calls the hooks of its provider for the first and the last subscriber.
 *
 * @module
 */
import type { ChangeNotifier } from "../call/context.ts";
import type { Reporter } from "../call/observer.ts";

/**
 * Functions of a provider that are called when a URI gets its first subscriber, and when it loses its last subscriber.
 */
export interface SubscriptionHooks {
  /** Called for the first subscriber of a URI. */
  readonly subscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /** Called when the last subscriber of a URI has left. */
  readonly unsubscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
}

/** A URI that has a subscriber, or had one until recently. */
interface Entry {
  readonly hooks: SubscriptionHooks;
  count: number;
  /** Whether the last call was `subscribe`, and not `unsubscribe`. */
  isOn: boolean;
  /** Whether a hook of the provider is running. */
  isBusy: boolean;
}

/** The subscribers of a server whose URIs have a provider with hooks. */
export class Subscribers {
  readonly #core: Reporter;
  readonly #server: ChangeNotifier;
  readonly #entries = new Map<string, Entry>();

  /** Creates an empty set of subscribers. */
  constructor(core: Reporter, server: ChangeNotifier) {
    this.#core = core;
    this.#server = server;
  }

  /** Adds a subscriber of a URI. Returns the function that removes it, which must be called once. */
  add(uri: string, hooks: SubscriptionHooks): () => void {
    const known = this.#entries.get(uri);
    // Start a new entry if a provider was replaced while its URI had subscribers.
    const entry = known?.hooks === hooks ? known : { hooks, count: 0, isOn: false, isBusy: false };
    this.#entries.set(uri, entry);
    entry.count++;
    this.#settle(uri, entry);
    return () => {
      entry.count--;
      this.#settle(uri, entry);
    };
  }

  // Call hooks one after another, so that `unsubscribe` never overtakes a slow `subscribe`. Subscribers that come and
  // go in the meantime cause no calls.
  async #settle(uri: string, entry: Entry): Promise<void> {
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
