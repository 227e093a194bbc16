/**
 * Bytes as Base64 text and back, by the methods the runtimes have built in.
 *
 * Reading is canonical: text that the matching writer would not have produced (spaces, wrong padding, stray bits in the
 * last character) is refused, because two spellings of one value would let a sealed token be altered without notice.
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

/** Reads text in an alphabet; `undefined` if `write` would not have written it. */
export function readCanonical(
  text: string,
  alphabet: "base64" | "base64url",
  write: typeof toBase64,
): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet });
    if (write(bytes) === text) return bytes;
  } catch {
    // A character outside the alphabet or a cut group: malformed like the rest.
  }
}
