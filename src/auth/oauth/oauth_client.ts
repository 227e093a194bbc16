/**
 * This server as a client of an authorization server.
 *
 * @module
 */
import type { KnownOptions } from "../../core/call/known_options.ts";

/** How this server authenticates at an authorization server: with a secret, or with a private key. */
export interface OAuthClient {
  /** Id of this server as a client of the authorization server. */
  readonly clientId: string;
  /** The client's secret. Not needed with a private key. */
  readonly clientSecret?: string;
  /** Where the secret is sent: in the `Authorization` header, the default, or in the body. */
  readonly secretIn?: "header" | "body";
  /** The client's private key, instead of a secret. It signs a short-lived JWT for each request. */
  readonly privateKey?: CryptoKey | PrivateJwk;
  /** Signature algorithm of the private key. Defaults to `alg` of the key, else `ES256`. */
  readonly algorithm?: string;
}

/** The names of the options of an {@linkcode OAuthClient}. */
export const CLIENT: KnownOptions<keyof OAuthClient> = {
  names: { clientId: true, clientSecret: true, secretIn: true, privateKey: true, algorithm: true },
  hints: {
    client_id: "clientId",
    client_secret: "clientSecret",
    secret: "clientSecret",
    tokenEndpointAuthMethod: "secretIn",
    jwk: "privateKey",
    alg: "algorithm",
  },
};

/** A private key as JSON. */
export interface PrivateJwk extends JsonWebKey {
  /** Id of the key, if the authorization server knows several of this client. */
  readonly kid?: string;
}

/** Validates how a client authenticates. */
export function checkClient({ clientId, clientSecret, privateKey }: OAuthClient, place: string): void {
  if (typeof clientId !== "string" || !clientId) throw new TypeError(`Cannot use ${place}: clientId is missing`);
  if (clientSecret || privateKey && clientSecret === undefined) return;
  throw new TypeError(`Cannot use ${place}: give it a clientSecret or a privateKey; is its variable set?`);
}
