/**
 * Notifications that belong to no call, collected as they come.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { Notification } from "../client/message.ts";
import type { Watch } from "../client/subscription.ts";

/** An open subscription: iterate over it, `take` a number of notifications, or look at what was `received`. */
export interface Subscription extends Watch, AsyncIterable<Notification>, AsyncDisposable {
  /** All notifications so far. */
  readonly received: readonly Notification[];
  /** The first `count` notifications, as soon as there are so many. Throws if the subscription ends before. */
  take(count: number): Promise<readonly Notification[]>;
}

/** The end of a subscription that is fed. */
export interface Feed {
  push(notification: Notification): void;
  end(result?: Result): void;
  toSubscription(watch: Watch): Subscription;
}

/** A subscription that nobody feeds yet. */
export function createFeed(): Feed {
  const received: Notification[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<Result | undefined>();
  let news = Promise.withResolvers<void>();
  let isOver = false;

  function wake(): void {
    news.resolve();
    news = Promise.withResolvers<void>();
  }

  async function* iterate(): AsyncGenerator<Notification> {
    for (let at = 0;; at++) {
      while (at >= received.length) {
        if (isOver) return;
        await news.promise;
      }
      yield received[at];
    }
  }

  async function take(count: number): Promise<readonly Notification[]> {
    while (received.length < count) {
      if (isOver) {
        throw new Error(`Cannot take ${count} notifications: the subscription ended after ${received.length}`);
      }
      await news.promise;
    }
    return received.slice(0, count);
  }

  return {
    push(notification) {
      received.push(notification);
      wake();
    },
    end(result) {
      isOver = true;
      resolve(result);
      wake();
    },
    toSubscription: (watch) => ({
      ...watch,
      received,
      ended,
      take,
      [Symbol.asyncIterator]: iterate,
      [Symbol.asyncDispose]: watch.close,
    }),
  };
}
