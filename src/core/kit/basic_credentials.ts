/**
 * The client credentials in an `Authorization: Basic` header.
 */
import { toBase64 } from "./base64.ts";

/**
 * Returns the header value. The id and the secret are form-encoded (RFC 6749, 2.3.1). The package oauth4webapi is not
 * used here, because it also escapes characters such as `-`, which form encoding leaves unchanged and some servers do
 * not decode.
 */
export function toBasicCredentials(id: string, secret: string): string {
  return `Basic ${toBase64(new TextEncoder().encode(`${toFormText(id)}:${toFormText(secret)}`))}`;
}

function toFormText(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}
