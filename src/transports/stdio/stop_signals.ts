/**
 * Listens to Ctrl-C and SIGTERM, so that a server can close before the process ends.
 *
 * @module
 */
import { deno, findProcess } from "../../runtime.ts";

/** The signals, each with the exit code that shells expect. */
const SIGNALS = [["SIGINT", 130], ["SIGTERM", 143]] as const;

/** Signals of the operating system that stop a server. */
export interface StopSignals {
  /** Aborts at the first signal. A second signal ends the process at once. */
  readonly signal: AbortSignal;
  /** Stops listening. Ends the process if a signal has arrived. */
  finish(): void;
  /** Stops listening. A later signal ends the process as it does by default. */
  forget(): void;
}

/** Listens to the signals that end a process. */
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

function exit(code: number): void {
  if (deno) deno.exit(code);
  findProcess().exit(code);
}
