/**
 * The ids of unexpected errors in the results of tools. The text of such a result ends with the id, such as `Internal
 * error (1f3a09c2)`. Errors contain the id in their data instead.
 */

const LAST_ID = /(?<=\()[0-9a-f]{8}(?=\)$)/;

/** Returns the text of a result for an unexpected error. */
export function withErrorId(text: string, id: unknown): string {
  return `${text} (${id})`;
}

/** Returns the id at the end of a text. Returns `undefined` if the text does not end with an id. */
export function readErrorId(text: string): string | undefined {
  return LAST_ID.exec(text)?.[0];
}

export function replaceErrorId(text: string, replace: (id: string) => string): string {
  return text.replace(LAST_ID, replace);
}
