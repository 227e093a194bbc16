/**
 * Sends token requests and introspection requests to authorization servers. This module is loaded when the first such
 * request is sent.
 */
import { importJWK } from "jose";
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretPost,
  customFetch,
  genericTokenEndpointRequest,
  introspectionRequest,
  modifyAssertion,
  PrivateKeyJwt,
  processGenericTokenEndpointResponse,
  processIntrospectionResponse,
  ResponseBodyError,
  type TokenEndpointResponse,
} from "oauth4webapi";
import { isObject } from "../../core/kit/json.ts";
import { toOAuthResponse } from "../../core/kit/oauth_response.ts";
import { toBasicCredentials } from "../../core/kit/basic_credentials.ts";
import type { Claims } from "./caller.ts";
import { readSecureUrl, type Send, sendText } from "./http.ts";
import type { OAuthClient, PrivateJwk } from "./oauth_client.ts";
import { quote } from "../../core/protocol/errors.ts";
import { hideCredentials } from "../../core/kit/url_text.ts";

/** A request to an authorization server, with the credentials of this server. */
export interface TokenRequest {
  /** Name of the authorization server: its URL, as in the `iss` claim. */
  readonly issuer: string;
  readonly endpoint: string;
  readonly client: OAuthClient;
  /** Parameters of the form, without the credentials of the client. */
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly send: Send;
}

/** The error for an unusable response. The message contains no part of the response body except an error code. */
export class UnusableResponseError extends Error {}

/** @throws {UnusableResponseError} if the response is not a valid token response, or if the endpoint is not secure. */
export async function requestTokenAt(request: TokenRequest): Promise<TokenEndpointResponse> {
  const { issuer, endpoint, client } = request;
  const server = { issuer, token_endpoint: endpoint };
  const { grant_type: type = "", ...params } = toParams(request);
  return await exchange(request, ["access_token", "token_type"], async (options, authentication) => {
    const known = { client_id: client.clientId };
    const response = await genericTokenEndpointRequest(server, known, authentication, type, params, options);
    const recognizedTokenTypes = { n_a: () => {} };
    return await processGenericTokenEndpointResponse(server, known, response, { recognizedTokenTypes });
  });
}

/**
 * Introspects the token in `params`. Returns the whole introspection response.
 *
 * @throws {UnusableResponseError} if the response is not a valid introspection response, or if the endpoint is not
 * secure.
 */
export async function introspectAt(request: TokenRequest): Promise<Claims> {
  const { issuer, endpoint, client } = request;
  const server = { issuer, introspection_endpoint: endpoint };
  const { token = "", ...additionalParameters } = toParams(request);
  return await exchange(request, ["active"], async (options, authentication) => {
    const known = { client_id: client.clientId };
    const all = { ...options, additionalParameters };
    const response = await introspectionRequest(server, known, authentication, token, all);
    return { ...await processIntrospectionResponse(server, known, response) };
  });
}

function toParams({ params }: TokenRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]),
  );
}

interface RequestOptions {
  readonly [customFetch]: (url: string, init: RequestInit) => Promise<Response>;
  readonly [allowInsecureRequests]: true;
}

async function exchange<T>(
  { endpoint, client, send }: TokenRequest,
  required: readonly string[],
  run: (options: RequestOptions, authentication: ClientAuth) => Promise<T>,
): Promise<T> {
  // The request contains credentials, so the endpoint must be a valid URL that uses https, or http on loopback.
  if (!readSecureUrl(endpoint)) {
    throw new UnusableResponseError(
      `the endpoint ${quote(hideCredentials(endpoint))} is not a URL over https, or over http on loopback`,
    );
  }
  const authentication = await toAuthentication(client);
  let status: number | undefined;
  const options: RequestOptions = {
    [allowInsecureRequests]: true,
    async [customFetch](url, init) {
      const response = await sendText(send, url, init);
      status = response.status;
      return toOAuthResponse(response);
    },
  };
  try {
    return await run(options, authentication);
  } catch (error) {
    if (status === undefined) throw error;
    // Replace the error, because it contains the whole response. Some authorization servers repeat the tokens from the
    // request in their response.
    throw new UnusableResponseError(`the issuer responded with status ${status}${toCode(error, required)}`);
  }
}

/**
 * Returns the end of the error message: the error code from an error response, the problem with the body of any other
 * response, or an empty text.
 */
function toCode(error: unknown, required: readonly string[]): string {
  if (error instanceof ResponseBodyError) return /^[a-z_]{1,40}$/.test(error.error) ? ` (${error.error})` : "";
  const cause = error instanceof Error ? error.cause : undefined;
  // If the body is not JSON, `cause` is the `Response`.
  const body = isObject(cause) && !(cause instanceof Response) ? cause.body : undefined;
  if (!isObject(body)) return "";
  const missing = required.find((name) => body[name] === undefined);
  return missing === undefined ? " and an invalid body" : ` and a body without ${missing}`;
}

async function toAuthentication(client: OAuthClient): Promise<ClientAuth> {
  const { clientId, clientSecret = "", secretIn = "header", privateKey, algorithm } = client;
  if (privateKey) return await toKeyAuthentication(privateKey, algorithm);
  if (secretIn === "body") return ClientSecretPost(clientSecret);
  return (_, __, ___, headers) => headers.set("authorization", toBasicCredentials(clientId, clientSecret));
}

async function toKeyAuthentication(given: CryptoKey | PrivateJwk, algorithm?: string): Promise<ClientAuth> {
  const jwk = "kty" in given ? given : undefined;
  const alg = algorithm ?? jwk?.alg;
  const key = "kty" in given ? await importJWK(given, alg ?? "ES256") : given;
  if (!(key instanceof CryptoKey)) {
    throw new TypeError(
      "Cannot use privateKey: it is not an asymmetric key; use the private key of a key pair, or use clientSecret instead",
    );
  }
  return PrivateKeyJwt({ key, kid: jwk?.kid }, {
    [modifyAssertion](header) {
      if (alg !== undefined) header.alg = alg;
    },
  });
}
