/**
 * Values that travel through a client and come back: nobody can read or change them on the way.
 *
 * @module
 */
import { fromBase64Url, toBase64Url } from "../protocol/base64.ts";

/** Whose seals these are: what one server sealed must not open at another that shares its secret. */
export interface SealerOptions {
  /** One or more secrets, newest first; random if there is none. */
  readonly secret?: string | readonly string[];
  /** What sets the server apart from others, such as its name and path. */
  readonly realm: string;
}

/**
 * Seals with AES-GCM under the newest secret and opens under any of them, so that secrets can be rotated. Without a
 * secret the key is random: what was sealed before a restart, or by another instance, cannot be opened.
 */
export class Sealer {
  /** Whether other processes can open what this one sealed. */
  readonly isShared: boolean;
  readonly #realm: string;
  readonly #secrets: readonly (Uint8Array<ArrayBuffer> | undefined)[];
  readonly #keys: Promise<CryptoKey>[] = [];

  /** A sealer of one server. A short secret is refused: it could be guessed. */
  constructor({ secret = [], realm }: SealerOptions) {
    const texts = typeof secret === "string" ? [secret] : secret;
    for (const text of texts) {
      if (text.length < 32) {
        throw new TypeError(
          "Cannot use the secret: it has fewer than 32 characters; `openssl rand -hex 32` makes a good one",
        );
      }
    }
    this.#realm = realm;
    this.isShared = texts.length > 0;
    this.#secrets = texts.length ? texts.map((text) => new TextEncoder().encode(text)) : [undefined];
  }

  /** A JSON value as an opaque text of letters, digits, `-` and `_`; `purpose` must be the same at both ends. */
  async seal(purpose: string, value: unknown): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const plain = new TextEncoder().encode(JSON.stringify(value));
    const sealed = await crypto.subtle.encrypt(this.#toAlgorithm(purpose, iv), await this.#key(0), plain);
    const bytes = new Uint8Array(12 + sealed.byteLength);
    bytes.set(iv);
    bytes.set(new Uint8Array(sealed), 12);
    return toBase64Url(bytes);
  }

  /** What was sealed; `undefined` if it was changed, or sealed under another secret or for another purpose. */
  async open(purpose: string, text: string): Promise<unknown> {
    const bytes = fromBase64Url(text);
    if (!bytes || bytes.length < 28) return;
    const iv = bytes.slice(0, 12);
    for (let i = 0; i < this.#secrets.length; i++) {
      try {
        const plain = await crypto.subtle.decrypt(this.#toAlgorithm(purpose, iv), await this.#key(i), bytes.slice(12));
        return JSON.parse(new TextDecoder().decode(plain));
      } catch {
        // Not this secret: the next one may fit.
      }
    }
  }

  #key(index: number): Promise<CryptoKey> {
    // Random only when it is needed: Workers refuse randomness while a module, and with it a server, is loading.
    return this.#keys[index] ??= toKey(this.#secrets[index] ?? crypto.getRandomValues(new Uint8Array(32)));
  }

  // As JSON, so that no realm and purpose together read like another pair.
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
