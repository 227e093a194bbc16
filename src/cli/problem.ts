/**
 * Errors whose messages are for the user, with the exit code of each.
 *
 * @module
 */

/** An error whose message states the problem and the remedy. The command line prints it without a stack. */
export class Problem extends Error {
  override readonly name: string = "Problem";
  /** The exit code. Defaults to 2, for a usage or configuration error. */
  readonly exitCode: number = 2;
}

/** An error in the command line. A hint to `--help` follows the message. */
export class UsageProblem extends Problem {
  override readonly name: string = "UsageProblem";
}

/** An error of a server. */
export class ServerProblem extends Problem {
  override readonly name: string = "ServerProblem";
  override readonly exitCode: number = 1;
}
