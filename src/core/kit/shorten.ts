/**
 * Truncates a text to `length` characters, and adds `…`. If the text ends with a quotation mark whose pair remains, the
 * result ends with this quotation mark too.
 */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const kept = text.slice(0, length);
  // An escaped quotation mark counts as a character, not as a mark.
  const isOpen = text.endsWith('"') && kept.replace(/\\./g, "").split('"').length % 2 === 0;
  return kept + (isOpen ? '…"' : "…");
}
