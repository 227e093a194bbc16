/**
 * The log methods of a context, one for each level.
 *
 * @see specification/2026-07-28/server/utilities/logging
 */
import type { ClientInfo, Log, LogMethod, LogOptions, Principal } from "./context.ts";
import { LOG_LEVELS, type LogLevel } from "../../core/protocol/types.ts";
import { readSyncVerdict } from "./verdict.ts";

/** Maximum number of log messages of a call that are sent while the client reads too slowly. */
export const MAX_QUEUED_LOGS = 256;

/** Options of a log message that is sent outside of a call. */
export interface ServerLogOptions extends LogOptions {
  /** Selects the clients that receive the message. Defaults to all clients whose log level includes the message. */
  readonly to?: (receiver: {
    /** The authenticated caller of the client's latest request, if any. */
    readonly principal?: Principal;
    /** Unverified facts that the client declares about itself. */
    readonly client: ClientInfo;
  }) => boolean;
}

export type LogFilter = NonNullable<ServerLogOptions["to"]>;

/** Sends log messages outside of a call. There is one method per level. */
export type ServerLog = { readonly [level in LogLevel]: ((data: unknown, options?: ServerLogOptions) => void) };

/** The filter never throws, and returns `true` only if `to` does. Errors of `to` are passed to `report`. */
export function toSafeFilter(to: LogFilter, report: (error: unknown) => unknown): LogFilter {
  return (receiver) => {
    try {
      return readSyncVerdict(to(receiver), "to() in server.log");
    } catch (error) {
      report(error);
      return false;
    }
  };
}

export function wantsLevel({ logLevel }: ClientInfo, level: LogLevel): boolean {
  return !!logLevel && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(logLevel);
}

/**
 * Converts errors to their text, also in the members of an object or an array, because errors are empty objects in JSON.
 * Converts `undefined`, functions and symbols to strings, because JSON would omit them, and the message would have no
 * data.
 */
export function toLoggable(data: unknown): unknown {
  if (data instanceof Error || ["undefined", "function", "symbol"].includes(typeof data)) return String(data);
  if (typeof data !== "object" || data === null) return data;
  const isError = (each: unknown) => each instanceof Error;
  const toText = (each: unknown) => isError(each) ? String(each) : each;
  try {
    if (!Object.values(data).some(isError)) return data;
    if (Array.isArray(data)) return data.map(toText);
    return Object.fromEntries(Object.entries(data).map(([name, each]) => [name, toText(each)]));
  } catch {
    // A getter of the author has thrown. The message is dropped when it is encoded, so that the handler continues.
    return data;
  }
}

/** Returns the name of a logger. `undefined` for any other value, which clients would refuse. */
export function toLogger(logger: unknown): string | undefined {
  return typeof logger === "string" ? logger : undefined;
}

/** Each method passes its message to `announce`. */
export function createServerLog(
  announce: (level: LogLevel, data: unknown, options: ServerLogOptions) => void,
): ServerLog {
  const methods = LOG_LEVELS.map((level) => [level, (data: unknown, options = {}) => announce(level, data, options)]);
  // The cast is safe, because `methods` has an entry for each level.
  return Object.fromEntries(methods) as ServerLog;
}

/** Resolves when the client is ready to receive further messages. */
type WriteLog = (level: LogLevel, data: unknown, logger?: string) => Promise<void>;

/** The prototype that all logs share, with a getter for each level. */
const levels = Object.defineProperties(
  {},
  Object.fromEntries(LOG_LEVELS.map((level) => [level, {
    get(this: { readonly write: WriteLog }): LogMethod {
      return (data, options) => this.write(level, data, toLogger(options?.logger));
    },
  }])),
);

/** Each method passes its message to `write`. A method is created only when a handler reads the property. */
export function createLog(write: WriteLog): Log {
  return Object.create(levels, { write: { value: write } }); // `levels` has a getter for each level.
}
