/**
 * The log methods of a context, one for each level.
 *
 * @see specification/2026-07-28/server/utilities/logging
 * @module
 */
import { LOG_LEVELS, type LogLevel } from "../protocol/types.ts";

/** Options of a log message. */
export interface LogOptions {
  /** Name of the logger, such as `db`. */
  readonly logger?: string;
}

/** Sends a log message with any JSON value. Returns a promise that settles when the client has room for more. */
export type LogMethod = (data: unknown, options?: LogOptions) => Promise<void>;

/** Sends log messages, with one method for each level. The methods work when destructured. */
export interface Log {
  /** Logs details for debugging. */
  readonly debug: LogMethod;
  /** Logs a normal event. */
  readonly info: LogMethod;
  /** Logs a normal but significant event. */
  readonly notice: LogMethod;
  /** Logs a possible problem. */
  readonly warning: LogMethod;
  /** Logs a failed operation. */
  readonly error: LogMethod;
  /** Logs a failed component. */
  readonly critical: LogMethod;
  /** Logs a condition that needs immediate action. */
  readonly alert: LogMethod;
  /** Logs that the system is unusable. */
  readonly emergency: LogMethod;
}

/** Sends one message. */
type WriteLog = (level: LogLevel, data: unknown, logger?: string) => Promise<void>;

/** The shared prototype of all logs, with a getter for each level. */
const levels = Object.defineProperties(
  {},
  Object.fromEntries(LOG_LEVELS.map((level) => [level, {
    get(this: { readonly write: WriteLog }): LogMethod {
      return (data, options) => this.write(level, data, options?.logger);
    },
  }])),
);

/**
 * Creates the log of one call, which sends its messages with `write`. A method is created only when a handler reads it.
 */
export function createLog(write: WriteLog): Log {
  return Object.create(levels, { write: { value: write } }); // The prototype has all levels.
}
