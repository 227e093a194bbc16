/**
 * Checks DPoP proofs (RFC 9449). With a proof, a client shows that it has the private key to which its token is bound.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from "jose";
import { type AuthRefusal, type AuthRequestInfo, refuseRequest } from "../../server/engine/auth.ts";
import type { ServerHandle } from "../../server/engine/server_handle.ts";
import { sha256 } from "../../core/kit/sha256.ts";

export const PROOF = "dpop";

/**
 * Signature algorithms that are accepted for proofs. RSA is excluded, because each proof contains the public key, and
 * RSA keys are long.
 */
export const PROOF_ALGORITHMS: readonly string[] = ["ES256", "ES384", "ES512", "Ed25519", "EdDSA"];

/** The error for a proof that the server refuses. The client receives the message, so the message is a fixed text. */
export class InvalidProof extends Error {}

/** A request with a token that is bound to a key. `check` reads the proof from the headers of `request`. */
export interface ProvenRequest {
  readonly request: Request;
  readonly token: string;
  readonly thumbprint: string;
  readonly principal: string;
  /** Public URL of the requested resource. */
  readonly resource: URL;
}

/** Maximum length of a proof in characters. */
const MAX_PROOF = 4096;
/** Maximum length of a proof's `jti` in characters. */
const MAX_ID = 256;
/**
 * Maximum difference between the `iat` of a proof and the server's time, in milliseconds. A proof from a client with a
 * fast clock is accepted for up to twice this time.
 */
const WINDOW_MS = 60_000;

/**
 * Checks the proof of a request, and marks it as used, so that no proof is accepted twice. Resolves to `undefined` if the
 * proof is accepted. Resolves to a refusal if the server cannot tell whether the proof was used before.
 *
 * @throws {InvalidProof} (as a rejection) if the proof is refused.
 */
export async function checkProof(
  proven: ProvenRequest,
  { now }: AuthRequestInfo,
  server: ServerHandle,
): Promise<AuthRefusal | undefined> {
  const { thumbprint, principal } = proven;
  const { iat: at, jti } = await verify(proven, now);
  const id = JSON.stringify([thumbprint, jti]);
  const use = await server.markUsed({ id, principal, key: thumbprint, at, ttlMs: WINDOW_MS });
  if (use === "used") throw new InvalidProof("the proof was already used");
  if (use === "too-old") {
    return refuseRequest(429, {
      reason: "the key has used too many newer proofs, or the caller has used too many keys; create a new proof",
    });
  }
  if (use === "unknown") {
    return refuseRequest(503, {
      reason: "the store does not report whether the proof was already used; try again later",
    });
  }
}

async function verify(
  { request, token, thumbprint, resource }: ProvenRequest,
  now: number,
): Promise<{ readonly iat: number; readonly jti: string }> {
  const proof = request.headers.get(PROOF) ?? "";
  if (!proof) throw new InvalidProof("it has no proof; send a proof in the DPoP header");
  if (proof.length > MAX_PROOF) throw new InvalidProof("the proof is longer than 4096 characters");
  // `Headers` joins repeated headers with commas, and a proof contains no comma.
  if (proof.includes(",")) throw new InvalidProof("it has more than one proof");
  const { htm, htu, ath, iat, jti } = await readClaims(proof, thumbprint, now);
  if (htm !== request.method) throw new InvalidProof("the proof is for another HTTP method");
  const { pathname } = new URL(request.url);
  const target = typeof htu === "string" ? URL.parse(htu) : null;
  // Accept the path of the resource and the path of the request. These paths differ if several endpoints share a
  // resource, or if a proxy rewrites the path. Compare the origin only with the origin of the resource, because a proxy
  // may change the host of the request.
  const isHere = target?.origin === resource.origin && [resource.pathname, pathname].includes(target.pathname);
  if (!isHere) throw new InvalidProof("the proof is for another URL");
  if (ath !== await sha256(token)) throw new InvalidProof("the proof is for another token");
  if (typeof iat !== "number" || !(Math.abs(iat * 1000 - now) <= WINDOW_MS)) {
    throw new InvalidProof(
      "iat of the proof is missing or differs from the server's time by more than 60 seconds; check the client's clock",
    );
  }
  if (typeof jti !== "string" || !jti || jti.length > MAX_ID) {
    throw new InvalidProof("jti of the proof is missing or longer than 256 characters");
  }
  return { iat: iat * 1000, jti };
}

/** Throws `InvalidProof` if the proof is not signed with the key that has the given thumbprint. */
async function readClaims(proof: string, thumbprint: string, now: number): Promise<JWTPayload> {
  try {
    const { jwk } = decodeProtectedHeader(proof);
    if (!jwk || "d" in jwk || "k" in jwk) throw new InvalidProof("the proof has no public key");
    if (await calculateJwkThumbprint(jwk) !== thumbprint) {
      throw new InvalidProof("the key in the proof is not the key that the token is bound to");
    }
    const options = { typ: "dpop+jwt", algorithms: [...PROOF_ALGORITHMS], currentDate: new Date(now) };
    return (await jwtVerify(proof, EmbeddedJWK, options)).payload;
  } catch (error) {
    if (error instanceof InvalidProof) throw error;
    if (error instanceof errors.JOSEAlgNotAllowed) {
      throw new InvalidProof("the signature algorithm of the proof is not allowed");
    }
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === "typ") {
      throw new InvalidProof("typ of the proof is not dpop+jwt");
    }
    // Treat any other error as an invalid signature, because runtimes throw different errors for a key that they cannot
    // import.
    throw new InvalidProof("the proof has no valid signature");
  }
}
