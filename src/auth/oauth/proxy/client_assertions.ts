/**
 * Checks the assertions with which clients authenticate at the token endpoint.
 *
 * @see RFC 7523, section 3
 */
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import { ALGORITHMS } from "../jwt.ts";
import { type Client, OAuthError } from "./client.ts";
import type { ClientKeys } from "./metadata_documents.ts";

/** The facts against which the authentication of a client is checked. */
export interface AuthenticationFacts {
  readonly tokenEndpoint: string;
  /** Issuer identifier of this server. */
  readonly issuer: string;
  /** Time in milliseconds since 1970. */
  readonly now: number;
  /** Marks an id as used. Resolves to `false` if the id was used before, or if this is not known. */
  readonly markUsed: (use: AssertionId) => Promise<boolean>;
  /** Address of the caller, whose loads are limited. */
  readonly peer?: string;
}

/** The id of an assertion, which a client can use once. */
export interface AssertionId {
  readonly id: string;
  /** Time at which the assertion was created, in milliseconds since 1970. */
  readonly at: number;
  /** Milliseconds from `at` after which the assertion is not accepted. */
  readonly ttlMs: number;
}

export const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** Maximum length of an assertion in characters. */
const MAX_ASSERTION = 4096;
const MAX_ID = 256;
const MAX_AHEAD_MS = 300_000;
const SKEW_MS = 60_000;
/** Types of JWTs that are assertions. A JWT of another type was made for another purpose, such as an access token. */
const TYPES: readonly unknown[] = [undefined, "jwt", "client-authentication+jwt"];

/**
 * Checks an assertion of a client.
 *
 * @param loadKeys Returns the keys of the client. With `isRotated`, loads keys again that were loaded a while ago.
 * @throws {OAuthError} (as a rejection) if the assertion is refused.
 */
export async function checkAssertion(
  client: Client,
  assertion: string,
  facts: AuthenticationFacts,
  loadKeys: (isRotated: boolean) => Promise<ClientKeys>,
): Promise<void> {
  const claims = readClaims(client, assertion, facts);
  const use = toUse(client, claims, facts.now);
  if (!await isSigned(assertion, facts.now, loadKeys)) throw refuse("has no valid signature");
  // Marked last, because only the client may use up its ids.
  if (!await facts.markUsed(use)) throw refuse("was already used");
}

function refuse(state: string): OAuthError {
  return new OAuthError("invalid_client", `client_assertion ${state}`, 401);
}

/** Checks all members except for the signature, so that no keys are loaded for an assertion that is refused anyway. */
function readClaims({ id }: Client, assertion: string, { issuer, tokenEndpoint }: AuthenticationFacts): JWTPayload {
  if (assertion.length > MAX_ASSERTION) throw refuse(`is longer than ${MAX_ASSERTION} characters`);
  const { alg, typ, claims } = decode(assertion);
  if (typeof alg !== "string" || !ALGORITHMS.includes(alg)) throw refuse("has an algorithm that is not allowed");
  if (!TYPES.includes(typ?.toLowerCase().replace(/^application\//, ""))) throw refuse("is a JWT of another type");
  if (claims.iss !== id || claims.sub !== id) throw refuse("must have the client_id as iss and sub");
  // Further audiences are refused, because they could use the assertion here before the client does.
  const [audience, ...others] = [claims.aud].flat();
  if (others.length || audience !== issuer && audience !== tokenEndpoint) throw refuse("is for another audience");
  return claims;
}

function decode(assertion: string) {
  try {
    const { alg, typ } = decodeProtectedHeader(assertion);
    return { alg, typ: typeof typ === "string" ? typ : undefined, claims: decodeJwt(assertion) };
  } catch {
    throw refuse("is not a JWT");
  }
}

function toUse({ id }: Client, { exp, nbf, iat, jti }: JWTPayload, now: number): AssertionId {
  if (typeof jti !== "string" || jti === "" || jti.length > MAX_ID) throw refuse("has no valid jti");
  if (typeof exp !== "number" || exp * 1000 <= now - SKEW_MS) throw refuse("has expired, or has no exp");
  if (exp * 1000 > now + MAX_AHEAD_MS + SKEW_MS) throw refuse("expires in more than 5 minutes");
  for (const time of [nbf, iat]) {
    if (time === undefined) continue;
    if (typeof time !== "number" || time * 1000 > now + SKEW_MS) throw refuse("is not valid yet");
  }
  // The time depends only on the assertion, so that all uses of an assertion have the same time.
  const at = Math.max((iat ?? 0) * 1000, exp * 1000 - MAX_AHEAD_MS);
  return { id: JSON.stringify([id, jti]), at, ttlMs: Math.max(1, exp * 1000 + SKEW_MS - at) };
}

async function isSigned(
  assertion: string,
  now: number,
  loadKeys: (isRotated: boolean) => Promise<ClientKeys>,
): Promise<boolean> {
  const keys = await loadKeys(false);
  if (await verify(assertion, keys, now)) return true;
  const newer = await loadKeys(true);
  return newer !== keys && await verify(assertion, newer, now);
}

async function verify(assertion: string, find: ClientKeys, now: number): Promise<boolean> {
  // The times have been checked. jose compares whole seconds, so that it needs one more second.
  const clockTolerance = SKEW_MS / 1000 + 1;
  const options = { algorithms: [...ALGORITHMS], currentDate: new Date(now), clockTolerance };
  const isValid = (key: CryptoKey) => jwtVerify(assertion, key, options).then(() => true, () => false);
  try {
    await jwtVerify(assertion, find, options);
    return true;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return false;
    for await (const key of error) if (await isValid(key)) return true;
    return false;
  }
}
