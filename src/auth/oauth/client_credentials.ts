/**
 * Gets access tokens that are issued to this server itself, for the servers that it calls.
 *
 * @module
 */
import { checkOptions, type KnownOptions } from "../../core/call/known_options.ts";
import type { Send } from "./http.ts";
import { Issuer } from "./issuer.ts";
import { type AccessToken, requestToken, ReusedToken } from "./access_token.ts";
import { checkClient, CLIENT, type OAuthClient } from "./oauth_client.ts";

/** Options of {@linkcode clientCredentials}. */
export interface ClientCredentialsOptions extends OAuthClient {
  /** URL of the authorization server. Its metadata names the token endpoint. */
  readonly issuer: string;
  /** URL of the server that the token is for, as the parameter `resource` of RFC 8707. */
  readonly resource?: string;
  /** Name of the server that the token is for, for issuers that use the parameter `audience` instead. */
  readonly audience?: string;
  /** Scopes to request. Defaults to the default scopes of the issuer. */
  readonly scopes?: readonly string[];
  /** Sends the requests. Defaults to the global `fetch`. */
  readonly fetch?: Send;
}

const OPTIONS: KnownOptions<keyof ClientCredentialsOptions> = {
  names: { ...CLIENT.names, issuer: true, resource: true, audience: true, scopes: true, fetch: true },
  hints: { ...CLIENT.hints, scope: "scopes" },
};

/**
 * Returns a function that gets an access token by client credentials. The token is issued to this server itself, not to
 * a user. The function reuses the token until shortly before it expires. Concurrent calls share one request.
 *
 * ```ts
 * import { clientCredentials } from "@x/mcp/oauth";
 *
 * const getToken = clientCredentials({
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
export function clientCredentials(options: ClientCredentialsOptions): () => Promise<AccessToken> {
  checkOptions("use clientCredentials()", options, OPTIONS);
  const { resource, audience, scopes, fetch: send = (url, init) => fetch(url, init), issuer: name, ...client } =
    options;
  checkClient(client, "clientCredentials()");
  const issuer = new Issuer(name, send);
  const params = { grant_type: "client_credentials", resource, audience, scope: scopes?.join(" ") };
  const token = new ReusedToken(() => requestToken({ issuer, send }, { client, params }));
  return () => token.get();
}
