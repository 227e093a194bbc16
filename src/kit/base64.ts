/**
 * Converts bytes to Base64 text and back, in the standard and in the URL-safe alphabet.
 *
 * Reading is canonical. Text that the matching writer would not produce is rejected: spaces, wrong padding, or stray
 * bits in the last character. Otherwise a client could alter a sealed token without the server noticing.
 *
 * @module
 */

/** Writes bytes in the standard alphabet, padded with `=`. */
export function toBase64(bytes: Uint8Array): string {
  return bytes.toBase64();
}

/** Reads what {@linkcode toBase64} wrote; `undefined` for any other text. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  return readCanonical(text, "base64", toBase64);
}

/** Writes bytes in the URL-safe alphabet, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Reads what {@linkcode toBase64Url} wrote; `undefined` for any other text. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  return readCanonical(text, "base64url", toBase64Url);
}

/** Reads text in an alphabet; `undefined` if `write` would not have written it. */
function readCanonical(
  text: string,
  alphabet: "base64" | "base64url",
  write: typeof toBase64,
): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet });
    if (write(bytes) === text) return bytes;
  } catch {
    // A character outside of the alphabet, or an incomplete group.
  }
}
