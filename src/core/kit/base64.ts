/**
 * Converts bytes to Base64 and back, in the standard and in the URL-safe alphabet.
 *
 * The reading functions reject text that the writing functions would not produce, such as text with spaces, wrong
 * padding, or extra bits in the last character. Otherwise a client could change a sealed token without invalidating it.
 */

/** Whether the runtime has `Uint8Array.fromBase64()` and `toBase64()`, which Node has since version 25. */
const isBuiltIn = "toBase64" in Uint8Array.prototype;

/** Writes bytes in the standard alphabet, padded with `=`. */
export function toBase64(bytes: Uint8Array): string {
  if (isBuiltIn) return bytes.toBase64();
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Reads text that {@linkcode toBase64} wrote. Returns `undefined` for any other text. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  return readCanonical(text, "base64", toBase64);
}

/** Writes bytes in the URL-safe alphabet, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  if (isBuiltIn) return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  return toBase64(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
}

/** Reads text that {@linkcode toBase64Url} wrote. Returns `undefined` for any other text. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  return readCanonical(text, "base64url", toBase64Url);
}

/** Reads text in `alphabet`. Returns `undefined` if `write` would not have written the text. */
function readCanonical(
  text: string,
  alphabet: "base64" | "base64url",
  write: typeof toBase64,
): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = isBuiltIn ? Uint8Array.fromBase64(text, { alphabet }) : decode(text);
    if (write(bytes) === text) return bytes;
  } catch {
    // The text has a character outside of the alphabet, or an incomplete group.
  }
}

/** Reads text in either alphabet, including text that is not canonical. */
function decode(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));
}
