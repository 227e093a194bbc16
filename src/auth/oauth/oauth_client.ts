/**
 * Options with which this server authenticates as a client of an authorization server.
 */
import type { JWK } from "jose";
import type { KnownOptions } from "../../core/known_options.ts";
import { isUnset } from "../principal.ts";

/** Credentials with which this server authenticates to an authorization server: a client secret or a private key. */
export interface OAuthClient {
  /** Client id of this server at the authorization server. */
  readonly clientId: string;
  /** Client secret. Required unless `privateKey` is set. */
  readonly clientSecret?: string;
  /** Whether the secret is sent in the `Authorization` header or in the request body. Defaults to `"header"`. */
  readonly secretIn?: "header" | "body";
  /** Private key that replaces the client secret. For each request, the server signs a short-lived JWT with the key. */
  readonly privateKey?: CryptoKey | PrivateJwk;
  /** Signature algorithm for the private key. Defaults to `alg` of the JWK, or to `ES256` if the JWK has no `alg`. */
  readonly algorithm?: string;
}

export const CLIENT: KnownOptions<keyof OAuthClient> = {
  names: { clientId: true, clientSecret: true, secretIn: true, privateKey: true, algorithm: true },
  hints: { secret: "clientSecret", tokenEndpointAuthMethod: "secretIn", jwk: "privateKey" },
};

/**
 * A private key as a JSON Web Key. `kid` is required if this client has registered several keys at the authorization
 * server.
 */
export type PrivateJwk = JWK;

/**
 * Returns an error if `clientId`, or both `clientSecret` and `privateKey`, are missing or empty, as from an environment
 * variable that is not set. The error matters only when the client sends a request, or a server starts.
 *
 * @throws {TypeError} if `clientId` has another type.
 */
export function checkClient(
  { clientId, clientSecret, privateKey }: OAuthClient,
  place: string,
): TypeError | undefined {
  if (!isUnset(clientId) && typeof clientId !== "string") {
    throw new TypeError(`Cannot use ${place}: clientId is not a non-empty string`);
  }
  const hasSecret = clientSecret || privateKey && clientSecret === undefined;
  const missing = isUnset(clientId) ? "clientId" : "clientSecret or privateKey";
  if (hasSecret && !isUnset(clientId)) return;
  return new TypeError(`Cannot use ${place}: ${missing} is missing; check that its environment variable is set`);
}
