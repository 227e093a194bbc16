/**
 * Errors whose messages are for the user, and their exit codes.
 *
 * @module
 */

/** An error whose message states the problem and the remedy. The command line prints it without a stack. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  /** The exit code. Defaults to 2, for a usage or configuration error. */
  readonly exitCode: number = 2;
}

/** An error in the command line. A hint to `--help` follows the message. */
export class UsageError extends CliError {
  override readonly name: string = "UsageError";
}

export class ServerError extends CliError {
  override readonly name: string = "ServerError";
  override readonly exitCode: number = 1;
}

/**
 * Runs a function of the library. Converts its TypeErrors, which concern the user's file or options, to errors whose
 * message begins with `action`.
 */
export async function withAction<T>(action: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof TypeError ? new CliError(`${action}: ${error.message}`) : error;
  }
}
