/**
 * Subscriptions to changes at a server.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { Notification } from "./message.ts";

/** The changes to subscribe to. */
export interface SubscriptionFilter {
  /** Changes of the list of tools. */
  readonly toolsListChanged?: boolean;
  /** Changes of the list of prompts. */
  readonly promptsListChanged?: boolean;
  /** Changes of the lists of resources and templates. */
  readonly resourcesListChanged?: boolean;
  /** Changes of these resources, by URI. */
  readonly resourceSubscriptions?: readonly string[];
  /** Keys that extensions define, such as `{ auditIds: ["7"] }`. */
  readonly extensions?: Params;
}

/** An open subscription that calls a function. */
export interface Watch {
  /** The part of the filter that the server accepted. */
  readonly granted: SubscriptionFilter;
  /** Settles when the subscription has ended, with the result of the server if there is one. */
  readonly ended: Promise<Result | undefined>;
  /** Ends the subscription. */
  close(): Promise<void>;
}

/** An open subscription. Iterating takes notifications; of those not taken yet the newest 1,000 are kept. */
export interface Subscription extends Watch, AsyncIterable<Notification>, AsyncDisposable {}

// A server may send more than anybody ever takes.
const MAX_WAITING = 1000;

/** Opens a subscription that keeps its notifications until they are taken. */
export async function toSubscription(
  open: (onChange: (notification: Notification) => void) => Promise<Watch>,
): Promise<Subscription> {
  const waiting: Notification[] = [];
  let news = Promise.withResolvers<void>();
  let isOver = false;
  // Wakes all loops. A loop that finds no notification waits again.
  const wakeLoops = () => {
    news.resolve();
    news = Promise.withResolvers<void>();
  };
  const watch = await open((notification) => {
    if (waiting.length >= MAX_WAITING) waiting.shift();
    waiting.push(notification);
    wakeLoops();
  });
  watch.ended.then(() => {
    isOver = true;
    wakeLoops();
  });

  async function* iterate(): AsyncGenerator<Notification> {
    while (true) {
      // One at a time: a loop that ends early leaves the rest to the next one.
      for (let next = waiting.shift(); next; next = waiting.shift()) yield next;
      if (isOver) return;
      await news.promise;
    }
  }

  return { ...watch, [Symbol.asyncIterator]: iterate, [Symbol.asyncDispose]: watch.close };
}
