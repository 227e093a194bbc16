/**
 * Changes at the server that a client wants to hear of.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { Notification } from "./message.ts";

/** Which changes a client wants to hear of. */
export interface Filter {
  /** Tools came or went. */
  readonly toolsListChanged?: boolean;
  /** Prompts came or went. */
  readonly promptsListChanged?: boolean;
  /** Resources or templates came or went. */
  readonly resourcesListChanged?: boolean;
  /** The URIs of resources whose content is watched. */
  readonly resourceSubscriptions?: readonly string[];
}

/** An open subscription, whose notifications go to a function. */
export interface Watch {
  /** What the server agreed to tell. */
  readonly granted: Filter;
  /** Settles when the subscription is over; with the server's last word, if there was one. */
  readonly ended: Promise<Result | undefined>;
  /** Ends the subscription. */
  close(): Promise<void>;
}

/** An open subscription. Iterate over it once: what was taken is gone, what was not yet is kept. */
export interface Subscription extends Watch, AsyncIterable<Notification>, AsyncDisposable {}

/** Keeps the notifications of a subscription until they are taken. */
export async function toSubscription(
  open: (onChange: (notification: Notification) => void) => Promise<Watch>,
): Promise<Subscription> {
  const waiting: Notification[] = [];
  let news = Promise.withResolvers<void>();
  let isOver = false;
  const watch = await open((notification) => {
    waiting.push(notification);
    news.resolve();
  });
  watch.ended.then(() => {
    isOver = true;
    news.resolve();
  });

  async function* iterate(): AsyncGenerator<Notification> {
    while (true) {
      // One at a time: a loop that ends early leaves the rest to the next one.
      for (let next = waiting.shift(); next; next = waiting.shift()) yield next;
      if (isOver) return;
      await news.promise;
      news = Promise.withResolvers<void>();
    }
  }

  return { ...watch, [Symbol.asyncIterator]: iterate, [Symbol.asyncDispose]: watch.close };
}
