/**
 * Converts the claims of a token to the principal of the caller.
 */
import type { Principal } from "../../server/call/context.ts";
import { readPrincipal } from "../../server/call/principal.ts";
import { isAllScopes } from "../../server/call/scopes.ts";

/** The claims of a token: the payload of a JWT, or the introspection response of the token's issuer. */
export type Claims = Readonly<Record<string, unknown>>;

/** A caller whom `oauth()` authenticated. `C` is the output type of the schema in `oauth({ claims })`. */
export interface OAuthPrincipal<C = Claims> extends Principal {
  /** Issuer of the token: the value of the `iss` claim. */
  readonly issuer: string;
  /**
   * Id of the user at the issuer: the value of the `sub` claim. `undefined` if the token was issued to a client that
   * does not act for a user.
   */
  readonly subject?: string;
  /** Id of the client that requested the token. `undefined` if the token does not name its client. */
  readonly clientId?: string;
  /** Scopes that the token grants. `undefined`, which grants no scopes, if `readScopes` returned `undefined`. */
  readonly scopes?: readonly string[];
  /** The claims of the token, as returned by the schema in `oauth({ claims })`. */
  readonly claims: C;
}

/**
 * Returns the principal id that `oauth()` creates for a user. Use the function in your own web pages, to check whether
 * the user who signed in to the page is the caller of the server.
 *
 * ```ts
 * import { toPrincipalId } from "@x/mcp/oauth";
 *
 * console.log(toPrincipalId("https://login.example.com", "ada")); // oauth:["https://login.example.com","ada"]
 * ```
 */
export function toPrincipalId(issuer: string, subject: string): string {
  // Encode the pair as JSON, because the issuer and the subject can contain any separator.
  return `oauth:${JSON.stringify([issuer, subject])}`;
}

/** Returns the issuer that a principal id contains, or `undefined` if `oauth()` did not create the id. */
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
 * Returns the principal for the claims of a token, or `undefined` if the claims name neither a subject nor a client.
 *
 * @throws {TypeError} if the value that `readScopes` returns is not a list of scopes, or contains `allScopes`.
 */
export function toOAuthPrincipal(
  issuer: string,
  claims: Claims,
  { expiresAt, readScopes, checked }: {
    readonly expiresAt?: number;
    /** The claims for `ctx.principal.claims`, as returned by the schema. */
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
  // Do not throw if `readScopes` returned `undefined`, because the first call that needs a scope reports the missing
  // scopes.
  const facts = { id, issuer, subject, clientId, scopes: readScopes(claims), expiresAt, claims: checked };
  const principal = readPrincipal(facts, "oauth({ readScopes })");
  if (!isAllScopes(principal.scopes ?? [])) return principal as OAuthPrincipal; // The cast is safe, because `facts` has these fields.
  throw new TypeError(
    "Cannot use the scopes that readScopes returned: a token cannot grant allScopes; return the names of the token's scopes",
  );
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

// Tests whether the subject of a token is a client instead of a user. Issuers mark such tokens in different ways, and
// each condition recognizes one of these ways.
function isClient({ sub, gty, idtyp }: Claims, clientId: string | undefined): boolean {
  return sub === clientId || gty === "client-credentials" || gty === "client_credentials" || idtyp === "app";
}
