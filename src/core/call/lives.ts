/**
 * The contract of extensions that live as long as their server.
 *
 * @module
 */

/** The extensions of one server that start and stop with it, or publish notifications. */
export interface Lives {
  /**
   * Starts all extensions, and those that are added later. Errors are reported. From then on, `rest` does nothing, unless
   * `isKept` is `false`.
   */
  start(isKept?: boolean): void;
  /** Starts all extensions, and rejects if one of them fails. */
  ready(): Promise<void>;
  /** Waits until an extension has started. Starts it if necessary, again after a failure, and rejects if that fails. */
  until(id: string): Promise<void> | undefined;
  /** Returns what an extension that has started got. */
  find(id: string): object | undefined;
  /** Calls `deliver` for each notification of these topics. Returns a function that stops it. */
  subscribe(id: string, wanted: WantedTopics, deliver: (published: Published) => void): () => void;
  /** Stops all extensions, unless a request has started them. A later request starts them again. */
  rest(): Promise<void>;
  /** Announces the end to all extensions: aborts their signals. */
  stop(): void;
  /** Stops all extensions for good. It takes a limited time. */
  close(): Promise<void>;
}

/** The topics of one key of an extension. */
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
