/**
 * The text that a result contains in addition to its structured content: the same value as JSON (`"full"`), the names,
 * types and lengths of its top-level parts (`"summary"`), or no text (`"none"`).
 */
export type TextCopy = "full" | "summary" | "none";

export const TEXT_COPY: readonly TextCopy[] = ["full", "summary", "none"];

/**
 * Number of characters above which the JSON of a text copy has one element per line. Clients show a preview of a long
 * result that they cut after some lines or characters. A client that cuts only at line breaks shows nothing of a long
 * line.
 */
export const MAX_LINE = 16_384;
