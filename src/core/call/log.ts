/**
 * The log methods of a context, one for each level.
 *
 * @see specification/2026-07-28/server/utilities/logging
 * @module
 */
import type { ClientFacts, Log, LogMethod, LogOptions, Principal } from "./context.ts";
import { LOG_LEVELS, type LogLevel } from "../../protocol/types.ts";
import { readSyncVerdict } from "./verdict.ts";

/** Decides which clients get a log message. */
export type LogFilter = (receiver: {
  /** The caller of the client's latest request, if authenticated. */
  readonly principal?: Principal;
  /** Facts that the client declares about itself. */
  readonly client: ClientFacts;
}) => boolean;

/** Options of a log message outside of a call. */
export interface ServerLogOptions extends LogOptions {
  /** Decides which clients receive the message. Defaults to all clients whose log level includes the message. */
  readonly to?: LogFilter;
}

/** Sends log messages outside of a call, with one method for each level. */
export type ServerLog = { readonly [level in LogLevel]: ((data: unknown, options?: ServerLogOptions) => void) };

/**
 * Returns a filter that never throws: a client gets the message only if `to` returns `true`. Errors are passed to
 * `report`.
 */
export function toSafeFilter(to: LogFilter, report: (error: unknown) => unknown): LogFilter {
  return (receiver) => {
    try {
      return readSyncVerdict(to(receiver), "to of a log message");
    } catch (error) {
      report(error);
      return false;
    }
  };
}

/** Tests whether a client wants messages of a level. */
export function wantsLevel({ logLevel }: ClientFacts, level: LogLevel): boolean {
  return !!logLevel && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(logLevel);
}

/** Returns data that JSON can represent. JSON omits some types, which would leave a message without data. */
export function toLoggable(data: unknown): unknown {
  return ["undefined", "function", "symbol"].includes(typeof data) ? String(data) : data;
}

/** Creates the log of a server, which announces its messages with `announce`. */
export function createServerLog(
  announce: (level: LogLevel, data: unknown, options: ServerLogOptions) => void,
): ServerLog {
  const methods = LOG_LEVELS.map((level) => [level, (data: unknown, options = {}) => announce(level, data, options)]);
  // The cast is safe, because there is a method for each level.
  return Object.fromEntries(methods) as ServerLog;
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
  return Object.create(levels, { write: { value: write } }); // The prototype has a getter for each level.
}
