/**
 * Observers: objects with a method for each event of a server that they need.
 *
 * @module
 */

/** A service that was made or disposed, or that failed. */
export interface ServiceEvent {
  /** Name of the service. */
  readonly name: string;
  /** What happened. `failed` means that making or disposing it threw. */
  readonly state: "made" | "disposed" | "failed";
  /** The error, if it failed. */
  readonly error?: unknown;
  /** Milliseconds that it took. */
  readonly durationMs?: number;
}

/** Methods for the events of a server. */
export interface Observer {
  /** A service was made or disposed, or failed. */
  service?(event: ServiceEvent): void;
}
