/**
 * Converts bytes to Base64 text and back, with the runtime's built-in methods.
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

/** Writes bytes in the URL-safe alphabet, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Reads the output of {@linkcode toBase64}. Returns `undefined` for any other text. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  return read(text, "base64", toBase64);
}

/** Reads the output of {@linkcode toBase64Url}. Returns `undefined` for any other text. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  return read(text, "base64url", toBase64Url);
}

function read(text: string, alphabet: "base64" | "base64url", write: typeof toBase64) {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet });
    if (write(bytes) === text) return bytes;
  } catch {
    // A character outside of the alphabet, or an incomplete group.
  }
}
