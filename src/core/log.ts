/**
 * Log messages: one method for each level.
 *
 * @see specification/2026-07-28/server/utilities/logging
 * @module
 */
import { LOG_LEVELS, type LogLevel } from "../protocol/types.ts";

/** What goes with a log message. */
export interface LogOptions {
  /** The part of the server that the message comes from, such as `db`. */
  readonly logger?: string;
}

/** Sends a log message with any JSON value. Settles when there is room for more. */
export type LogMethod = (data: unknown, options?: LogOptions) => Promise<void>;

/** Sends log messages, one method for each level. The methods work when destructured. */
export interface Log {
  /** For developers. */
  readonly debug: LogMethod;
  /** What happens normally. */
  readonly info: LogMethod;
  /** Normal, but significant. */
  readonly notice: LogMethod;
  /** May become a problem. */
  readonly warning: LogMethod;
  /** An operation failed. */
  readonly error: LogMethod;
  /** A component failed. */
  readonly critical: LogMethod;
  /** Needs action at once. */
  readonly alert: LogMethod;
  /** The system cannot be used. */
  readonly emergency: LogMethod;
}

/** Sends one message. */
type WriteLog = (level: LogLevel, data: unknown, logger?: string) => Promise<void>;

/** What all logs of calls have: a getter for each level. */
const levels = Object.defineProperties(
  {},
  Object.fromEntries(LOG_LEVELS.map((level) => [level, {
    get(this: { readonly write: WriteLog }): LogMethod {
      return (data, options) => this.write(level, data, options?.logger);
    },
  }])),
);

/**
 * Makes the log of one call, whose messages `write` sends. Each method is made when it is read, so a call pays for those
 * that its handler uses.
 */
export function createLog(write: WriteLog): Log {
  return Object.create(levels, { write: { value: write } }); // Its prototype has all levels.
}
