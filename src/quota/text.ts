/**
 * Measures and cuts texts by their bytes as JSON.
 *
 * @module
 */

const encoder = new TextEncoder();

/** Returns the number of bytes of a text in UTF-8. */
export function toSize(text: string): number {
  return encoder.encode(text).length;
}

/** Returns the beginning of a text that takes at most `max` bytes as JSON, without its quotes. */
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
