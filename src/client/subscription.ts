/**
 * Subscriptions to changes on a server.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 */
import type { INTERNALS } from "../core/internals.ts";
import type { Params, Result } from "../core/protocol/jsonrpc.ts";
import type { Notification } from "./message.ts";

/** Selects the changes to subscribe to. */
export interface SubscriptionFilter {
  /** Whether to subscribe to changes of the list of tools. */
  readonly toolsListChanged?: boolean;
  /** Whether to subscribe to changes of the list of prompts. */
  readonly promptsListChanged?: boolean;
  /** Whether to subscribe to changes of the lists of resources and resource templates. */
  readonly resourcesListChanged?: boolean;
  /** URIs of resources, to subscribe to changes of their contents. */
  readonly resourceSubscriptions?: readonly string[];
  /** Additional filters that extensions define, such as `{ auditIds: ["7"] }`. */
  readonly extensions?: Params;
}

/** An open subscription that passes each notification to a callback. */
export interface Watch {
  /** The part of the filter that the server accepted. */
  readonly granted: SubscriptionFilter;
  /** Resolves when the subscription has ended, with the server's result if the server has sent a result. */
  readonly ended: Promise<Result | undefined>;
  /** Ends the subscription. */
  close(): Promise<void>;
}

/** A subscription, for a part of this library that must not miss a change. */
export interface OwnWatch extends Watch {
  /** `hasStream` is `false` if the server can announce changes only on the streams of requests. */
  readonly [INTERNALS]?: { readonly hasStream: boolean };
}

/**
 * An open subscription. Iterate over the subscription to receive notifications. The subscription keeps the newest 1,000
 * unread notifications. If the unread notifications exceed 16 Mi characters, or the unread notifications in all
 * subscriptions of the client together exceed 64 Mi characters, the client closes the subscription, and iterating
 * throws a `RangeError`.
 */
export interface Subscription extends Watch, AsyncIterable<Notification>, AsyncDisposable {}

// Maximum number of unread notifications per subscription. If a server sends more notifications than the program reads,
// the oldest are dropped.
const MAX_WAITING = 1000;
/** Maximum number of characters in the unread notifications of one subscription. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** Maximum number of characters in the unread notifications of all subscriptions of a connection. */
const MAX_ALL_CHARACTERS = 64 * 1024 * 1024;

export interface Held {
  characters: number;
}

interface Waiting {
  readonly notification: Notification;
  readonly characters: number;
}

/** Opens a subscription with `open`, and stores its notifications until the program reads them. */
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
  // Wakes all loops that iterate over the subscription. A loop that finds no notification waits again.
  const wakeLoops = () => {
    news.resolve();
    news = Promise.withResolvers<void>();
  };
  const charge = (count: number) => {
    characters += count;
    if (!isReleased) held.characters += count;
  };
  // After the subscription has ended, its unread notifications no longer count towards the connection's limit.
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
        `Cannot continue the subscription: the unread notifications exceed ${most} characters; read notifications faster`,
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
      // Take one notification at a time, so that the next loop receives the remaining notifications if this loop ends
      // early.
      for (let next = take(); next; next = take()) yield next;
      if (problem) throw problem;
      if (isOver) return;
      await news.promise;
    }
  }

  return { ...watch, [Symbol.asyncIterator]: iterate, [Symbol.asyncDispose]: watch.close };
}
