/**
 * Listens to Ctrl-C (SIGINT) and SIGTERM, so that a server can close before the process ends.
 */
import { deno, findProcess, startBackgroundTimer } from "../../../core/runtime.ts";

/** The signals, with the exit code that shells expect for each signal. */
const SIGNALS = [["SIGINT", 130], ["SIGTERM", 143]] as const;

/**
 * Milliseconds after which a process exits whose server has closed. With the default of `calls.closeMs`, a process that
 * serves HTTP ends within the 10 seconds that container runtimes allow. This limit is needed, because the author's timers
 * and connections may keep the process alive, and because Deno cannot disconnect a client that does not read.
 */
const LINGER_MS = 3000;

export interface StopSignals {
  /** Aborts when the first process signal arrives. A second process signal ends the process immediately. */
  readonly signal: AbortSignal;
  /** Stops listening. Ends the process if a process signal has arrived. */
  finish(): void;
  /** Stops listening, so that the next process signal ends the process. */
  forget(): void;
}

/** Starts listening to SIGINT and SIGTERM, which then no longer end the process by default. */
export function listenToSignals(): StopSignals {
  const controller = new AbortController();
  let stopCode: number | undefined;
  const listeners = SIGNALS.map(([name, code]) => {
    const listener = () => {
      if (stopCode !== undefined) exit(code);
      stopCode = code;
      controller.abort();
    };
    if (deno) deno.addSignalListener(name, listener);
    else findProcess().on(name, listener);
    return [name, listener] as const;
  });
  function forget(): void {
    for (const [name, listener] of listeners) {
      if (deno) deno.removeSignalListener(name, listener);
      else findProcess().off(name, listener);
    }
  }
  return {
    signal: controller.signal,
    forget,
    finish() {
      if (stopCode !== undefined) exit(stopCode);
      forget();
    },
  };
}

/** Ends the process with code 0 after {@linkcode LINGER_MS}, or earlier if nothing else keeps it alive. */
export function exitSoon(): void {
  startBackgroundTimer(() => exit(0), LINGER_MS);
}

function exit(code: number): void {
  if (deno) deno.exit(code);
  findProcess().exit(code);
}
