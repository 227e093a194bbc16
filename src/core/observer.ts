/**
 * The events that an observer can hear.
 *
 * @module
 */
import type { AuthTransport } from "./auth.ts";

/** A request whose caller was not authenticated. It never contains a credential. */
export interface AuthEvent {
  /** The way in. */
  readonly transport: AuthTransport;
  /** Address of the client, if known. */
  readonly peer?: string;
  /** HTTP status of the response. */
  readonly status: number;
  /** Why the request was refused. */
  readonly reason: string;
}

/** Hears events of a server, one method for each. */
export interface Observer {
  /** A request was refused, because its caller was not authenticated. */
  auth?(event: AuthEvent): void;
}
