/**
 * Seals and opens values with AES-GCM.
 */
import { hmac } from "../../core/kit/hmac.ts";
import { fromBase64Url, toBase64Url } from "../../core/kit/base64.ts";

/** Encrypts with AES-GCM and the first secret of a list, and decrypts with any secret in the list. */
export class Cipher {
  readonly #realm: string;
  readonly #secrets: readonly (string | undefined)[];
  readonly #keys: Promise<CryptoKey>[] = [];

  /** `realm` separates the sealed values of different servers. If `secrets` is empty, the cipher uses a random key. */
  constructor(realm: string, secrets: readonly string[]) {
    this.#realm = realm;
    this.#secrets = secrets.length ? secrets : [undefined];
  }

  async seal(purpose: string, value: unknown): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const plain = new TextEncoder().encode(JSON.stringify(value));
    const sealed = await crypto.subtle.encrypt(this.#toAlgorithm(purpose, iv), await this.#key(0), plain);
    const bytes = new Uint8Array(12 + sealed.byteLength);
    bytes.set(iv);
    bytes.set(new Uint8Array(sealed), 12);
    return toBase64Url(bytes);
  }

  /** Returns `undefined` if the text was changed, or was sealed with an unknown secret or another purpose. */
  async open(purpose: string, text: string): Promise<unknown> {
    const bytes = fromBase64Url(text);
    if (!bytes || bytes.length < 28) return;
    const iv = bytes.slice(0, 12);
    for (let i = 0; i < this.#secrets.length; i++) {
      try {
        const plain = await crypto.subtle.decrypt(this.#toAlgorithm(purpose, iv), await this.#key(i), bytes.slice(12));
        return JSON.parse(new TextDecoder().decode(plain));
      } catch {
        // The value may be sealed with another secret in the list.
      }
    }
  }

  /** Returns a digest of a text with each secret. Without a secret, anybody can compute the digest. */
  async digest(text: string): Promise<readonly string[]> {
    const named = JSON.stringify([this.#realm, text]);
    return await Promise.all(this.#secrets.map((secret = this.#realm) => hmac(secret, named)));
  }

  #key(index: number): Promise<CryptoKey> {
    return this.#keys[index] ??= toKey(this.#toBytes(this.#secrets[index]));
  }

  // Create the random key on first use, because Cloudflare Workers does not allow random values while a module is
  // loading.
  #toBytes(secret: string | undefined): Uint8Array<ArrayBuffer> {
    return secret === undefined ? crypto.getRandomValues(new Uint8Array(32)) : new TextEncoder().encode(secret);
  }

  // Encode realm and purpose as JSON, so that two different pairs never give the same text.
  #toAlgorithm(purpose: string, iv: Uint8Array<ArrayBuffer>): AesGcmParams {
    return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(JSON.stringify([this.#realm, purpose])) };
  }
}

async function toKey(secret: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  const base = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
  const derivation = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: new TextEncoder().encode("mcp") };
  return await crypto.subtle.deriveKey(derivation, base, { name: "AES-GCM", length: 256 }, false, [
    "encrypt",
    "decrypt",
  ]);
}
