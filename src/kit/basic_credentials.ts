/**
 * The credentials of a client in an `Authorization: Basic` header.
 *
 * @module
 */
import { toBase64 } from "./base64.ts";

/**
 * Returns the value of the header. Both parts are encoded as in a form (RFC 6749, 2.3.1). oauth4webapi also escapes
 * characters that forms leave as they are, such as `-`, and some servers do not undo that.
 */
export function toBasicCredentials(id: string, secret: string): string {
  return `Basic ${toBase64(new TextEncoder().encode(`${toFormText(id)}:${toFormText(secret)}`))}`;
}

function toFormText(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}
