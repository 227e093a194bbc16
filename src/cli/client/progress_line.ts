/**
 * The line on standard error that shows the progress of a request.
 *
 * @module
 */
import type { Progress } from "../../client/client.ts";
import { clearStatus, showStatus } from "./terminal_output.ts";
import { toLine } from "./terminal_text.ts";

/** A line that shows progress. */
export interface ProgressLine {
  show(progress: Progress): void;
  /** Hides the line, and shows nothing until `resume` is called. */
  pause(): void;
  resume(): void;
}

/** The time between two updates, in milliseconds, because a server may report progress more often than anyone can read. */
const UPDATE_MS = 50;
/** The width of the bar, in characters. */
const BAR_WIDTH = 24;

/** Creates the line. It stays empty without a terminal. */
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
      timer ??= setTimeout(draw, UPDATE_MS);
    },
    pause() {
      isPaused = true;
      last = undefined;
      clearTimeout(timer);
      timer = undefined;
      clearStatus();
    },
    resume() {
      isPaused = false;
    },
  };
}

function toBar({ progress, total, message = "" }: Progress): string {
  const text = toLine(message, 200);
  if (total === undefined || !(total > 0)) return `${progress}  ${text}`.trim();
  const fraction = Math.min(1, Math.max(0, progress / total));
  const filled = Math.round(fraction * BAR_WIDTH);
  return `[${"#".repeat(filled)}${".".repeat(BAR_WIDTH - filled)}] ${Math.floor(fraction * 100)} %  ${text}`.trim();
}
