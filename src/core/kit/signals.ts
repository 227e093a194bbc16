/**
 * Sends signals to child processes.
 */

type Signal = "SIGTERM" | "SIGKILL";

/**
 * Sends a signal to a child process. Does nothing if the process has exited, or if the user of this process may not send
 * it a signal, because it belongs to another user, as a process that `sudo` has started.
 */
export function sendSignal(child: { kill(signal: Signal): unknown }, signal: Signal = "SIGKILL"): void {
  try {
    child.kill(signal);
  } catch {
    // Ignore the error: Deno throws in both cases, Bun if the signal may not be sent.
  }
}
