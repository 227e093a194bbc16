/**
 * Client subscriptions that record the notifications that they receive.
 */
import type { Notification } from "../client/message.ts";
import { type Subscription, toSubscription, type Watch } from "../client/subscription.ts";

/** An open client subscription that records the notifications that it receives. */
export interface TestSubscription extends Subscription {
  /** All notifications received so far, including notifications that the test has not iterated over. */
  readonly received: readonly Notification[];
  /** Resolves with the first `count` notifications. Rejects if the subscription ends before they have arrived. */
  take(count: number): Promise<readonly Notification[]>;
}

export async function createSubscription(
  open: (onChange: (notification: Notification) => void) => Promise<Watch>,
): Promise<TestSubscription> {
  const received: Notification[] = [];
  let next = Promise.withResolvers<void>();
  let isOver = false;

  function wake(): void {
    next.resolve();
    next = Promise.withResolvers<void>();
  }

  async function take(count: number): Promise<readonly Notification[]> {
    while (received.length < count) {
      if (isOver) {
        throw new Error(
          `Cannot take ${count} notifications: the subscription ended after ${received.length} notifications`,
        );
      }
      await next.promise;
    }
    return received.slice(0, count);
  }

  const subscription = await toSubscription((onChange) =>
    open((notification) => {
      received.push(notification);
      onChange(notification);
      wake();
    })
  );
  subscription.ended.then(() => {
    isOver = true;
    wake();
  });
  return { ...subscription, received, take };
}
