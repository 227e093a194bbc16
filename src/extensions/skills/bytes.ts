/**
 * Computes digests of bytes, and decodes bytes as text.
 */

/** Returns the SHA-256 digest of bytes, as `sha256:` and lower-case hexadecimal digits. */
export async function toDigest(bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(bytes)));
  return `sha256:${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Decodes UTF-8 without removing a byte order mark. Returns `undefined` if the bytes are not valid UTF-8. */
export function toText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return;
  }
}
