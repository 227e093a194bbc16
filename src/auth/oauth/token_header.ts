/**
 * Reads tokens from requests.
 *
 * @module
 */

/** Authentication schemes of tokens. */
export type TokenScheme = "Bearer" | "DPoP";

/** The token of a request, or the reason for a refusal. */
export type ReadToken =
  | { readonly scheme: TokenScheme; readonly token: string }
  | TokenProblem;

/** Why a request is refused. Without `error`, it has no token. */
export interface TokenProblem {
  readonly scheme?: TokenScheme;
  readonly error?: "invalid_request" | "invalid_token" | "invalid_dpop_proof";
  readonly reason: string;
  /** Further reason for the observer. */
  readonly detail?: string;
}

/** Text before a bearer token in the header. */
export const PREFIX = "Bearer ";
/** Maximum characters of a token. */
const MAX_TOKEN = 16_384;
/** The query parameter of RFC 6750, which must not be used because URLs end up in logs. */
export const QUERY = "access_token";

/** Reads the token of a request from its `Authorization` header. */
export function readToken(header: string, url: string): ReadToken {
  if (url.includes("?") && new URL(url).searchParams.has(QUERY)) {
    return { error: "invalid_request", reason: "the token is in the query; send it in the Authorization header" };
  }
  if (header.length > MAX_TOKEN + PREFIX.length) return { error: "invalid_token", reason: "the token is too long" };
  // A runtime joins equal headers by a comma, which no token contains.
  if (header.includes(",")) return { error: "invalid_request", reason: "it has more than one token" };
  // A caller with another scheme does not know yet that a token is needed.
  const [, name] = /^(bearer|dpop)(?: |$)/i.exec(header) ?? [];
  if (name === undefined) return { reason: "it has no token" };
  const scheme = name.toLowerCase() === "dpop" ? "DPoP" : "Bearer";
  const token = header.slice(name.length).trim();
  if (/^[\w.~+/-]+=*$/.test(token)) return { scheme, token };
  return {
    scheme,
    ...token ? { error: "invalid_token", reason: "the token is malformed" } : { reason: "it has no token" },
  };
}
