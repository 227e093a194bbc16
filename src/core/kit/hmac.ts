/**
 * Computes digests that nobody can compute without a key.
 */
import { toBase64Url } from "./base64.ts";

/** Returns the HMAC of a text with SHA-256, in Base64 with the URL-safe alphabet: 43 characters. */
export async function hmac(key: string, text: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", encoder.encode(key), algorithm, false, ["sign"]);
  return toBase64Url(new Uint8Array(await crypto.subtle.sign("HMAC", imported, encoder.encode(text))));
}
