/**
 * The subscribers of an extension on one server, for each key and topic.
 *
 * @module
 */
import type { Published, WantedTopics } from "../core/call/lives.ts";
import type { ChangeNotifier } from "../core/call/context.ts";
import type { Reporter } from "../core/call/observer.ts";
import type { Awaitable } from "../core/store.ts";
import { Subscribers, type SubscriptionHooks } from "../core/visibility/subscribers.ts";

/** The parts of a server that {@linkcode Topics} needs. */
export interface TopicHost {
  readonly core: Reporter;
  readonly server: ChangeNotifier;
}

/**
 * Called when a topic gets its first subscriber. Returns a function that is called after the topic has lost its last
 * subscriber.
 */
type Watch = (topic: string) => Awaitable<(() => unknown) | void>;

/** Called with each notification of a topic. */
export type Deliver = (published: Published) => void;

/** The subscribers of an extension on one server. */
export class Topics {
  readonly #listeners = new Map<string, Set<Deliver>>();
  readonly #subscribers: Subscribers;
  readonly #hooks: ReadonlyMap<string, SubscriptionHooks | undefined>;

  /** `watched` contains, for each key, the function to call when a topic gets its first subscriber. */
  constructor({ core, server }: TopicHost, watched: ReadonlyMap<string, Watch | undefined>) {
    this.#subscribers = new Subscribers(core, server);
    this.#hooks = new Map([...watched].map(([key, watch]) => [key, watch && toHooks(key, watch)]));
  }

  /** Whether any topic has a subscriber. */
  get isUsed(): boolean {
    return this.#listeners.size > 0;
  }

  /** Calls `deliver` for each notification of these topics. Returns a function that unsubscribes. */
  subscribe({ key, topics }: WantedTopics, deliver: Deliver): () => void {
    const stops = topics.map((topic) => this.#add(toName(key, topic), key, topic, deliver));
    return () => {
      for (const stop of stops.splice(0)) stop();
    };
  }

  /** Notifies the subscribers of a topic. */
  publish(key: string, published: Published): void {
    for (const deliver of [...this.#listeners.get(toName(key, published.topic)) ?? []]) deliver(published);
  }

  #add(name: string, key: string, topic: string, deliver: Deliver): () => void {
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known.add(deliver));
    const hooks = this.#hooks.get(key);
    const leave = hooks && this.#subscribers.add(topic, hooks);
    return () => {
      known.delete(deliver);
      if (!known.size && this.#listeners.get(name) === known) this.#listeners.delete(name);
      leave?.();
    };
  }
}

function toName(key: string, topic: string): string {
  return `${key} ${topic}`;
}

// Returns separate hooks for each key, because two keys may have the same topic.
function toHooks(key: string, watch: Watch): SubscriptionHooks {
  const stops = new Map<string, (() => unknown) | undefined>();
  return {
    async subscribe(topic) {
      const stop: unknown = await watch(topic);
      if (stop !== undefined && typeof stop !== "function") {
        throw new TypeError(
          `Cannot watch ${key}: watch did not return a function; return a function that stops watching, or nothing`,
        );
      }
      stops.set(topic, stop as (() => unknown) | undefined); // The cast is safe, because the check above throws for any other value.
    },
    async unsubscribe(topic) {
      const stop = stops.get(topic);
      stops.delete(topic);
      await stop?.();
    },
  };
}
