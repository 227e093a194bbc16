/**
 * What a person hears while a call runs: how far it is, and what the server logs.
 *
 * @module
 */
import type { Notification } from "../../client/message.ts";
import type { Progress } from "../../client/rpc.ts";
import { LOG_LEVELS, type LogLevel } from "../../protocol/types.ts";
import { UsageProblem } from "../problem.ts";
import { cut, toLine, toPlain } from "./terminal_text.ts";
import { clearStatus, showStatus, styleOf, tellLine } from "./screen.ts";

/** A line that tells how far a call is. */
export interface ProgressLine {
  show(progress: Progress): void;
  /** Takes it away, and shows it no more until `go` is called. */
  pause(): void;
  go(): void;
}

/** Milliseconds between two pictures: a server may report more often than anybody can see. */
const FRAME_MS = 50;
const CELLS = 24;

/** Makes the line. */
export function createProgressLine(): ProgressLine {
  let last: Progress | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isPaused = false;
  const draw = () => {
    timer = undefined;
    if (last && !isPaused) showStatus(toBar(last));
  };
  return {
    show(progress) {
      last = progress;
      timer ??= setTimeout(draw, FRAME_MS);
    },
    pause() {
      isPaused = true;
      last = undefined;
      clearTimeout(timer);
      timer = undefined;
      clearStatus();
    },
    go() {
      isPaused = false;
    },
  };
}

function toBar({ progress, total, message = "" }: Progress): string {
  const text = toLine(message, 200);
  if (total === undefined || !(total > 0)) return `${progress}  ${text}`.trim();
  const part = Math.min(1, Math.max(0, progress / total));
  const done = Math.round(part * CELLS);
  return `[${"#".repeat(done)}${".".repeat(CELLS - done)}] ${Math.floor(part * 100)} %  ${text}`.trim();
}

/** Whoever says `none` wants no log messages. @throws {Problem} if there is no such level. */
export function readLogLevel(text: string): LogLevel | undefined {
  const level = LOG_LEVELS.find((each) => each === text);
  if (level !== undefined || text === "none") return level;
  throw new UsageProblem(`Cannot log from ${text} on: there are ${LOG_LEVELS.join(", ")}, and none`);
}

const LONGEST = 4000;

/** Tells a log message, if that is what a notification is, and the message severe enough. */
export function tellLog({ method, params }: Notification, least: LogLevel | undefined): void {
  if (method !== "notifications/message" || !least) return;
  const { level, logger, data } = params;
  const at = LOG_LEVELS.findIndex((each) => each === level);
  if (at >= 0 && at < LOG_LEVELS.indexOf(least)) return;
  const style = styleOf("errors");
  const paint = at >= LOG_LEVELS.indexOf("error") ? style.red : style.dim;
  const from = typeof logger === "string" ? ` ${toLine(logger, 60)}` : "";
  const text = typeof data === "string" ? data : JSON.stringify(data) ?? "";
  tellLine(`${paint(toLine(level, 20) + from)}: ${cut(toPlain(text.slice(0, 2 * LONGEST)), LONGEST)}`);
}
