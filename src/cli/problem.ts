/**
 * What the user can mend.
 *
 * @module
 */

/** An error whose text tells the user what is wrong and what to do; no stack is shown, and the exit code is 2. */
export class Problem extends Error {
  override readonly name = "Problem";
}
