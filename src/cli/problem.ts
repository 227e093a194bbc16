/**
 * What the user can fix, and what a server does not do.
 *
 * @module
 */

/** An error whose text tells the user what is wrong and what to do. No stack is shown. */
export class Problem extends Error {
  override readonly name: string = "Problem";
  /** The exit code: 2 if there is something to fix in what was typed or in a file. */
  readonly exitCode: number = 2;
}

/** A problem with the words that were typed; the text is followed by how to get help. */
export class UsageProblem extends Problem {
  override readonly name: string = "UsageProblem";
}

/** A server answers with an error, or not as it should. */
export class ServerProblem extends Problem {
  override readonly name: string = "ServerProblem";
  override readonly exitCode: number = 1;
}
