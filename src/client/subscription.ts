/**
 * Subscriptions to changes on a server.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { Notification } from "./message.ts";

/** The changes to subscribe to. */
export interface SubscriptionFilter {
  /** Whether to subscribe to changes to the list of tools. */
  readonly toolsListChanged?: boolean;
  /** Whether to subscribe to changes to the list of prompts. */
  readonly promptsListChanged?: boolean;
  /** Whether to subscribe to changes to the lists of resources and resource templates. */
  readonly resourcesListChanged?: boolean;
  /** URIs of the resources to whose changes to subscribe. */
  readonly resourceSubscriptions?: readonly string[];
  /** Keys that extensions define, such as `{ auditIds: ["7"] }`. */
  readonly extensions?: Params;
}

/** An open subscription that calls a function. */
export interface Watch {
  /** The part of the filter that the server accepted. */
  readonly granted: SubscriptionFilter;
  /** Settles when the subscription has ended. The value is the result of the server, if the server sent one. */
  readonly ended: Promise<Result | undefined>;
  /** Ends the subscription. */
  close(): Promise<void>;
}

/**
 * An open subscription. Iterate over it to receive notifications. The subscription keeps the newest 1,000 notifications
 * that were not read yet. If these notifications exceed 16 Mi characters, or 64 Mi characters for all subscriptions of
 * the client, the subscription is closed, and iterating throws a `RangeError`.
 */
export interface Subscription extends Watch, AsyncIterable<Notification>, AsyncDisposable {}

// Maximum number of notifications that wait to be read. A server may send more than the program reads.
const MAX_WAITING = 1000;
/** Maximum total length, in characters, of the notifications that wait in one subscription. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** Maximum total length, in characters, of the notifications that wait in all subscriptions of a connection. */
const MAX_ALL_CHARACTERS = 64 * 1024 * 1024;

/** The notifications that the subscriptions of a connection hold together. */
export interface Held {
  characters: number;
}

interface Waiting {
  readonly notification: Notification;
  readonly characters: number;
}

/** Opens a subscription that keeps its notifications until the program reads them. */
export async function toSubscription(
  open: (onChange: (notification: Notification) => void) => Promise<Watch>,
  held: Held = { characters: 0 },
): Promise<Subscription> {
  const waiting: Waiting[] = [];
  let characters = 0;
  let isReleased = false;
  let problem: RangeError | undefined;
  let news = Promise.withResolvers<void>();
  let isOver = false;
  // Wakes all loops that iterate. A loop that finds no notification waits again.
  const wakeLoops = () => {
    news.resolve();
    news = Promise.withResolvers<void>();
  };
  const charge = (count: number) => {
    characters += count;
    if (!isReleased) held.characters += count;
  };
  // After the end, remaining notifications no longer count towards the limit of the connection.
  const release = () => {
    if (!isReleased) held.characters -= characters;
    isReleased = true;
  };
  const take = () => {
    const next = waiting.shift();
    if (next) charge(-next.characters);
    return next?.notification;
  };
  const watching = open((notification) => {
    if (problem) return;
    if (waiting.length >= MAX_WAITING) take();
    const size = JSON.stringify(notification).length;
    charge(size);
    waiting.push({ notification, characters: size });
    if (characters > MAX_CHARACTERS || held.characters > MAX_ALL_CHARACTERS) {
      const most = characters > MAX_CHARACTERS ? MAX_CHARACTERS : MAX_ALL_CHARACTERS;
      problem = new RangeError(
        `Cannot go on with the subscription: notifications of more than ${most} characters wait; take them faster`,
      );
      waiting.length = 0;
      charge(-characters);
      watching.then((watch) => watch.close()).catch(() => {});
    }
    wakeLoops();
  });
  const watch = await watching;
  watch.ended.then(() => {
    isOver = true;
    release();
    wakeLoops();
  });

  async function* iterate(): AsyncGenerator<Notification> {
    while (true) {
      // Take one notification at a time, so that a loop that ends early leaves the remaining notifications to the next
      // loop.
      for (let next = take(); next; next = take()) yield next;
      if (problem) throw problem;
      if (isOver) return;
      await news.promise;
    }
  }

  return { ...watch, [Symbol.asyncIterator]: iterate, [Symbol.asyncDispose]: watch.close };
}
