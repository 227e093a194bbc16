/**
 * The option for the text copy of structured content.
 *
 * @module
 */

/**
 * The text that a result contains in addition to its structured content: the same value as JSON (`"full"`), the names,
 * types and lengths of its top-level parts (`"summary"`), or no text (`"none"`).
 */
export type TextCopy = "full" | "summary" | "none";

/** The allowed values of the `text` option. */
export const TEXT_COPY: readonly TextCopy[] = ["full", "summary", "none"];
