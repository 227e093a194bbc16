/**
 * Counts the subscribers to each URI. Calls the provider's hooks when the first subscription begins and when the last
 * subscription ends.
 */
import { INTERNALS } from "../../core/internals.ts";
import { delay } from "../../core/kit/deadline.ts";
import type { ChangeNotifier } from "../call/context.ts";
import type { Account, Holding } from "../capacity/account.ts";
import type { Change, Changes } from "./changes.ts";
import type { FeatureParts } from "./feature_parts.ts";

export interface SubscriptionHooks {
  /** Called when a URI gets its first subscriber. */
  readonly subscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /** Called when the last subscription to a URI has ended. */
  readonly unsubscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /**
   * Charges a client for a URI, until the last subscription to the URI has ended. Returns `undefined` if there is no
   * room; the hooks are then not called for this subscriber.
   */
  readonly [INTERNALS]?: (client: SubscribedClient) => Holding | undefined;
}

/** The client that is charged for a subscription. */
export interface SubscribedClient {
  readonly account: Account;
  readonly limits: FeatureParts["limits"];
}

/** A handler that serves a URI. */
export interface Serving {
  readonly hooks?: SubscriptionHooks;
  /** Key of a provider without a scheme. The changes that other providers announce do not count for this handler. */
  readonly owner?: string;
}

/** The state of a URI that has subscribers, or whose hook is still running. */
interface Entry {
  readonly hooks: SubscriptionHooks;
  readonly owner?: string;
  /** The charge for the URI, if the hooks charge for it. */
  place?: Holding;
  count: number;
  /** Whether the most recently called hook is `subscribe`. */
  isOn: boolean;
  /** Whether one of the provider's hooks is running. */
  isBusy: boolean;
}

type Core = Pick<FeatureParts, "report" | "ticker">;

export class Subscribers {
  readonly #core: Core;
  readonly #toServer: (owner: string | undefined) => ChangeNotifier;
  // Callers may get a URI from different providers, and a provider may be replaced while a URI has subscribers.
  // Bound: `connections.streams` and `streams.watchedUris`.
  readonly #entries = new WeakMap<SubscriptionHooks, Map<string, Entry>>();

  readonly #changes?: Pick<Changes, "listeners">;
  // Bound: `connections.streams` and `streams.watchedUris`.
  readonly #counts = new Set<() => unknown>();
  readonly #onChange = (change: Change): void => {
    if (change.kind === "list" && change.feature === "resources") void this.#countAgain();
  };
  #isCounting = false;
  #isOutdated = false;

  /** The hooks receive what `toServer` returns for their owner, so that they can announce changes. */
  constructor(
    core: Core,
    toServer: (owner: string | undefined) => ChangeNotifier,
    changes?: Pick<Changes, "listeners">,
  ) {
    this.#core = core;
    this.#toServer = toServer;
    this.#changes = changes;
  }

  /**
   * Counts a subscriber of the handlers that `find` returns, now and after each change of the list of resources. Returns
   * a function that removes the subscriber, and that may be called more than once.
   */
  watch(
    uri: string,
    client: SubscribedClient,
    find: () => readonly Serving[] | Promise<readonly Serving[]>,
  ): () => void {
    // Bound: the number of providers.
    let counted = new Map<SubscriptionHooks, () => void>();
    let latest = 0;
    const apply = (serving: readonly Serving[]) => {
      const before = counted;
      counted = new Map();
      for (const { hooks, owner } of serving) {
        const remove = hooks && (before.get(hooks) ?? this.add(uri, hooks, { owner, client }));
        if (hooks && remove) counted.set(hooks, remove);
      }
      for (const [hooks, remove] of before) if (!counted.has(hooks)) remove();
    };
    const count = () => {
      const number = ++latest;
      const serving = find();
      if (!(serving instanceof Promise)) return apply(serving);
      // If the list of a provider fails, the handlers so far stay counted.
      return serving.then((serving) => number === latest && apply(serving), () => {});
    };
    if (!this.#counts.size) this.#changes?.listeners.add(this.#onChange);
    this.#counts.add(count);
    void count();
    return () => {
      latest++;
      apply([]);
      this.#counts.delete(count);
      if (!this.#counts.size) this.#changes?.listeners.delete(this.#onChange);
    };
  }

  /**
   * Counts one subscriber after the other, because `find` may call functions of providers. Rests in between, because
   * clients can have a million subscriptions, and a provider can announce changes without end.
   */
  async #countAgain(): Promise<void> {
    this.#isOutdated = true;
    if (this.#isCounting) return;
    this.#isCounting = true;
    const { ticker } = this.#core;
    while (this.#isOutdated) {
      this.#isOutdated = false;
      let since = ticker.clock.now();
      for (const count of [...this.#counts]) {
        // A subscription may end meanwhile.
        if (!this.#counts.has(count)) continue;
        await count();
        // On Workers, a timer ends with its request.
        if (ticker.isPerRequest || ticker.clock.now() - since < TURN_MS) continue;
        await delay(TURN_MS, { clock: ticker });
        since = ticker.clock.now();
      }
    }
    this.#isCounting = false;
  }

  /**
   * Returns a function that removes the subscriber, and that must be called only once. Returns `undefined` if the client
   * has no room for the URI. `owner` is the key of a provider without a scheme.
   */
  add(
    uri: string,
    hooks: SubscriptionHooks,
    { owner, client }: { readonly owner?: string; readonly client?: SubscribedClient } = {},
  ): (() => void) | undefined {
    const entries = this.#entries.get(hooks) ?? new Map<string, Entry>();
    const entry = entries.get(uri) ?? { hooks, owner, count: 0, isOn: false, isBusy: false };
    const { [INTERNALS]: charge } = hooks;
    if (charge && client) {
      if (entry.count) entry.place?.use(client.account);
      else if (!(entry.place = charge(client))) return;
    }
    this.#entries.set(hooks, entries.set(uri, entry));
    entry.count++;
    this.#runHooks(uri, entry);
    return () => {
      if (!--entry.count) entry.place?.end();
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

/** Maximum time in milliseconds for which subscribers are counted before other requests are served for as long. */
const TURN_MS = 20;
