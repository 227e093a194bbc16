/**
 * The credentials of this server as a client of an authorization server.
 *
 * @module
 */
import type { KnownOptions } from "../../core/call/known_options.ts";

/** How this server authenticates at an authorization server: with a secret, or with a private key. */
export interface OAuthClient {
  /** Id of this server as a client of the authorization server. */
  readonly clientId: string;
  /** The client's secret. Required without `privateKey`. */
  readonly clientSecret?: string;
  /** Place of the secret: the `Authorization` header or the body. Defaults to `"header"`. */
  readonly secretIn?: "header" | "body";
  /** The client's private key, instead of a secret. The server signs a short-lived JWT with it for each request. */
  readonly privateKey?: CryptoKey | PrivateJwk;
  /** Signature algorithm of the private key. Defaults to the `alg` of the key, otherwise to `ES256`. */
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
  /** Id of the key. Required if several keys of this client are registered at the authorization server. */
  readonly kid?: string;
}

/** Checks the options with which a client authenticates. Throws if the id, or the secret and the key, are missing. */
export function checkClient({ clientId, clientSecret, privateKey }: OAuthClient, place: string): void {
  if (typeof clientId !== "string" || !clientId) throw new TypeError(`Cannot use ${place}: clientId is missing`);
  if (clientSecret || privateKey && clientSecret === undefined) return;
  throw new TypeError(
    `Cannot use ${place}: clientSecret or privateKey is missing; check that its environment variable is set`,
  );
}
