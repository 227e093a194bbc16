/**
 * Reads access tokens from the `Authorization` header.
 */

export type TokenScheme = "Bearer" | "DPoP";

export type ReadToken =
  | { readonly scheme: TokenScheme; readonly token: string }
  | TokenProblem;

/** `error` is `undefined` if the request has no token. */
export interface TokenProblem {
  readonly scheme?: TokenScheme;
  readonly error?: "invalid_request" | "invalid_token" | "invalid_dpop_proof";
  readonly reason: string;
  /** More details for `observer.auth`. */
  readonly detail?: string;
  /** Whether the token is bound to a key, so that the request needs a proof. */
  readonly isBound?: boolean;
}

export const PREFIX = "Bearer ";
/** Maximum length of a token in characters. */
const MAX_TOKEN = 16_384;
/** Query parameter for tokens in RFC 6750. Requests with this parameter are refused, because URLs end up in logs. */
export const QUERY = "access_token";

/** `url` is the URL of the request. */
export function readToken(header: string, url: string): ReadToken {
  if (url.includes("?") && new URL(url).searchParams.has(QUERY)) {
    return { error: "invalid_request", reason: "the token is in the query; send it in the Authorization header" };
  }
  if (header.length > MAX_TOKEN + PREFIX.length) {
    return { error: "invalid_token", reason: "the token is longer than 16384 characters" };
  }
  // `Headers` joins repeated headers with commas, and a token contains no comma.
  if (header.includes(",")) return { error: "invalid_request", reason: "it has more than one token" };
  // Omit `error`, as RFC 6750 recommends for a request without a token: the client may not know yet that a token is
  // needed.
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
