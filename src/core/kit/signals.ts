/**
 * Ends child processes with signals.
 */
import { deadline } from "./deadline.ts";

type Signal = "SIGTERM" | "SIGKILL";

/** Does nothing if the process has exited or runs as another user, such as with `sudo`. */
export function sendSignal(child: { kill(signal: Signal): unknown }, signal: Signal = "SIGKILL"): void {
  try {
    child.kill(signal);
  } catch {
    // Ignore the error: Deno throws in both cases, Bun if the process runs as another user.
  }
}

/** A child process whose `kill` does not throw. */
interface Killable {
  /** Resolves with the exit code. */
  readonly exited: Promise<number>;
  kill(signal: Signal): void;
}

/**
 * Sends SIGTERM to a child process, and SIGKILL if it does not exit within `ms` milliseconds. Returns the exit code, or
 * `undefined` if the process has not exited `ms` milliseconds after SIGKILL, because it runs as another user.
 */
export async function killProcess(child: Killable, ms: number): Promise<number | undefined> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    child.kill(signal);
    const code = await deadline(child.exited, { ms, onTimeout: () => undefined });
    if (code !== undefined) return code;
  }
}
