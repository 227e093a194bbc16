/**
 * Errors with messages for the user and with exit codes.
 */

/** The message states the problem and the remedy, and is printed without a stack trace. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  /** The exit code. Defaults to 2, for a usage or configuration error. */
  readonly exitCode: number = 2;
}

/** A mistake in the command that the user typed. The command line prints a hint to `--help` after the message. */
export class UsageError extends CliError {
  override readonly name: string = "UsageError";
}

export class ServerError extends CliError {
  override readonly name: string = "ServerError";
  override readonly exitCode: number = 1;
}

/**
 * Runs a function of the library. A TypeError from the library concerns the user's file or options, so it becomes a
 * `CliError` whose message begins with `action`.
 */
export async function withAction<T>(action: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof TypeError ? new CliError(`${action}: ${error.message}`) : error;
  }
}
