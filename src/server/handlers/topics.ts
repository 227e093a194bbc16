/**
 * The subscribers of an extension on one server, for each key and topic.
 */
import type { Published, WantedTopics } from "../call/lives.ts";
import type { ChangeNotifier, Context } from "../call/context.ts";
import type { Reporter } from "../call/observer.ts";
import type { Awaitable } from "../engine/store.ts";
import { Subscribers, type SubscriptionHooks } from "../visibility/subscribers.ts";

/** The parts of a server that {@linkcode Topics} needs. */
export interface TopicHost {
  readonly core: Reporter;
  readonly server: ChangeNotifier;
}

/**
 * Called when a topic gets its first subscriber, whose context is `ctx`. Returns a function that is called after the
 * topic has lost its last subscriber.
 */
type Watch = (topic: string, ctx: Context) => Awaitable<(() => unknown) | void>;

/** Returns the current notification of a topic, or `undefined` if there is none. */
type Load = (topic: string, ctx: Context) => Promise<Published | undefined>;

/** The functions of an extension for the topics of one key. */
interface KeyParts {
  readonly watch?: Watch;
  readonly load?: Load;
}

/** Called with each notification of a topic. */
export type Deliver = (published: Published) => void;

/** The subscribers of an extension on one server. */
export class Topics {
  readonly #listeners = new Map<string, Set<Deliver>>();
  readonly #subscribers: Subscribers;
  readonly #hooks: ReadonlyMap<string, SubscriptionHooks | undefined>;
  /** The contexts of the first subscribers of topics whose `watch` has not been called yet. */
  readonly #first = new Map<string, Context>();
  readonly #core: Reporter;
  /** For each watched topic with `load`, a function that loads its notification. */
  readonly #loaders = new Map<string, () => void>();

  /** `keys` contains the functions of the extension for each key. */
  constructor({ core, server }: TopicHost, keys: ReadonlyMap<string, KeyParts>) {
    this.#core = core;
    this.#subscribers = new Subscribers(core, server);
    this.#hooks = new Map([...keys].map(([key, parts]) => [key, this.#toHooks(key, parts)]));
  }

  /** Whether any topic has a subscriber. */
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

  /** Notifies the subscribers of a topic. */
  publish(key: string, published: Published): void {
    for (const deliver of [...this.#listeners.get(toName(key, published.topic)) ?? []]) deliver(published);
  }

  /** Loads the current notification of a topic, and passes it to the subscribers. */
  load(key: string, topic: string): void {
    this.#loaders.get(toName(key, topic))?.();
  }

  #add(topic: string, { key, ctx }: WantedTopics, deliver: Deliver): () => void {
    const name = toName(key, topic);
    const known = this.#listeners.get(name) ?? new Set();
    const hooks = this.#hooks.get(key);
    if (hooks && !known.size) this.#first.set(name, ctx);
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
    const stops = new Map<string, (() => unknown) | undefined>();
    return {
      subscribe: async (topic) => {
        const name = toName(key, topic);
        const ctx = this.#first.get(name);
        this.#first.delete(name);
        // If all subscribers have left since, there is nothing to watch.
        if (!ctx) return;
        if (load) this.#loaders.set(name, this.#toLoader(key, () => load(topic, ctx), topic));
        const stop: unknown = await watch?.(topic, ctx);
        if (stop !== undefined && typeof stop !== "function") {
          throw new TypeError(
            `Cannot watch ${key}: watch did not return a function; return a function that stops watching, or nothing`,
          );
        }
        stops.set(topic, stop as (() => unknown) | undefined); // The cast is safe, because the check above throws for any other value.
        this.load(key, topic);
      },
      unsubscribe: async (topic) => {
        this.#loaders.delete(toName(key, topic));
        const stop = stops.get(topic);
        stops.delete(topic);
        await stop?.();
      },
    };
  }

  // Loads one notification after another. A change during a load causes one further load, however many changes follow.
  #toLoader(key: string, load: () => Promise<Published | undefined>, topic: string): () => void {
    let isLoading = false;
    let isStale = false;
    const loadAll = async () => {
      while (isStale) {
        isStale = false;
        try {
          const published = await load();
          if (published) this.publish(key, published);
        } catch (error) {
          this.#core.report(error, { subject: topic });
        }
      }
      isLoading = false;
    };
    return () => {
      isStale = true;
      if (isLoading) return;
      isLoading = true;
      void loadAll();
    };
  }
}

function toName(key: string, topic: string): string {
  return `${key} ${topic}`;
}
