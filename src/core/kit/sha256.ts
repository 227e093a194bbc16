/**
 * Hashes text.
 */
import { toBase64Url } from "./base64.ts";

/** Returns the SHA-256 hash of a text in UTF-8, in Base64 with the URL-safe alphabet: 43 characters. */
export async function sha256(text: string): Promise<string> {
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}
