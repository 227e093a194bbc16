/**
 * Reads tokens from requests.
 *
 * @module
 */

/** Authentication schemes that carry a token. */
export type TokenScheme = "Bearer" | "DPoP";

/** The token of a request, or the reason for a refusal. */
export type ReadToken =
  | { readonly scheme: TokenScheme; readonly token: string }
  | TokenProblem;

/** The reason for which a request is refused. Without `error`, the request has no token. */
export interface TokenProblem {
  readonly scheme?: TokenScheme;
  readonly error?: "invalid_request" | "invalid_token" | "invalid_dpop_proof";
  readonly reason: string;
  /** Further details for the observer. */
  readonly detail?: string;
}

/** Text before a bearer token in the header. */
export const PREFIX = "Bearer ";
/** Maximum length of a token in characters. */
const MAX_TOKEN = 16_384;
/** The query parameter of RFC 6750. The server refuses it, because URLs end up in logs. */
export const QUERY = "access_token";

/** Reads the token of a request from its `Authorization` header. */
export function readToken(header: string, url: string): ReadToken {
  if (url.includes("?") && new URL(url).searchParams.has(QUERY)) {
    return { error: "invalid_request", reason: "the token is in the query; send it in the Authorization header" };
  }
  if (header.length > MAX_TOKEN + PREFIX.length) return { error: "invalid_token", reason: "the token is too long" };
  // Several headers of the same name arrive joined by commas. A token contains no comma.
  if (header.includes(",")) return { error: "invalid_request", reason: "it has more than one token" };
  // A request with another scheme has no token, so the refusal does not contain an `error`: the client may not have
  // learned yet that it needs a token.
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
