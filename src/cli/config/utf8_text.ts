/**
 * Tells text files from binary files.
 *
 * @module
 */

/** Decodes bytes as UTF-8. Returns `undefined` if they are not text. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return;
  }
}
