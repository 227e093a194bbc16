/**
 * The interface of extensions that start and stop with their server.
 *
 * @module
 */

/** The extensions of one server that start and stop with it, or publish notifications. */
export interface Lives {
  /**
   * Starts all extensions, and extensions that are added later. Reports errors to the observer. From then on, `rest`
   * does nothing, unless `isKept` is `false`.
   */
  start(isKept?: boolean): void;
  /** Starts all extensions. Rejects if an extension fails. */
  ready(): Promise<void>;
  /**
   * Waits until an extension has started. Starts the extension if necessary, also after a failure. Rejects if the start
   * fails.
   */
  until(id: string): Promise<void> | undefined;
  /** Returns the object that was passed to `start` of an extension. `undefined` if the extension has not started. */
  find(id: string): object | undefined;
  /** Calls `deliver` for each notification of these topics. Returns a function that ends the subscription. */
  subscribe(id: string, wanted: WantedTopics, deliver: (published: Published) => void): () => void;
  /** Stops all extensions, unless a request has started the extensions. A later request starts the extensions again. */
  rest(): Promise<void>;
  /** Aborts the signals of all extensions, to announce that the server closes. */
  stop(): void;
  /** Stops all extensions permanently, within a limited time. */
  close(): Promise<void>;
}

/** The topics that a subscription requests under one key of an extension. */
export interface WantedTopics {
  readonly key: string;
  readonly topics: readonly string[];
}

/** A notification for the subscribers of a topic. */
export interface Published {
  readonly topic: string;
  readonly method: string;
  readonly params: { readonly [name: string]: unknown };
}
