/**
 * A key to which tokens are bound, and proofs that the client possesses the key (DPoP).
 *
 * @see RFC 9449, sections 4, 8 and 9
 */
import { type CryptoKeyPair, DPoP, type DPoPHandle } from "oauth4webapi";
import { exportJWK, type JWK, SignJWT } from "jose";
import { sha256 } from "../../core/kit/sha256.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;

export class ProofKey {
  /** The private key, to store with the tokens that are bound to it. */
  readonly jwk: JWK;
  readonly #pair: CryptoKeyPair;
  readonly #publicJwk: JWK;
  /** Creates proofs for requests to authorization servers, and remembers the nonces that these servers require. */
  readonly handle: DPoPHandle;
  /** The nonce that the MCP server requires in proofs. */
  #nonce: string | undefined;

  private constructor(pair: CryptoKeyPair, jwk: JWK) {
    this.#pair = pair;
    this.jwk = jwk;
    this.#publicJwk = toPublic(jwk);
    this.handle = DPoP({}, pair);
  }

  static async create(): Promise<ProofKey> {
    const pair = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    return new ProofKey(pair, await exportJWK(pair.privateKey));
  }

  static async read(jwk: JWK): Promise<ProofKey> {
    const [privateKey, publicKey] = await Promise.all([
      crypto.subtle.importKey("jwk", jwk, ALGORITHM, true, ["sign"]),
      crypto.subtle.importKey("jwk", toPublic(jwk), ALGORITHM, true, ["verify"]),
    ]);
    return new ProofKey({ privateKey, publicKey }, jwk);
  }

  /** Returns `false` if the nonce is already set. */
  useNonce(nonce: string): boolean {
    if (nonce === this.#nonce) return false;
    this.#nonce = nonce;
    return true;
  }

  /** Returns the value of the `DPoP` header: the proof for one request to the MCP server. */
  async prove(method: string, url: string, token: string): Promise<string> {
    const { origin, pathname } = new URL(url);
    const claims = { htm: method, htu: origin + pathname, ath: await sha256(token) };
    return await new SignJWT({ ...claims, ...this.#nonce === undefined ? {} : { nonce: this.#nonce } })
      .setProtectedHeader({ typ: "dpop+jwt", alg: "ES256", jwk: this.#publicJwk })
      .setJti(crypto.randomUUID())
      .setIssuedAt()
      .sign(this.#pair.privateKey);
  }
}

function toPublic({ kty, crv, x, y }: JWK): JWK {
  return { kty, crv, x, y };
}
