/**
 * Strings as HTTP header values: plain where that is safe, else `=?base64?…?=` around the Base64 of their UTF-8 bytes.
 *
 * Described by `specification/2026-07-28/basic/transports/streamable-http`, "Value Encoding".
 *
 * @module
 */
import { fromBase64, toBase64 } from "./base64.ts";

const PREFIX = "=?base64?";
const SUFFIX = "?=";

/**
 * Writes a string as a header value.
 *
 * Text that is not printable ASCII, that begins or ends with a space or tab, or that looks encoded already comes out in
 * the Base64 form. A lone surrogate becomes U+FFFD, as everywhere in UTF-8.
 */
export function encodeHeaderValue(value: string): string {
  const plain = !/[^\t -~]|^[\t ]|[\t ]$/.test(value) && !(value.startsWith(PREFIX) && value.endsWith(SUFFIX));
  return plain ? value : PREFIX + toBase64(new TextEncoder().encode(value)) + SUFFIX;
}

/**
 * Reads a header value back into its string, without the spaces and tabs around it.
 *
 * `undefined` means malformed: characters other than printable ASCII and tab, or Base64 that is not canonical or not
 * UTF-8. The markers are case-sensitive; a value that lacks either of them is taken literally.
 */
export function decodeHeaderValue(header: string): string | undefined {
  // Before trim(), which would also remove characters that no header may contain.
  if (/[^\t -~]/.test(header)) return;
  const value = header.trim();
  if (value.length < 11 || !value.startsWith(PREFIX) || !value.endsWith(SUFFIX)) return value;
  const bytes = fromBase64(value.slice(9, -2));
  try {
    return bytes && new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Not UTF-8: malformed.
  }
}
