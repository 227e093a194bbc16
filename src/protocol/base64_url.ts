/**
 * Bytes as Base64 text in the URL-safe alphabet and back, for what is sealed.
 *
 * @module
 */
import { readCanonical } from "./base64.ts";

/** Writes bytes in the URL-safe alphabet, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Reads what {@linkcode toBase64Url} wrote; `undefined` for any other text. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  return readCanonical(text, "base64url", toBase64Url);
}
