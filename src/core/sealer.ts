/**
 * Values that travel through a client and come back: nobody can read or change them on the way.
 *
 * @module
 */
import type { Cipher } from "./cipher.ts";

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
  readonly #secrets: readonly string[];
  #cipher?: Promise<Cipher>;

  /** A sealer of one server. A short secret is refused, because it could be guessed. */
  constructor({ secret = [], realm }: SealerOptions) {
    this.#realm = realm;
    this.#secrets = typeof secret === "string" ? [secret] : secret;
    this.isShared = this.#secrets.length > 0;
    const short = this.#secrets.find((text) => text.length < 32);
    if (short !== undefined) {
      const state = short ? "it has fewer than 32 characters" : "it is empty";
      throw new TypeError(`Cannot use the secret: ${state}; \`openssl rand -hex 32\` makes a good one`);
    }
  }

  /** A JSON value as an opaque text of letters, digits, `-` and `_`; `purpose` must be the same at both ends. */
  async seal(purpose: string, value: unknown): Promise<string> {
    return await (await this.#load()).seal(purpose, value);
  }

  /** What was sealed; `undefined` if it was changed, or sealed by another server or for another purpose. */
  async open(purpose: string, text: string): Promise<unknown> {
    return await (await this.#load()).open(purpose, text);
  }

  // Loaded with the first seal: many servers need none.
  #load(): Promise<Cipher> {
    return this.#cipher ??= import("./cipher.ts").then(({ Cipher }) => new Cipher(this.#realm, this.#secrets));
  }
}
