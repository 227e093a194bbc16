/**
 * Converts the claims of tokens to callers.
 *
 * @module
 */
import type { Principal } from "../../core/call/context.ts";
import { readPrincipal } from "../../core/call/principal.ts";
import { isAllScopes } from "../../core/call/scopes.ts";

/** Claims about a token: the payload of a JWT, or the response of its issuer to an introspection. */
export type Claims = Readonly<Record<string, unknown>>;

/** The caller that a token stands for. `C` is the type of its claims, from the schema of `oauth({ claims })`. */
export interface OAuthPrincipal<C = Claims> extends Principal {
  /** The issuer of the token. */
  readonly issuer: string;
  /** Id of the user at the issuer. `undefined` if the token was issued to a client that acts for no user. */
  readonly subject?: string;
  /** Id of the client that the token was issued to, if known. */
  readonly clientId?: string;
  /** Scopes that the token grants. `undefined` if `readScopes` returned `undefined`: the token then grants no scope. */
  readonly scopes?: readonly string[];
  /** The claims of the token, as the schema of `oauth({ claims })` outputs them. */
  readonly claims: C;
}

/**
 * Returns the id of the principal for a subject of an issuer. Use it in web pages of your own, to compare the user who
 * signed in to the page with the caller of the server.
 *
 * ```ts
 * import { toPrincipalId } from "@x/mcp/oauth";
 *
 * console.log(toPrincipalId("https://login.example.com", "ada")); // oauth:["https://login.example.com","ada"]
 * ```
 */
export function toPrincipalId(issuer: string, subject: string): string {
  // Encode as JSON, because issuer and subject may both contain any separator.
  return `oauth:${JSON.stringify([issuer, subject])}`;
}

/** Returns the issuer in the id of a principal, or `undefined` if `oauth()` did not create the id. */
export function readIssuer(id: string): string | undefined {
  if (!id.startsWith("oauth:")) return;
  try {
    const [issuer]: readonly unknown[] = JSON.parse(id.slice("oauth:".length));
    return isName(issuer) ? issuer : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the principal of a token, or `undefined` if the claims have no subject and no client.
 *
 * @throws {TypeError} if `readScopes` returns anything but a list of scopes, or `allScopes`, which no token can grant.
 */
export function toOAuthPrincipal(
  issuer: string,
  claims: Claims,
  { expiresAt, readScopes, checked }: {
    readonly expiresAt?: number;
    /** The claims that handlers read. */
    readonly checked: Claims;
    readonly readScopes: (claims: Claims) => readonly string[] | undefined;
  },
): OAuthPrincipal | undefined {
  const { sub } = claims;
  const clientId = [claims.client_id, claims.azp, claims.cid, claims.appid].find(isName);
  const id = isName(sub)
    ? toPrincipalId(issuer, sub)
    : sub === undefined && clientId !== undefined
    ? `oauth:${JSON.stringify([issuer, null, clientId])}`
    : undefined;
  if (id === undefined) return;
  const subject = isName(sub) && !isClient(claims, clientId) ? sub : undefined;
  // If `readScopes` returned no scopes, the first call that needs a scope reports it.
  const facts = { id, issuer, subject, clientId, scopes: readScopes(claims), expiresAt, claims: checked };
  const principal = readPrincipal(facts, "oauth({ readScopes })");
  if (!isAllScopes(principal.scopes ?? [])) return principal as OAuthPrincipal; // Safe: made from these facts.
  throw new TypeError(
    "Cannot use the scopes that readScopes returned: a token cannot grant allScopes; name its scopes",
  );
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

// Tests whether a token was issued to a client instead of a user. Issuers mark such tokens in different ways.
function isClient({ sub, gty, idtyp }: Claims, clientId: string | undefined): boolean {
  return sub === clientId || gty === "client-credentials" || gty === "client_credentials" || idtyp === "app";
}
