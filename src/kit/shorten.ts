/**
 * Shortens text for messages.
 *
 * @module
 */

/**
 * Truncates a text to `length` characters, and adds `…`. If the text ends with a quotation mark whose pair remains, the
 * result ends with this quotation mark too.
 */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const kept = text.slice(0, length);
  const isOpen = text.endsWith('"') && (kept.match(/(?<!\\)"/g)?.length ?? 0) % 2 === 1;
  // Do not cut an escape sequence into two parts, because the quotation mark would belong to it.
  return isOpen ? `${kept.replace(/\\(u[\da-f]{0,3})?$/i, "")}…"` : `${kept}…`;
}
