/**
 * HTTP header values that can hold any string. Safe text is sent unchanged. Other text becomes `=?base64?…?=` around
 * the Base64 of its UTF-8 bytes.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Value Encoding)
 */
import { fromBase64, toBase64 } from "../kit/base64.ts";

const PREFIX = "=?base64?";
const SUFFIX = "?=";

/**
 * Encodes a string as a header value.
 *
 * The Base64 form is used for text that is not printable ASCII, that begins or ends with a space or tab, or that
 * already looks encoded. A lone surrogate becomes U+FFFD, as usual in UTF-8.
 */
export function encodeHeaderValue(value: string): string {
  const plain = !/[^\t -~]|^[\t ]|[\t ]$/.test(value) && !(value.startsWith(PREFIX) && value.endsWith(SUFFIX));
  return plain ? value : PREFIX + toBase64(new TextEncoder().encode(value)) + SUFFIX;
}

/**
 * Decodes a header value, without surrounding spaces and tabs.
 *
 * Returns `undefined` if the value has characters other than printable ASCII and tab, or if its Base64 is not canonical
 * or not UTF-8. The markers are case-sensitive. A value without both markers is plain text.
 */
export function decodeHeaderValue(header: string): string | undefined {
  // This check precedes trim(), because trim() would remove invalid characters too.
  if (/[^\t -~]/.test(header)) return;
  const value = header.trim();
  if (value.length < 11 || !value.startsWith(PREFIX) || !value.endsWith(SUFFIX)) return value;
  const bytes = fromBase64(value.slice(9, -2));
  try {
    return bytes && new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // The bytes are not UTF-8.
  }
}
