/**
 * Reads bearer tokens from requests.
 *
 * @module
 */

/** The token of a request, nothing, or the reason for a refusal. */
export type Bearer =
  | { readonly token: string }
  | { readonly error?: "invalid_request" | "invalid_token"; readonly reason: string };

/** Text before the token in the header. */
export const PREFIX = "Bearer ";
/** Maximum characters of a token. */
const MAX_TOKEN = 16_384;
/** The query parameter of RFC 6750, which must not be used because URLs end up in logs. */
export const QUERY = "access_token";

/** Reads the bearer token of a request from its `Authorization` header. */
export function readBearer(header: string, url: string): Bearer {
  if (url.includes("?") && new URL(url).searchParams.has(QUERY)) {
    return { error: "invalid_request", reason: "the token is in the query; send it in the Authorization header" };
  }
  if (header.length > MAX_TOKEN + PREFIX.length) return { error: "invalid_token", reason: "the token is too long" };
  // A runtime joins equal headers by a comma, which no token contains.
  if (header.includes(",")) return { error: "invalid_request", reason: "it has more than one token" };
  // A caller with another scheme does not know yet that a token is needed.
  if (!/^bearer(?: |$)/i.test(header)) return { reason: "it has no token" };
  const token = header.slice(PREFIX.length).trim();
  if (/^[\w.~+/-]+=*$/.test(token)) return { token };
  return token ? { error: "invalid_token", reason: "the token is malformed" } : { reason: "it has no token" };
}
