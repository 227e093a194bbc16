/**
 * Verifies JWT access tokens.
 */
import { decodeJwt, decodeProtectedHeader, errors, type JWTHeaderParameters, jwtVerify } from "jose";
import { checkClaims, type ClaimRules, InvalidToken, isIdToken } from "./claims.ts";
import type { Claims } from "./caller.ts";
import type { Issuer, IssuerKeys } from "./issuer.ts";

export interface JwtRules extends ClaimRules {
  /** The trusted issuers. The keys are the issuers' names, as in the `iss` claim. */
  readonly issuers: ReadonlyMap<string, Issuer>;
  readonly algorithms: readonly string[];
  /** Whether the `typ` of a token must be `at+jwt`. If `false`, `typ` may also be `JWT` or missing. */
  readonly needsType: boolean;
}

export interface VerifiedJwt {
  readonly issuer: Issuer;
  readonly claims: Claims;
  /** Time at which the token expires, in milliseconds since 1970. */
  readonly expiresAt: number;
  /** The keys that verified the signature. */
  readonly keys: IssuerKeys;
}

/** All use a public key. With a shared key, anyone who can verify a token could also create tokens. */
export const ALGORITHMS: readonly string[] = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** Maximum number of matching keys that are tried for one token. */
const MAX_KEYS = 8;

/** Returns `undefined` if the token is not a JWT. */
export function readJwtHeader(token: string): JWTHeaderParameters | undefined {
  try {
    const { alg, ...header } = decodeProtectedHeader(token);
    return token.split(".").length === 3 && typeof alg === "string" ? { ...header, alg } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Checks the header and the claims before the signature, so that the server does not load keys for a token that it
 * refuses anyway.
 *
 * @throws {InvalidToken} if the token is refused.
 * @throws {Unavailable} if the keys of the token's issuer cannot be loaded.
 */
export async function verifyJwt(
  token: string,
  { header, rules, now }: { readonly header: JWTHeaderParameters; readonly rules: JwtRules; readonly now: number },
): Promise<VerifiedJwt> {
  const { issuers, algorithms, needsType, skewMs } = rules;
  if (!algorithms.includes(header.alg)) throw new InvalidToken("the signature algorithm of the token is not allowed");
  if (!isAccessToken(header.typ, needsType)) throw new InvalidToken("the token is not an access token");
  const claims = readClaims(token);
  if (!isAccessToken(header.typ, true) && isIdToken(claims)) throw new InvalidToken("the token is an ID token");
  const issuer = typeof claims.iss === "string" ? issuers.get(claims.iss) : undefined;
  if (!issuer) throw new InvalidToken("the issuer of the token is not trusted");
  const expiresAt = checkClaims(claims, rules, now);
  if (expiresAt === undefined) throw new InvalidToken("the token has no expiry time (exp)");
  // Add one second to the tolerance, because jose compares whole seconds, and must not refuse a token whose exact times
  // `checkClaims` has accepted.
  const options = { algorithms: [...algorithms], currentDate: new Date(now), clockTolerance: skewMs / 1000 + 1 };
  const keys = await issuer.keys.get(now);
  try {
    await verifySignature(token, keys, options);
    return { issuer, claims, expiresAt, keys };
  } catch (error) {
    if (!isKeyMissing(error, header)) throw toInvalid(error);
  }
  // Load the keys again, because the issuer may have rotated its keys.
  const newer = await issuer.keys.renew(now);
  if (!newer || newer === keys) throw new InvalidToken("the token is signed with an unknown key");
  try {
    await verifySignature(token, newer, options);
    return { issuer, claims, expiresAt, keys: newer };
  } catch (error) {
    throw toInvalid(error);
  }
}

// Unless `needsType` is set, accept `JWT` and a missing type, because some issuers do not mark access tokens.
function isAccessToken(typ: string | undefined, needsType: boolean): boolean {
  const type = typ?.toLowerCase().replace(/^application\//, "");
  return type === "at+jwt" || !needsType && (type === undefined || type === "jwt");
}

function readClaims(token: string): Claims {
  try {
    return decodeJwt(token);
  } catch {
    throw new InvalidToken("the token is malformed");
  }
}

type VerifyOptions = NonNullable<Parameters<typeof jwtVerify>[2]>;

async function verifySignature(token: string, { find }: IssuerKeys, options: VerifyOptions): Promise<void> {
  try {
    await jwtVerify(token, find, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    await tryKeys(token, error, options);
  }
}

// Try each key that matches the token, because the keys of some issuers have no ids.
async function tryKeys(token: string, keys: AsyncIterable<CryptoKey>, options: VerifyOptions): Promise<void> {
  let tried = 0;
  let failure: unknown;
  for await (const key of keys) {
    if (++tried > MAX_KEYS) break;
    try {
      await jwtVerify(token, key, options);
      return;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function isKeyMissing(error: unknown, { kid }: JWTHeaderParameters): boolean {
  return error instanceof errors.JWKSNoMatchingKey ||
    // If the token has no key id, jose cannot tell that the signing key is missing, and reports an invalid signature.
    kid === undefined && error instanceof errors.JWSSignatureVerificationFailed;
}

function toInvalid(error: unknown): unknown {
  if (!(error instanceof errors.JOSEError)) return error;
  const isKeyless = error instanceof errors.JWKSNoMatchingKey;
  return new InvalidToken(isKeyless ? "the token is signed with an unknown key" : "the token has no valid signature");
}
