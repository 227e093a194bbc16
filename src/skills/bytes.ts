/**
 * Computes digests of files, and decodes their bytes as text.
 *
 * @module
 */

/** Returns `sha256:` and the digest of bytes in lower-case hexadecimal. */
export async function toDigest(bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(bytes)));
  return `sha256:${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Returns bytes as text. Returns `undefined` if the bytes are not UTF-8. Encoding the text again returns the same
 * bytes.
 */
export function toText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return;
  }
}
