/**
 * A session in which the server can send progress, log messages and elicitation requests while the server handles a
 * request.
 */
import type { ClientMiddleware, LogLevel, Progress, RequestOptions } from "../../client/client.ts";
import { taskClient } from "../../extensions/tasks/client/tasks.ts";
import type { Args } from "../args.ts";
import { ServerError } from "../cli_error.ts";
import { checkOutput } from "./content_blocks.ts";
import { Elicitor } from "./elicitation.ts";
import { printLogMessage, readLogLevel } from "./log_messages.ts";
import { readPresetAnswers } from "./preset_answers.ts";
import { type ServerSession, withServerSession } from "./server_session.ts";
import { clearStatus, reportLine, showStatus } from "./terminal_output.ts";
import { toLine, toPlain } from "./terminal_text.ts";
import { startResponseTimer } from "../../core/kit/timer.ts";

/** The lowest exit code of a command that ended because of a signal. */
const FIRST_SIGNAL_CODE = 128;

export interface InteractiveSession extends ServerSession {
  /** Sends a request and shows its progress. Throws if the server sends nothing for the duration of `--timeout`. */
  request<T>(send: (options: RequestOptions) => Promise<T>): Promise<T>;
}

/** Connects like `withServerSession`, and also answers elicitation requests. Returns the exit code. */
export async function withInteractiveSession(
  args: Args,
  verb: string,
  use: (session: InteractiveSession) => Promise<number>,
): Promise<number> {
  const logLevel = readLogLevel(args.flags.log ?? "info");
  const answers = await readPresetAnswers(args);
  if ("output" in args.flags) await checkOutput(args.flags.output);
  const monitor = new RequestMonitor(logLevel);
  const pauseWhile = <T>(work: () => Promise<T>) => monitor.pauseWhile(work);
  const elicitor = new Elicitor(answers, pauseWhile);
  const toOptions = (name: string) => ({
    ...elicitor.toOptions(name),
    logLevel,
    onNotification: monitor.onNotification,
    extensions: [taskClient()],
    use: [monitor.onRequest],
  });
  try {
    const code = await withServerSession(args, { verb, toOptions, pauseWhile }, (session) => {
      return use({ ...session, request: (send) => monitor.run(session, send) });
    });
    // Do not report unused answers after Ctrl-C, because the server may not have asked all its questions yet.
    return code < FIRST_SIGNAL_CODE ? checkAnswers(elicitor, code) : code;
  } catch (error) {
    const cause = elicitor.findError();
    if (!cause || !(error instanceof ServerError)) throw error;
    // Print both errors: an unanswered question may have caused the server's error.
    reportLine(toPlain(error.message));
    throw cause;
  }
}

function checkAnswers(elicitor: Elicitor, code: number): number {
  const error = elicitor.findError();
  if (error) throw error;
  elicitor.reportUnused();
  return code;
}

class RequestMonitor {
  readonly #line = new ProgressLine();
  readonly #logLevel: LogLevel | undefined;
  #timeout: SilenceTimeout | undefined;

  constructor(logLevel: LogLevel | undefined) {
    this.#logLevel = logLevel;
  }

  readonly onNotification = (notification: Parameters<typeof printLogMessage>[0]): void => {
    this.#timeout?.restart();
    printLogMessage(notification, this.#logLevel);
  };

  // The timeout runs only during requests other than subscriptions, because a server need not send anything during a
  // subscription, or between two polls of a task.
  readonly onRequest: ClientMiddleware = async ({ method }, next) => {
    const isOpen = method === "subscriptions/listen";
    return await (this.#timeout && !isOpen ? this.#timeout.countWhile(next) : next());
  };

  /** Hides the progress line and pauses the timeout while the user answers a question. */
  async pauseWhile<T>(work: () => Promise<T>): Promise<T> {
    this.#line.pause();
    try {
      return await (this.#timeout ? this.#timeout.pauseWhile(work) : work());
    } finally {
      this.#line.resume();
    }
  }

  async run<T>(session: ServerSession, send: (options: RequestOptions) => Promise<T>): Promise<T> {
    const timeout = this.#timeout = startSilenceTimeout(session.timeoutMs);
    this.#line.resume();
    try {
      return await send({
        signal: AbortSignal.any([session.signal, timeout.signal]),
        timeoutMs: Infinity,
        onProgress: (progress) => {
          timeout.restart();
          this.#line.show(progress);
        },
      });
    } finally {
      timeout.stop();
      this.#line.pause();
    }
  }
}

/** A timeout that expires if the server sends no message within the time of `--timeout`. */
interface SilenceTimeout {
  /** Aborts when the timeout expires. */
  readonly signal: AbortSignal;
  /** Restarts the timeout. Called for each message from the server. */
  restart(): void;
  /** Runs a request. The timeout counts only while at least one request is running. */
  countWhile<T>(request: () => Promise<T>): Promise<T>;
  /** Pauses the timeout while `work` runs, for example while the user answers a question. */
  pauseWhile<T>(work: () => Promise<T>): Promise<T>;
  stop(): void;
}

function startSilenceTimeout(ms: number): SilenceTimeout {
  const controller = new AbortController();
  const reason = new DOMException(`it has sent nothing for ${ms / 1000} s`, "TimeoutError");
  let pauses = 0;
  let requests = 0;
  let stopTimer = () => {};

  function restart(): void {
    stopTimer();
    if (requests && !pauses) stopTimer = startResponseTimer(ms, () => controller.abort(reason));
  }

  async function countWhile<T>(request: () => Promise<T>): Promise<T> {
    requests++;
    restart();
    try {
      return await request();
    } finally {
      requests--;
      restart();
    }
  }

  async function pauseWhile<T>(work: () => Promise<T>): Promise<T> {
    pauses++;
    stopTimer();
    try {
      return await work();
    } finally {
      pauses--;
      restart();
    }
  }

  return { signal: controller.signal, restart, countWhile, pauseWhile, stop: () => stopTimer() };
}

/** Minimum milliseconds between two updates, because a server may report progress faster than a user can read. */
const UPDATE_MS = 50;
/** The width of the bar, in characters. */
const BAR_WIDTH = 24;

/** Shows nothing if standard error is not a terminal. */
class ProgressLine {
  #last: Progress | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isPaused = false;

  show(progress: Progress): void {
    this.#last = progress;
    this.#timer ??= setTimeout(() => this.#draw(), UPDATE_MS);
  }

  /** Hides the line, and shows nothing until `resume` is called. */
  pause(): void {
    this.#isPaused = true;
    this.#last = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    clearStatus();
  }

  resume(): void {
    this.#isPaused = false;
  }

  #draw(): void {
    this.#timer = undefined;
    if (this.#last && !this.#isPaused) showStatus(toBar(this.#last));
  }
}

function toBar({ progress, total, message = "" }: Progress): string {
  const text = toLine(message, 200);
  if (total === undefined || !(total > 0)) return `${progress}  ${text}`.trim();
  const fraction = Math.min(1, Math.max(0, progress / total));
  const filled = Math.round(fraction * BAR_WIDTH);
  return `[${"#".repeat(filled)}${".".repeat(BAR_WIDTH - filled)}] ${Math.floor(fraction * 100)} %  ${text}`.trim();
}
