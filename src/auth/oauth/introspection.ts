/**
 * Checks opaque tokens with a request to the introspection endpoint of their issuer (RFC 7662).
 */
import type { Claims } from "./caller.ts";
import { InvalidToken, isIdToken } from "./claims.ts";
import { readSecureUrl, type Send } from "./http.ts";
import type { Issuer } from "./issuer.ts";
import { Unavailable } from "./loaded.ts";
import { loadTokenRequests } from "./access_token.ts";
import type { OAuthClient } from "./oauth_client.ts";

/** Options for the introspection of opaque tokens. */
export interface IntrospectionOptions extends OAuthClient {
  /** The issuer that introspects the tokens. Required if `issuers` contains several issuers. */
  readonly issuer?: string;
  /** URL of the introspection endpoint. Defaults to the endpoint in the issuer's metadata. */
  readonly endpoint?: string;
}

/** The returned function returns the claims of a token, or `undefined` if the token is not active. */
export function createIntrospection(
  { endpoint, ...client }: IntrospectionOptions,
  place: { readonly issuer: Issuer; readonly send: Send },
): (token: string, now: number) => Promise<Claims | undefined> {
  if (endpoint !== undefined && !readSecureUrl(endpoint)) {
    throw new TypeError("Cannot use oauth({ introspection }): endpoint must be a URL over https, or http on loopback");
  }
  const { issuer } = place;
  return async (token, now) => {
    const url = endpoint ?? (await issuer.metadata.get(now)).introspectionEndpoint;
    const state = `Cannot introspect a token at ${issuer.name}`;
    if (url === undefined) {
      throw toUnavailable(
        `${state}: the issuer's metadata contains no introspection_endpoint over https; set introspection.endpoint`,
      );
    }
    const params = { token, token_type_hint: "access_token" };
    const { introspectAt } = await loadTokenRequests();
    const request = { issuer: issuer.name, endpoint: url, client, params, send: place.send };
    const claims = await introspectAt(request).catch((error) => {
      throw toUnavailable(`${state}: ${error instanceof Error ? error.message : error}`, error);
    });
    // `active` is `false` for expired and unknown tokens, and at some issuers also for tokens that were issued for
    // another server.
    return claims.active === true ? claims : undefined;
  };
}

function toUnavailable(message: string, cause: unknown = message): Unavailable {
  return new Unavailable(message, { cause });
}

/** Throws {@linkcode InvalidToken} if the claims show that the token is not an access token. */
export function checkKind(claims: Claims): void {
  const { token_type: type, token_use: use } = claims;
  const isAccess = (kind: unknown) => kind === undefined || /^(bearer|dpop|access_token|access)$/i.test(String(kind));
  if (!isAccess(type) || !isAccess(use)) throw new InvalidToken("the token is not an access token");
  if (isIdToken(claims)) throw new InvalidToken("the token is an ID token");
}

/** Length in characters from which a token does not occur in a claim by chance. */
const MIN_UNIQUE = 10;

/**
 * Removes claims that contain the token itself, because some issuers use the token as `jti`. A short token can occur in
 * a claim by chance. Therefore, for a short token, removes only claims that contain the token as a complete string.
 */
export function withoutToken(claims: Claims, token: string): Claims {
  const wanted = token.length < MIN_UNIQUE ? JSON.stringify(token) : token;
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => !JSON.stringify(value)?.includes(wanted)));
}
