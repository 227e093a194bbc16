/**
 * The credentials of a client in an `Authorization: Basic` header.
 *
 * @module
 */
import { toBase64 } from "./base64.ts";

/**
 * Returns the value of the header. Both parts are form-encoded (RFC 6749, 2.3.1). The package oauth4webapi also escapes
 * characters that form encoding leaves unchanged, such as `-`, and some servers do not decode these characters.
 */
export function toBasicCredentials(id: string, secret: string): string {
  return `Basic ${toBase64(new TextEncoder().encode(`${toFormText(id)}:${toFormText(secret)}`))}`;
}

function toFormText(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}
