/**
 * Log messages: one method for each level.
 *
 * @see specification/2026-07-28/server/utilities/logging
 * @module
 */
import type { LogLevel } from "../protocol/types.ts";

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

/** The log of one call. Each method is made when it is read, so a call pays for those that its handler uses. */
export class CallLog implements Log {
  readonly #write: WriteLog;

  /** A log whose messages `write` sends. */
  constructor(write: WriteLog) {
    this.#write = write;
  }

  get debug(): LogMethod {
    return this.#at("debug");
  }

  get info(): LogMethod {
    return this.#at("info");
  }

  get notice(): LogMethod {
    return this.#at("notice");
  }

  get warning(): LogMethod {
    return this.#at("warning");
  }

  get error(): LogMethod {
    return this.#at("error");
  }

  get critical(): LogMethod {
    return this.#at("critical");
  }

  get alert(): LogMethod {
    return this.#at("alert");
  }

  get emergency(): LogMethod {
    return this.#at("emergency");
  }

  #at(level: LogLevel): LogMethod {
    return (data, options) => this.#write(level, data, options?.logger);
  }
}
