/**
 * Errors about a value of a handler that a config file or a program declares.
 *
 * @module
 */

/** The keys and indexes that lead to a value. */
export type KeyPath = readonly (string | number)[];

/** Makes an error about a value of a tool or resource. */
export type ToProblem = (path: KeyPath, state: string) => Error;

/** Runs a function, and turns its errors into problems with a value. */
export function withPath<T>(run: () => T, toProblem: ToProblem, path: KeyPath): T {
  try {
    return run();
  } catch (error) {
    throw toProblem(path, toMessage(error));
  }
}

/** The message of an error. */
export function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
