/**
 * The subscribers of an extension on one server, for each key and topic.
 */
import type { Published, WantedTopics } from "../call/lives.ts";
import type { ChangeNotifier, Context } from "../call/context.ts";
import type { Awaitable } from "../engine/store.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { Subscribers, type SubscriptionHooks } from "../visibility/subscribers.ts";
import { type Deliver, WatchedTopic } from "./watched_topic.ts";

export interface TopicHost {
  readonly core: Pick<FeatureParts, "report" | "ticker">;
  readonly server: ChangeNotifier;
}

/**
 * Called when a topic gets its first subscriber, whose context is `ctx`. Returns a function that is called after the
 * topic has lost its last subscriber.
 */
type Watch = (topic: string, ctx: Context) => Awaitable<(() => unknown) | void>;

/** Returns the current notification of a topic, or `undefined` if there is none. */
type Load = (topic: string, ctx: Context) => Promise<Published | undefined>;

interface KeyParts {
  readonly watch?: Watch;
  readonly load?: Load;
}

/** The subscribers of an extension on one server. */
// Bound: `connections.streams` and `streams.watchedUris`.
export class Topics {
  readonly #listeners = new Map<string, Set<Deliver>>();
  readonly #subscribers: Subscribers;
  readonly #hooks: ReadonlyMap<string, SubscriptionHooks | undefined>;
  /** The contexts of the first subscribers of topics whose `watch` has not been called yet. */
  readonly #first = new Map<string, Context>();
  readonly #core: TopicHost["core"];
  /** The topics with subscribers whose extension has `watch` or `load`. */
  readonly #watched = new Map<string, WatchedTopic>();

  constructor({ core, server }: TopicHost, keys: ReadonlyMap<string, KeyParts>) {
    this.#core = core;
    this.#subscribers = new Subscribers(core, () => server);
    this.#hooks = new Map([...keys].map(([key, parts]) => [key, this.#toHooks(key, parts)]));
  }

  get isUsed(): boolean {
    return this.#listeners.size > 0;
  }

  /** Calls `deliver` for each notification of these topics. Returns a function that unsubscribes. */
  subscribe(wanted: WantedTopics, deliver: Deliver): () => void {
    const stops = wanted.topics.map((topic) => this.#add(topic, wanted, deliver));
    return () => {
      for (const stop of stops.splice(0)) stop();
    };
  }

  publish(key: string, published: Published): void {
    const name = toName(key, published.topic);
    this.#watched.get(name)?.overtake(published);
    this.#deliver(name, published);
  }

  /** Loads the current notification of a topic, and passes it to the subscribers. */
  load(key: string, topic: string): void {
    this.#watched.get(toName(key, topic))?.load();
  }

  loadAll(): void {
    for (const watched of this.#watched.values()) watched.load();
  }

  #deliver(name: string, published: Published, to?: Iterable<Deliver>): void {
    const all = this.#listeners.get(name) ?? new Set();
    for (const deliver of [...to ?? all]) if (all.has(deliver)) deliver(published);
  }

  #add(topic: string, { key, ctx }: WantedTopics, deliver: Deliver): () => void {
    const name = toName(key, topic);
    const known = this.#listeners.get(name) ?? new Set();
    const hooks = this.#hooks.get(key);
    if (hooks && !known.size) this.#first.set(name, ctx);
    // The state of the topic may have changed since the subscription was granted.
    else this.#watched.get(name)?.load(deliver);
    this.#listeners.set(name, known.add(deliver));
    const leave = hooks && this.#subscribers.add(topic, hooks);
    return () => {
      known.delete(deliver);
      if (!known.size && this.#listeners.get(name) === known) {
        this.#listeners.delete(name);
        this.#first.delete(name);
      }
      leave?.();
    };
  }

  // Returns separate hooks for each key, because two keys may have the same topic.
  #toHooks(key: string, { watch, load }: KeyParts): SubscriptionHooks | undefined {
    if (!watch && !load) return;
    return {
      subscribe: (topic) => {
        const name = toName(key, topic);
        const ctx = this.#first.get(name);
        this.#first.delete(name);
        // If all subscribers have left since, there is nothing to watch.
        if (!ctx) return;
        this.#watched.set(
          name,
          new WatchedTopic({
            key,
            clock: this.#core.ticker.clock,
            watch: watch && (() => watch(topic, ctx)),
            load: load && (() => load(topic, ctx)),
            deliver: (published, to) => this.#deliver(name, published, to),
            report: (error) => void this.#core.report(error, { subject: topic }),
          }),
        );
      },
      unsubscribe: async (topic) => {
        const name = toName(key, topic);
        const watched = this.#watched.get(name);
        this.#watched.delete(name);
        await watched?.end();
      },
    };
  }
}

function toName(key: string, topic: string): string {
  return `${key} ${topic}`;
}
