/**
 * Prints the log messages from a server.
 */
import type { LogLevel, Notification } from "../../client/client.ts";
import { UsageError } from "../cli_error.ts";
import { createStyle, reportLine } from "./terminal_output.ts";
import { toLine, toPlain, truncate } from "./terminal_text.ts";

/** The levels of log messages, least severe first. */
export const LOG_LEVELS: readonly LogLevel[] = [
  ...(["debug", "info", "notice", "warning"] as const),
  ...(["error", "critical", "alert", "emergency"] as const),
];

/**
 * Reads `--log`. Returns `undefined` for `none`.
 *
 * @throws {UsageError} if the level is unknown.
 */
export function readLogLevel(text: string): LogLevel | undefined {
  const level = LOG_LEVELS.find((each) => each === text);
  if (level !== undefined || text === "none") return level;
  throw new UsageError(
    `Cannot use the log level ${text}: there is no such level; use ${LOG_LEVELS.join(", ")} or none`,
  );
}

const MAX_LENGTH = 4000;

/** Prints a log message if its level is at least `min`. Ignores notifications that are not log messages. */
export function printLogMessage({ method, params }: Notification, min: LogLevel | undefined): void {
  if (method !== "notifications/message" || !min) return;
  const { level, logger, data } = params;
  const severity = LOG_LEVELS.findIndex((each) => each === level);
  if (severity >= 0 && severity < LOG_LEVELS.indexOf(min)) return;
  const style = createStyle("errors");
  const paint = severity >= LOG_LEVELS.indexOf("error") ? style.red : style.dim;
  const source = typeof logger === "string" ? ` ${toLine(logger, 60)}` : "";
  const text = typeof data === "string" ? data : JSON.stringify(data) ?? "";
  reportLine(`${paint(toLine(level, 20) + source)}: ${truncate(toPlain(text.slice(0, 2 * MAX_LENGTH)), MAX_LENGTH)}`);
}
