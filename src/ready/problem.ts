/**
 * Errors about a value in the definition of a handler. The definition may be in a config file or in a program.
 */

/** Path of a value in the definition, as keys and indexes. */
export type KeyPath = readonly (string | number)[];

export type ToProblem = (path: KeyPath, state: string) => Error;

export function withPath<T>(run: () => T, toProblem: ToProblem, path: KeyPath): T {
  try {
    return run();
  } catch (error) {
    throw toProblem(path, toMessage(error));
  }
}

/** Returns the message of an error, or any other thrown value as text. */
export function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
