/**
 * Requests access tokens that are issued to this server itself, for calls to other servers.
 */
import { fetchOnce } from "../../core/fetch_once.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { Send } from "./http.ts";
import { Issuer } from "./issuer.ts";
import { type AccessToken, requestToken, ReusedToken } from "./access_token.ts";
import { checkClient, CLIENT, type OAuthClient } from "./oauth_client.ts";

/** Options of {@linkcode clientCredentialsToken}. */
export interface ClientCredentialsTokenOptions extends OAuthClient {
  /** URL of the authorization server. The token endpoint is read from the authorization server's metadata. */
  readonly issuer: string;
  /** URL of the server for which the token is requested. Sent as the parameter `resource` of RFC 8707. */
  readonly resource?: string;
  /**
   * Name of the server for which the token is requested. Sent as the parameter `audience`, which some issuers expect
   * instead of `resource`.
   */
  readonly audience?: string;
  /** Scopes to request. By default, the issuer decides which scopes to grant. */
  readonly scopes?: readonly string[];
  /** Function that sends the requests. Defaults to the global `fetch`. */
  readonly fetch?: Send;
}

const OPTIONS: KnownOptions<keyof ClientCredentialsTokenOptions> = {
  names: { ...CLIENT.names, issuer: true, resource: true, audience: true, scopes: true, fetch: true },
  hints: CLIENT.hints,
};

/**
 * Returns a function that gets an access token with the client credentials grant. The token is issued to this server
 * itself, not to a user. The function returns the same token until shortly before the token expires. Concurrent calls
 * share one request.
 *
 * ```ts
 * import { clientCredentialsToken } from "@x/mcp/oauth";
 *
 * const getToken = clientCredentialsToken({
 *   issuer: "https://login.example.com",
 *   clientId: "notes-server",
 *   clientSecret: "5f2b8c1d", // better from the environment
 *   resource: "https://api.example.com",
 * });
 *
 * export async function load(): Promise<Response> {
 *   const { accessToken } = await getToken();
 *   return await fetch("https://api.example.com/notes", { headers: { authorization: `Bearer ${accessToken}` } });
 * }
 * ```
 *
 * @throws {TypeError} if an option is missing, unknown or invalid.
 */
export function clientCredentialsToken(options: ClientCredentialsTokenOptions): () => Promise<AccessToken> {
  checkOptions("use clientCredentialsToken()", options, OPTIONS);
  const { resource, audience, scopes, fetch: send = fetchOnce, issuer: name, ...client } = options;
  const missing = checkClient(client, "clientCredentialsToken()");
  const issuer = new Issuer(name, send);
  const params = { grant_type: "client_credentials", resource, audience, scope: scopes?.join(" ") };
  // The function belongs to no server, so there is no other clock.
  const date = () => Date.now();
  const token = new ReusedToken(() => requestToken({ issuer, send }, { client, params, date }), date);
  return async () => {
    if (missing) throw missing;
    return await token.get();
  };
}
