/**
 * Seals values that clients carry, so that nobody can read or change them.
 *
 * @module
 */
import { Cipher } from "./cipher.ts";

/**
 * The secrets and the identity of a sealer. A server cannot open values that another server has sealed with the same
 * secret.
 */
export interface SealerOptions {
  /** A secret, or a list of secrets with the newest first. Defaults to a random key. */
  readonly secret?: string | readonly string[];
  /** Identity of the server among all servers with the same secret, such as its name and path. */
  readonly realm: string;
}

/**
 * Seals with AES-GCM under the newest secret, and opens under any secret in the list, so that secrets can be rotated.
 * Without a secret, the key is random, and values cannot be opened after a restart or by another instance.
 */
export class Sealer {
  /** Whether other processes can open the values that this process seals. */
  readonly isShared: boolean;
  /** Identity of the server among all servers with the same secret. */
  readonly realm: string;
  readonly #cipher: Cipher;

  /**
   * Creates the sealer of one server.
   *
   * @throws {TypeError} if a secret has fewer than 32 characters, because it could be guessed.
   */
  constructor({ secret, realm }: SealerOptions) {
    this.realm = realm;
    const secrets = secret === undefined ? [] : readSecrets(secret);
    this.isShared = secrets.length > 0;
    const short = secrets.find((text) => text.length < 32);
    if (short !== undefined) {
      const state = short ? "it has fewer than 32 characters" : "it is empty";
      throw new TypeError(`Cannot use the secret: ${state}; \`openssl rand -hex 32\` creates a suitable secret`);
    }
    this.#cipher = new Cipher(realm, secrets);
  }

  /** Seals a JSON value into opaque text of letters, digits, `-` and `_`. Opening it requires the same `purpose`. */
  seal(purpose: string, value: unknown): Promise<string> {
    return this.#cipher.seal(purpose, value);
  }

  /**
   * Opens a sealed value. Returns `undefined` if it was changed, or was sealed by another server or for another
   * purpose.
   */
  open(purpose: string, text: string): Promise<unknown> {
    return this.#cipher.open(purpose, text);
  }
}

function readSecrets(secret: string | readonly string[]): readonly string[] {
  const secrets: readonly unknown[] = [secret].flat();
  // Reject an empty list, because the server would use a random key.
  if (secrets.length && secrets.every((each) => typeof each === "string")) return secrets;
  throw new TypeError(
    "Cannot use the secret: it is neither a string nor a list of strings; leave it out for a random key",
  );
}
