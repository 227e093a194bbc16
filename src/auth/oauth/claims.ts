/**
 * Checks whether a token was issued for this server, and is valid now.
 *
 * @see specification/2026-07-28/basic/authorization (Token Handling)
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import { isScope } from "../../core/call/scopes.ts";
import type { Claims } from "./caller.ts";

/** The reason why a token is refused. The message is a fixed text for the client, and contains no part of the token. */
export class InvalidToken extends Error {
  /** Further details, which only the observer receives. */
  readonly detail?: string;

  /** Creates the error. */
  constructor(message: string, detail?: string) {
    super(message);
    this.detail = detail;
  }
}

/** Rules for the claims of a token. */
export interface ClaimRules {
  /** Audiences in tokens that are accepted for this server. */
  readonly audiences: ReadonlySet<string>;
  /** Tolerated difference between the clocks of this server and of an issuer, in milliseconds. */
  readonly skewMs: number;
}

/**
 * Checks the claims of a token, except for its issuer. Returns the time at which the token expires, in milliseconds
 * since 1970, or `undefined` if the claims do not state it.
 */
export function checkClaims(claims: Claims, { audiences, skewMs }: ClaimRules, now: number): number | undefined {
  const { aud, exp, nbf } = claims;
  if (exp !== undefined && !isTime(exp) || nbf !== undefined && !isTime(nbf)) {
    throw new InvalidToken("the token has an invalid time");
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
 * Returns the thumbprint of the key that a token is bound to, or `undefined` for a token that is not bound.
 *
 * @throws {InvalidToken} if the token is bound in a way that this server cannot check. If the server accepted the token
 * without a proof, a thief could use it.
 */
export function readThumbprint({ cnf, token_type: type }: Claims): string | undefined {
  const isBound = typeof type === "string" && /^dpop$/i.test(type);
  if (cnf === undefined && !isBound) return;
  const { jkt, ...others } = isObject(cnf) ? cnf : {};
  if (typeof jkt === "string" && /^[\w-]{43}$/.test(jkt) && !Object.keys(others).length) return jkt;
  throw new InvalidToken("the token is bound to a key in a way that is not supported");
}

/**
 * Tests for the claims of an ID token, which describes a user to a client and does not grant access. Some issuers put
 * `nonce` into access tokens too, and mark access tokens by their type.
 */
export function isIdToken({ nonce, at_hash: atHash, c_hash: codeHash, typ }: Claims): boolean {
  if (atHash !== undefined || codeHash !== undefined || typ === "ID") return true;
  return nonce !== undefined && !(typeof typ === "string" && /^bearer$/i.test(typ));
}

/**
 * Reads the scopes of a token. A token without a scope claim grants no scopes.
 *
 * @throws {InvalidToken} if the claim is not a list of valid scopes.
 */
export function readGranted({ scope, scp }: Claims): readonly string[] {
  const given = scope ?? scp;
  const list = typeof given === "string" ? given.split(" ").filter(Boolean) : given ?? [];
  if (Array.isArray(list) && list.every(isScope)) return list;
  throw new InvalidToken("the token has scopes that are not valid");
}

/** The last time that a `Date` can hold, in seconds. */
const MAX_TIME = 8_640_000_000_000;

function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= MAX_TIME;
}

/** Normalizes an audience: scheme and host of a URL in lower case, and a path of at least `/`. */
export function toAudience(text: string): string {
  return /^https?:/i.test(text) && !MOVED.test(text) ? URL.parse(text)?.href ?? text : text;
}

// Matches paths that a URL parser changes: it turns `/a/../b` into `/b`, and drops line breaks. A token issued for one
// path would then be valid for another path.
const MOVED = /[\\/](\.|%2e){1,2}([\\/?#]|$)|[\\\t\n\r]/i;
