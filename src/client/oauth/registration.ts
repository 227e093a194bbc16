/**
 * Finds the client to use at an authorization server. The client can be registered manually, described by a metadata
 * document, or registered dynamically.
 *
 * @see specification/2026-07-28/basic/authorization/client-registration
 */
import {
  allowInsecureRequests,
  type AuthorizationServer,
  ClientSecretPost,
  customFetch,
  dynamicClientRegistrationRequest,
  None,
} from "oauth4webapi";
import { toBasicCredentials } from "../../core/kit/basic_credentials.ts";
import { isObject } from "../../core/kit/json.ts";
import { SignInError, toReason } from "./errors.ts";
import {
  type ClientMethod,
  isMethod,
  readRegistration,
  type RegisteredClient,
  writeRegistration,
} from "./held_tokens.ts";
import type { Requests } from "./requests.ts";
import type { TokenStore } from "./token_store.ts";
import { explain } from "../shown.ts";
import { isSameResource } from "../url_scope.ts";

/** A client that was registered manually. */
export interface KnownClient {
  /** The client id at the authorization server. */
  readonly id: string;
  /** The client secret at the authorization server, if the client has one. Requires `issuer`. */
  readonly secret?: string;
  /**
   * The URL of the authorization server where the client was registered, spelled as in its metadata. Without this
   * option, the client is used only at the authorization server where the user first signs in, and only if its metadata
   * announces that its responses contain the issuer (`iss`, RFC 9207). Otherwise the code could be from another
   * authorization server.
   */
  readonly issuer?: string;
}

/**
 * Checks the option `issuer` of a client with a secret. Without `issuer`, the client would send the secret to any
 * authorization server that an MCP server names.
 *
 * @throws {TypeError} if `issuer` is missing or is not a URL.
 */
export function checkIssuer(action: string, name: string, issuer: unknown): void {
  if (typeof issuer === "string" && URL.canParse(issuer)) return;
  const state = issuer === undefined ? "is missing" : "is not a URL";
  throw new TypeError(
    `Cannot ${action}: ${name} ${state}; pass the URL of the authorization server where the client is registered`,
  );
}

/** Options that identify the client to authorization servers. */
export interface ClientIdentityOptions {
  /**
   * A client that was registered manually. Without this option, the client registers itself if the authorization server
   * supports registration.
   */
  readonly client?: KnownClient;
  /**
   * The https URL of the client's metadata document. Authorization servers that support such documents use the URL as
   * the client id. If the metadata of an authorization server does not announce that its responses contain the issuer
   * (`iss`, RFC 9207), the client registers itself instead. To use the document there, pass
   * `client: { id: clientMetadataUrl, issuer }`.
   */
  readonly clientMetadataUrl?: string;
  /**
   * The name that users see if the client registers itself. Defaults to `MCP client`.
   *
   * @deprecated by the protocol, with dynamic registration. Set `clientMetadataUrl`; the document contains the
   * name.
   */
  readonly clientName?: string;
}

/** Adds the client's credentials to a token request. */
export type ClientAuthentication = ReturnType<typeof None>;

interface RegistrationOptions extends ClientIdentityOptions {
  readonly authorizationServer: AuthorizationServer;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly requests: Requests;
  readonly store: TokenStore;
  readonly signal: AbortSignal;
}

export class RegistrationError extends SignInError {}

/**
 * Tests whether the client registers itself, because it was not registered manually, and cannot use a metadata
 * document. If responses do not contain `iss`, the client prefers a registration to a document, whose URL is the client
 * id at other authorization servers too.
 */
export function registersItself(
  { client, clientMetadataUrl }: ClientIdentityOptions,
  server: AuthorizationServer,
): boolean {
  if (client) return false;
  const hasDocument = clientMetadataUrl !== undefined && server.client_id_metadata_document_supported === true;
  return !hasDocument || (!announcesIssuer(server) && server.registration_endpoint !== undefined);
}

/**
 * Tests whether the metadata announces that authorization responses contain the issuer.
 *
 * @see RFC 9207 (OAuth 2.0 Authorization Server Issuer Identification)
 */
export function announcesIssuer(server: AuthorizationServer): boolean {
  return server.authorization_response_iss_parameter_supported === true;
}

/**
 * Returns the client to use, and registers a client if necessary.
 *
 * @throws {RegistrationError} if the authorization server does not accept a new client.
 */
export async function findClient(options: RegistrationOptions): Promise<RegisteredClient> {
  const { client, clientMetadataUrl, authorizationServer, store, redirectUri, scopes } = options;
  const { issuer } = authorizationServer;
  if (client) return toKnown(client, authorizationServer);
  if (clientMetadataUrl !== undefined && !registersItself(options, authorizationServer)) {
    return { id: clientMetadataUrl, method: "none" };
  }
  if (!authorizationServer.registration_endpoint) {
    const remedy = "register a client there manually, and pass the client's id and issuer";
    throw new RegistrationError(
      `Cannot sign in at ${issuer}: this authorization server does not support registration by clients; ${remedy}`,
    );
  }
  const key = toKey(issuer);
  const found = readRegistration(await store.get(key));
  const known = found?.redirectUri === redirectUri ? found : undefined;
  if (known && scopes.every((scope) => known.scopes.includes(scope))) return known.client;
  // Keep earlier scopes. Otherwise servers with the same authorization server would replace each other's registration.
  const all = [...new Set([...known?.scopes ?? [], ...scopes])];
  const registered = await register(options, [all, scopes]);
  const value = writeRegistration({ client: registered, redirectUri, scopes: all });
  await store.update(key, () => Promise.resolve(value));
  return registered;
}

/** Removes the registration of a client that the authorization server does not know, so that the client registers again. */
export async function forgetClient(store: TokenStore, issuer: string, id: string): Promise<void> {
  await store.update(toKey(issuer), (text) => {
    const isOther = readRegistration(text)?.client.id !== id;
    return Promise.resolve(isOther ? text : undefined);
  });
}

function toKey(issuer: string): string {
  return `client ${issuer}`;
}

export function toKnown({ id, secret }: KnownClient, server: AuthorizationServer): RegisteredClient {
  return secret === undefined ? { id, method: "none" } : { id, secret, method: chooseMethod(server) };
}

/** `attempts` are the scopes to register: the first that the authorization server accepts, or else none. */
async function register(
  options: RegistrationOptions,
  attempts: readonly (readonly string[])[],
): Promise<RegisteredClient> {
  const { authorizationServer, clientMetadataUrl, clientName = "MCP client", redirectUri, requests, signal } = options;
  const methods = authorizationServer.token_endpoint_auth_methods_supported;
  const metadata = {
    client_name: clientName,
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: !methods || methods.includes("none") ? "none" : chooseMethod(authorizationServer),
    application_type: /^https?:\/\/(?:127\.|localhost|\[::1\])|^(?!https?:)/.test(redirectUri) ? "native" : "web",
  };
  const send = (metadata: Parameters<typeof dynamicClientRegistrationRequest>[1]) =>
    dynamicClientRegistrationRequest(authorizationServer, metadata, toRequestOptions(requests, signal));
  try {
    // Some authorization servers grant only registered scopes. Others refuse a registration with scopes that they do not
    // offer to every client, also if another server has asked for these.
    const [first, ...others] = new Set([...attempts.map((scopes) => scopes.join(" ")), ""]);
    let response = await send(first ? { ...metadata, scope: first } : metadata);
    for (const scope of others) {
      if (![400, 403].includes(response.status)) break;
      await response.body?.cancel();
      response = await send(scope ? { ...metadata, scope } : metadata);
    }
    const registered = await readRegistered(response, authorizationServer);
    // A malicious authorization server could otherwise make the client use its document where it must not, and receive
    // the code of an authorization server at which the user trusts the document.
    const [id, own] = [URL.parse(registered.id), URL.parse(clientMetadataUrl ?? "")];
    if (!id || !own || !isSameResource(id, own)) return registered;
    throw new SignInError("the response contains the URL of the metadata document as client_id");
  } catch (error) {
    signal.throwIfAborted();
    const remedy = "register a client there manually, and pass the client's id and issuer";
    throw new RegistrationError(
      `${explain(`Cannot register a client at ${authorizationServer.issuer}`, error, toReason(error))}; ${remedy}`,
    );
  }
}

/**
 * Reads the response to a registration. The function of the OAuth library would reject a secret without an expiry time,
 * but some servers omit the expiry time.
 */
async function readRegistered(response: Response, server: AuthorizationServer): Promise<RegisteredClient> {
  const json: unknown = await response.json().catch(() => undefined);
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method, ...rest } = isObject(json)
    ? json
    : {};
  if (!response.ok) {
    throw new SignInError([rest.error ?? response.status, rest.error_description].filter(Boolean).join(" "));
  }
  if (typeof id !== "string" || !id) throw new SignInError("the response has no client_id");
  if (typeof secret !== "string" || method === "none") return { id, method: "none" };
  return { id, secret, method: isMethod(method) ? method : chooseMethod(server) };
}

/** Returns the first listed method that uses a secret. Defaults to `client_secret_basic`. */
function chooseMethod({ token_endpoint_auth_methods_supported: methods = [] }: AuthorizationServer): ClientMethod {
  return methods.filter(isMethod).find((method) => method !== "none") ?? "client_secret_basic";
}

export function toAuthentication({ secret, method }: RegisteredClient): ClientAuthentication {
  if (secret === undefined || method === "none") return None();
  if (method === "client_secret_post") return ClientSecretPost(secret);
  return (_, { client_id: id }, __, headers) => headers.set("authorization", toBasicCredentials(id, secret));
}

export interface TokenRequestOptions {
  readonly signal: AbortSignal;
  readonly [customFetch]: (url: string, init: RequestInit) => Promise<Response>;
  readonly [allowInsecureRequests]: true;
}

/** Returns the options for a request. The library allows http, because `requests` allows http only on loopback. */
export function toRequestOptions(requests: Requests, signal: AbortSignal): TokenRequestOptions {
  return { signal, [customFetch]: requests.toFetch(signal), [allowInsecureRequests]: true };
}
