/**
 * Checks the proofs by which callers show that they possess the private key to which their token is bound (DPoP, RFC
 * 9449).
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from "jose";
import { type AuthFacts, type AuthRefusal, refuseRequest } from "../../core/auth.ts";
import { type Mark, type Marking, toClientHash } from "../../core/marked_ids.ts";
import { KnownMarks, toMarkTtl } from "../../core/marking.ts";
import { USED } from "../../core/used_ids.ts";
import { systemClock } from "../../core/capacity/timers.ts";
import { toBase64Url } from "../../kit/base64.ts";

/** Name of the header that contains the proof. */
export const PROOF = "dpop";

/** Signature algorithms of proofs. RSA is excluded, because each request repeats the key, and RSA keys are long. */
export const PROOF_ALGORITHMS: readonly string[] = ["ES256", "ES384", "ES512", "Ed25519", "EdDSA"];

/** The reason why a proof is refused. The message is a fixed text for the client. */
export class InvalidProof extends Error {}

/** A request that presents a token with a proof. */
export interface ProvenRequest {
  readonly request: Request;
  readonly token: string;
  /** Thumbprint of the key that the token is bound to. */
  readonly thumbprint: string;
  /** Id of the principal of the token. */
  readonly principal: string;
  /** The resource that the request is for, as its public URL. */
  readonly resource: URL;
}

/** Maximum length of a proof in characters. */
const MAX_PROOF = 4096;
/** Maximum length of the id of a proof in characters. */
const MAX_ID = 256;
/**
 * Tolerated difference between the clocks of the server and of a client, in milliseconds. A proof is accepted for twice
 * this time.
 */
const WINDOW_MS = 60_000;
const TTL_MS = toMarkTtl(2 * WINDOW_MS);

/** Checks proofs, and remembers the proofs that were used. */
export class Proofs {
  readonly #used = new KnownMarks(systemClock, TTL_MS);

  /**
   * Checks the proof of a request, and marks it as used. Resolves to `undefined` if the proof is accepted, or to a
   * refusal if the check failed for a reason other than the proof.
   *
   * @throws {InvalidProof} (as a rejection) if the proof is refused.
   */
  async check(proven: ProvenRequest, facts: AuthFacts): Promise<AuthRefusal | undefined> {
    const { iat, jti } = await verify(proven, facts.now);
    const id = await hash(JSON.stringify([proven.thumbprint, jti]));
    // Proofs have separate mark sets, because many proofs would otherwise move the cut-off of other marks.
    const client = `d${(await toClientHash(`principal ${proven.principal}`)).slice(1)}`;
    const mark = { client, at: iat, id };
    const { found } = await (facts[USED] ? facts[USED].spend(mark, TTL_MS) : this.#spend(mark)) ?? { found: "unknown" };
    if (found === "marked") throw new InvalidProof("the proof was used before");
    if (found === "cut off") {
      return refuseRequest(429, { reason: "the caller uses too many proofs; create a new proof" });
    }
    if (found) return refuseRequest(503, { reason: "the store does not report whether the proof was used before" });
  }

  // Runs without an `await`, so that no other check can run between finding and adding the mark.
  #spend(mark: Mark): Marking {
    const known = this.#used.find(mark);
    if (!known.found) this.#used.add(mark);
    return known;
  }
}

async function verify(
  { request, token, thumbprint, resource }: ProvenRequest,
  now: number,
): Promise<{ readonly iat: number; readonly jti: string }> {
  const proof = request.headers.get(PROOF) ?? "";
  if (!proof) throw new InvalidProof("it has no proof; send one in the DPoP header");
  if (proof.length > MAX_PROOF) throw new InvalidProof("the proof is too long");
  // Several headers of the same name arrive joined by commas. A proof contains no comma.
  if (proof.includes(",")) throw new InvalidProof("it has more than one proof");
  const { htm, htu, ath, iat, jti } = await readClaims(proof, thumbprint, now);
  if (htm !== request.method) throw new InvalidProof("the proof is for another method");
  const { pathname } = new URL(request.url);
  const target = typeof htu === "string" ? URL.parse(htu) : null;
  // Accept both paths: several endpoints may share a resource, and behind a proxy the host and the path of the request
  // may differ from the public URL.
  const isHere = target?.origin === resource.origin && [resource.pathname, pathname].includes(target.pathname);
  if (!isHere) throw new InvalidProof("the proof is for another URL");
  if (ath !== await hash(token)) throw new InvalidProof("the proof is for another token");
  if (typeof iat !== "number" || !(Math.abs(iat * 1000 - now) <= WINDOW_MS)) {
    throw new InvalidProof("the proof was not made just now; check the clock");
  }
  if (typeof jti !== "string" || !jti || jti.length > MAX_ID) throw new InvalidProof("the proof has no usable jti");
  return { iat: iat * 1000, jti };
}

/** Returns the claims of a proof. Throws if it is not signed with the key of the thumbprint. */
async function readClaims(proof: string, thumbprint: string, now: number): Promise<JWTPayload> {
  try {
    const { jwk } = decodeProtectedHeader(proof);
    if (!jwk || "d" in jwk || "k" in jwk) throw new InvalidProof("the proof has no public key");
    if (await calculateJwkThumbprint(jwk) !== thumbprint) throw new InvalidProof("the proof has another key");
    const options = { typ: "dpop+jwt", algorithms: [...PROOF_ALGORITHMS], currentDate: new Date(now) };
    return (await jwtVerify(proof, EmbeddedJWK, options)).payload;
  } catch (error) {
    if (error instanceof InvalidProof) throw error;
    if (error instanceof errors.JOSEAlgNotAllowed) {
      throw new InvalidProof("the proof is signed in a way that is not allowed");
    }
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === "typ") {
      throw new InvalidProof("the proof is of another type");
    }
    // Any other error also means an invalid signature: the runtime may throw any error for a key that it cannot import.
    throw new InvalidProof("the proof has no valid signature");
  }
}

async function hash(text: string): Promise<string> {
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}
