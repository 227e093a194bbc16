/**
 * Checks whether a token was issued for this server, and has not expired.
 *
 * @see specification/2026-07-28/basic/authorization (Token Handling)
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";
import { isScope } from "../../server/call/scopes.ts";
import type { Claims } from "./caller.ts";

/**
 * The error for a token that the server refuses. The client receives the message, so the message is a fixed text and
 * contains no part of the token.
 */
export class InvalidToken extends Error {
  /** More details about the reason. Only `observer.auth` receives them. */
  readonly detail?: string;

  /** `message` is for the client, and `detail` for the observer. */
  constructor(message: string, detail?: string) {
    super(message);
    this.detail = detail;
  }
}

export interface ClaimRules {
  /** Audiences that this server accepts. The `aud` claim must contain at least one of these audiences. */
  readonly audiences: ReadonlySet<string>;
  /** Tolerated difference between this server's clock and an issuer's clock, in milliseconds. */
  readonly skewMs: number;
}

/**
 * Checks the claims `aud`, `exp` and `nbf` of a token. Returns the time at which the token expires, in milliseconds
 * since 1970, or `undefined` if the token has no `exp`.
 */
export function checkClaims(claims: Claims, { audiences, skewMs }: ClaimRules, now: number): number | undefined {
  const { aud, exp, nbf } = claims;
  if (exp !== undefined && !isTime(exp) || nbf !== undefined && !isTime(nbf)) {
    throw new InvalidToken("exp or nbf of the token is not a valid time");
  }
  if (exp !== undefined && exp * 1000 + skewMs <= now) throw new InvalidToken("the token has expired");
  if (nbf !== undefined && nbf * 1000 - skewMs > now) throw new InvalidToken("the token is not yet valid");
  const list = Array.isArray(aud) ? aud : [aud];
  if (!list.some((each) => typeof each === "string" && audiences.has(toAudience(each)))) {
    throw new InvalidToken("the token was not issued for this server");
  }
  return exp === undefined ? undefined : exp * 1000;
}

/**
 * Returns the thumbprint of the key that a token is bound to, or `undefined` if the token is not bound to a key.
 *
 * @throws {InvalidToken} if the token is bound in a way that this server cannot check, such as to a certificate,
 * because a thief could use the token without this check.
 */
export function readThumbprint({ cnf, token_type: type }: Claims): string | undefined {
  const isBound = typeof type === "string" && /^dpop$/i.test(type);
  if (cnf === undefined && !isBound) return;
  const { jkt, ...others } = isObject(cnf) ? cnf : {};
  if (typeof jkt === "string" && /^[\w-]{43}$/.test(jkt) && !Object.keys(others).length) return jkt;
  throw new InvalidToken("the token is bound to a key in a way that is not supported (cnf)");
}

/**
 * Tests whether the claims belong to an ID token, which describes a user to a client and does not grant access.
 * Usually, only ID tokens have a `nonce`. Issuers that also put `nonce` into access tokens mark access tokens with
 * `typ: "Bearer"`.
 */
export function isIdToken({ nonce, at_hash: atHash, c_hash: codeHash, typ }: Claims): boolean {
  if (atHash !== undefined || codeHash !== undefined || typ === "ID") return true;
  return nonce !== undefined && !(typeof typ === "string" && /^bearer$/i.test(typ));
}

/**
 * Reads the scopes of a token from the `scope` or `scp` claim. A token with neither claim grants no scopes.
 *
 * @throws {InvalidToken} if the claim is not a list of valid scopes.
 */
export function readGranted({ scope, scp }: Claims): readonly string[] {
  const given = scope ?? scp;
  const list = typeof given === "string" ? given.split(" ").filter(Boolean) : given ?? [];
  if (Array.isArray(list) && list.every(isScope)) return list;
  throw new InvalidToken("the token has invalid scopes");
}

/** The largest time that a `Date` can represent, in seconds since 1970. */
const MAX_TIME = 8_640_000_000_000;

function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= MAX_TIME;
}

/** Converts the scheme and the host of a URL to lower case, and an empty path to `/`. */
export function toAudience(text: string): string {
  return /^https?:/i.test(text) && !MOVED.test(text) ? URL.parse(text)?.href ?? text : text;
}

// Matches URLs whose path a URL parser would change. For example, the parser turns `/a/../b` into `/b`, and removes
// line breaks. Such URLs are not normalized, because a token that was issued for one path would otherwise be valid for
// another path.
const MOVED = /[\\/](\.|%2e){1,2}([\\/?#]|$)|[\\\t\n\r]/i;
