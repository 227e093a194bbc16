/**
 * The option for the text copy of structured content.
 *
 * @module
 */

/**
 * The text that a result has beside its structured content: the same value as JSON (`"full"`), the names, types and
 * lengths of its top-level parts (`"summary"`), or no text (`"none"`).
 */
export type TextCopy = "full" | "summary" | "none";

/** The values of the option `text`. */
export const TEXT_COPY: readonly TextCopy[] = ["full", "summary", "none"];
