/**
 * The interface of the extensions that start and stop with the server.
 */
import type { Context } from "./context.ts";
import type { HandlerCall } from "./handler_call.ts";

/** A server's extensions that start and stop with the server, or that publish notifications. */
export interface Lives {
  /**
   * Starts all extensions, and each extension that is added later. Reports errors to the observer. After this call,
   * `stopUnlessStarted` does nothing, unless `isKept` is `false`.
   */
  start(isKept?: boolean): void;
  /** Starts all extensions. Rejects if an extension cannot be started. */
  ready(): Promise<void>;
  /** Starts the extension if it is not running, even after a failed start. Rejects if it cannot be started. */
  until(id: string): Promise<void> | undefined;
  /** Returns the object that the server passed to `start`, or `undefined` if the extension has not started. */
  find(id: string): object | undefined;
  /** Calls `deliver` for each notification about the wanted topics. Returns a function that ends the subscription. */
  subscribe(id: string, wanted: WantedTopics, deliver: (published: Published) => void): () => void;
  /** Stops all extensions that no request has started. The next request starts the extensions again. */
  stopUnlessStarted(): Promise<void>;
  /** Aborts the signals of all extensions, to announce that the server is closing. */
  stop(): void;
  /** Stops all extensions permanently. Waits a limited time for each extension. */
  close(): Promise<void>;
}

/** The topics that a subscription requests for one of an extension's keys. */
export interface WantedTopics {
  readonly key: string;
  readonly topics: readonly string[];
  readonly ctx: Context;
}

/** A notification for the subscribers to a topic. */
export interface Published {
  readonly topic: string;
  readonly method: string;
  readonly params: { readonly [name: string]: unknown };
  /** The handler to which the notification belongs. Only subscribers that may call the handler are notified. */
  readonly handler?: HandlerCall;
}
