/**
 * Sends requests to an authorization server: requests for tokens, and introspection. Loaded when such a request is
 * first sent.
 *
 * @module
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
import { isObject } from "../../kit/json.ts";
import { toBasicCredentials } from "../../kit/basic_credentials.ts";
import type { Claims } from "./caller.ts";
import { readSecureUrl, type Send, sendText } from "./http.ts";
import type { OAuthClient, PrivateJwk } from "./oauth_client.ts";

/** A request to an authorization server, and the client that sends it. */
export interface TokenRequest {
  /** The authorization server. */
  readonly issuer: string;
  /** The URL of the endpoint. */
  readonly endpoint: string;
  readonly client: OAuthClient;
  /** The form parameters, without the parameters that authenticate the client. */
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly send: Send;
}

/** A response that cannot be used. The message begins with a verb, and contains only the error code of the response. */
export class UnusableResponseError extends Error {}

/**
 * Requests a token.
 *
 * @throws {UnusableResponseError} if the response is not a token.
 */
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
 * Asks an authorization server about a token.
 *
 * @throws {UnusableResponseError} if the response is not an introspection response.
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
  // The credentials must travel over https. The URL must be valid too, because otherwise they could go to this machine
  // by mistake.
  if (!readSecureUrl(endpoint)) throw new UnusableResponseError(`${endpoint} is neither https nor on loopback`);
  const authentication = await toAuthentication(client);
  let status: number | undefined;
  const options: RequestOptions = {
    [allowInsecureRequests]: true,
    async [customFetch](url, init) {
      const { text, ...head } = await sendText(send, url, init);
      status = head.status;
      return new Response([204, 205, 304].includes(status) ? null : text, head);
    },
  };
  try {
    return await run(options, authentication);
  } catch (error) {
    if (status === undefined) throw error;
    // Replace the error: it keeps the whole response, in which some authorization servers repeat the tokens that they
    // received.
    throw new UnusableResponseError(`it responds with status ${status}${toCode(error, required)}`);
  }
}

/** Returns the error code of a refusal, or text about the defect of any other response. */
function toCode(error: unknown, required: readonly string[]): string {
  if (error instanceof ResponseBodyError) return /^[a-z_]{1,40}$/.test(error.error) ? ` (${error.error})` : "";
  const cause = error instanceof Error ? error.cause : undefined;
  // If the body is not JSON, the cause is the response itself.
  const body = isObject(cause) && !(cause instanceof Response) ? cause.body : undefined;
  if (!isObject(body)) return "";
  const missing = required.find((name) => body[name] === undefined);
  return missing === undefined ? " and a body that is not valid" : ` and a body without ${missing}`;
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
  if (!(key instanceof CryptoKey)) throw new TypeError("Cannot use privateKey: it is not an asymmetric key");
  return PrivateKeyJwt({ key, kid: jwk?.kid }, {
    [modifyAssertion](header) {
      if (alg !== undefined) header.alg = alg;
    },
  });
}
