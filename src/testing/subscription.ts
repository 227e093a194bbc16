/**
 * Notifications that belong to no call, collected as they come.
 *
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";

/** Something the server told without being asked. */
export interface Notification {
  /** Such as `notifications/progress`. */
  readonly method: string;
  /** What it says; empty if it says no more than its name. */
  readonly params: Params;
}

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

/** An open subscription: iterate over it, `take` a number of notifications, or look at what was `received`. */
export interface Subscription extends AsyncIterable<Notification>, AsyncDisposable {
  /** What the server agreed to tell. */
  readonly granted: Filter;
  /** All notifications so far. */
  readonly received: readonly Notification[];
  /** Settles when the subscription is over; with the server's last word, if there was one. */
  readonly ended: Promise<Result | undefined>;
  /** The first `count` notifications, as soon as there are so many. Throws if the subscription ends before. */
  take(count: number): Promise<readonly Notification[]>;
  /** Ends the subscription. */
  close(): Promise<void>;
}

/** The end of a subscription that is fed. */
export interface Feed {
  push(notification: Notification): void;
  end(result?: Result): void;
  toSubscription(granted: Filter, close: () => Promise<void>): Subscription;
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
    toSubscription: (granted, close) => ({
      granted,
      received,
      ended,
      take,
      close,
      [Symbol.asyncIterator]: iterate,
      [Symbol.asyncDispose]: close,
    }),
  };
}
