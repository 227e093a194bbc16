/**
 * Callers as tokens describe them.
 *
 * @module
 */
import type { Principal } from "../../core/call/context.ts";
import { readPrincipal } from "../../core/call/principal.ts";
import { isAllScopes } from "../../core/call/scopes.ts";

/** Claims about a token: the payload of a JWT, or what its issuer says about it. */
export type Claims = Readonly<Record<string, unknown>>;

/** The caller that a token stands for. `C` is the type of its claims, from the schema of `oauth({ claims })`. */
export interface OAuthPrincipal<C = Claims> extends Principal {
  /** The issuer of the token. */
  readonly issuer: string;
  /** Id of the user at the issuer. `undefined` if the token stands for a client and no person. */
  readonly subject?: string;
  /** Id of the client that the token was issued to, if known. */
  readonly clientId?: string;
  /** Scopes that the token grants. `undefined` if `readScopes` returned none, which grants none. */
  readonly scopes?: readonly string[];
  /** The claims of the token, as the schema of `oauth({ claims })` outputs them. */
  readonly claims: C;
}

/**
 * Returns the id of the principal for a subject of an issuer. Pages of your own use it to compare the user who signed in
 * there with the caller of the server.
 *
 * ```ts
 * import { toPrincipalId } from "@x/mcp/oauth";
 *
 * console.log(toPrincipalId("https://login.example.com", "ada")); // oauth:["https://login.example.com","ada"]
 * ```
 */
export function toPrincipalId(issuer: string, subject: string): string {
  // JSON, because both may contain any separator.
  return `oauth:${JSON.stringify([issuer, subject])}`;
}

/** Returns the issuer in the id of a principal, or `undefined` if the id is not one of `oauth()`. */
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
 * Returns the principal of a token, or `undefined` if its claims name nobody.
 *
 * @throws {TypeError} if `readScopes` returns anything but a list of scopes. No token grants `allScopes`.
 */
export function toOAuthPrincipal(
  issuer: string,
  claims: Claims,
  { expiresAt, readScopes, checked }: {
    readonly expiresAt?: number;
    /** The claims for handlers. */
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
  // Without scopes, the first call that needs some is reported.
  const facts = { id, issuer, subject, clientId, scopes: readScopes(claims), expiresAt, claims: checked };
  const principal = readPrincipal(facts, "oauth({ readScopes })");
  if (!isAllScopes(principal.scopes ?? [])) return principal as OAuthPrincipal; // It has the fields above.
  throw new TypeError("Cannot use what readScopes returned: a token cannot grant allScopes; name its scopes");
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

// Issuers mark tokens of clients in different ways.
function isClient({ sub, gty, idtyp }: Claims, clientId: string | undefined): boolean {
  return sub === clientId || gty === "client-credentials" || gty === "client_credentials" || idtyp === "app";
}
