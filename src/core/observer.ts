/**
 * Events of a server, for metrics and logs.
 *
 * @module
 */

/** Functions that are called for events of a server. */
export interface Observer {
  /** Called when the store stops to answer, and when it answers again. */
  store?(event: StoreEvent): void;
}

/** The store stopped to answer, or answers again. */
export interface StoreEvent {
  /** Whether the store stopped to answer, or answers again. */
  readonly state: "degraded" | "recovered";
  /** The operation that failed or succeeded, such as `read`. */
  readonly operation: string;
  /** The reason, if the state is `degraded`. */
  readonly error?: unknown;
}
