/**
 * Measures and truncates texts by their size in bytes.
 */

const encoder = new TextEncoder();

/** Returns the size of a text in UTF-8, in bytes. */
export function toSize(text: string): number {
  return encoder.encode(text).length;
}

/** Returns the longest prefix of a text that takes at most `max` bytes as JSON, not counting the quotation marks. */
export function cutText(text: string, max: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += character >= " " && character <= "~" && character !== '"' && character !== "\\"
      ? 1
      : toSize(JSON.stringify(character)) - 2;
    if (bytes > max) break;
    end += character.length;
  }
  return text.slice(0, end);
}
