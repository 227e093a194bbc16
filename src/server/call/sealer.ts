/**
 * Seals values that clients store for the server, so that clients cannot read or change the values.
 */
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import type { Cipher } from "./cipher.ts";

/** The realm prevents a server from opening values that another server has sealed with the same secret. */
export interface SealerOptions {
  /** A secret, or a list of secrets that begins with the newest secret. Defaults to a random key. */
  readonly secret?: string | readonly string[];
  /** Text that distinguishes the server from other servers with the same secret, such as the server's name and path. */
  readonly realm: string;
}

/**
 * Seals values with AES-GCM and the newest secret, and opens values with any secret in the list, so that secrets can be
 * rotated. Without a secret, the key is random, and sealed values cannot be opened after a restart or by another
 * instance.
 */
export class Sealer {
  /** Whether other processes can open the values that this process seals. */
  readonly isShared: boolean;
  readonly realm: string;
  readonly #cipher: LazyModule<Cipher>;
  readonly #secrets: readonly string[];
  /** Whether the server has warned of a value that was sealed with another secret. */
  hasWarned = false;

  /** @throws {TypeError} if a secret has fewer than 32 characters, because a short secret could be guessed. */
  constructor({ secret, realm }: SealerOptions) {
    this.realm = realm;
    const secrets = secret === undefined ? [] : readSecrets(secret);
    this.isShared = secrets.length > 0;
    const short = secrets.find((text) => text.length < 32);
    if (short !== undefined) {
      const state = short ? "it has fewer than 32 characters" : "it is empty";
      throw new TypeError(`Cannot use the secret: ${state}; \`openssl rand -hex 32\` creates a suitable secret`);
    }
    this.#secrets = secrets;
    this.#cipher = new LazyModule(async () => new (await import("./cipher.ts")).Cipher(realm, secrets));
  }

  /** Returns a sealer with the same secret for another realm. */
  within(realm: string): Sealer {
    return new Sealer({ secret: this.isShared ? this.#secrets : undefined, realm });
  }

  /** Seals a JSON value to letters, digits, `-` and `_`. Only `open` with the same `purpose` can open the text. */
  async seal(purpose: string, value: unknown): Promise<string> {
    return await (this.#cipher.loaded ?? await this.#cipher.load()).seal(purpose, value);
  }

  /** Returns `undefined` if the text was changed, or was sealed by another server or for another purpose. */
  async open(purpose: string, text: string): Promise<unknown> {
    return await (this.#cipher.loaded ?? await this.#cipher.load()).open(purpose, text);
  }

  /** Returns a digest of a text with each secret, the newest first, which nobody without the secret can compute. */
  async digest(text: string): Promise<readonly string[]> {
    return await (this.#cipher.loaded ?? await this.#cipher.load()).digest(text);
  }
}

function readSecrets(secret: string | readonly string[]): readonly string[] {
  const secrets: readonly unknown[] = [secret].flat();
  // Reject an empty list. Otherwise the server would silently use a random key.
  if (secrets.length && secrets.every((each) => typeof each === "string")) return secrets;
  throw new TypeError(
    "Cannot use the secret: it is not a string or a non-empty list of strings; omit secret to use a random key",
  );
}
