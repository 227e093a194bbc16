/**
 * Loads the metadata documents of clients whose id is a URL, and their keys.
 *
 * @see draft-ietf-oauth-client-id-metadata-document
 * @see specification/2026-07-28/basic/authorization
 */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import { isObject } from "../../../core/kit/json.ts";
import { type Client, isClientName, OAuthError, readScope } from "./client.ts";
import { GuardedLoads, type LoadEnvironment, type LoadRequest, LoadSlots } from "./guarded_loads.ts";

/** Keys with which a client signs its assertions. */
export type ClientKeys = ReturnType<typeof createLocalJWKSet>;

/** Maximum size of a document in bytes. */
const MAX_BYTES = 5 * 1024;
/** Maximum size of a key set in bytes. Keys can contain certificates. */
const MAX_KEYS_BYTES = 20 * 1024;
const MAX_REDIRECTS = 20;
const MAX_KEYS = 10;

/** Members that only private and shared keys have (RFC 7518, section 6). */
const SECRET_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

export class MetadataDocuments {
  readonly #documents: GuardedLoads<Client>;
  readonly #keys: GuardedLoads<ClientKeys>;

  constructor(environment: LoadEnvironment = {}) {
    const slots = new LoadSlots();
    const document = {
      name: "client_id",
      maxBytes: MAX_BYTES,
      read: (json: unknown, url: URL) => this.#readDocument(json, url),
    };
    this.#documents = new GuardedLoads(document, slots, environment);
    const keys = { name: "jwks_uri", maxBytes: MAX_KEYS_BYTES, read: (json: unknown) => toClientKeys(json) };
    this.#keys = new GuardedLoads(keys, slots, environment);
  }

  /**
   * Returns the client whose id is a URL.
   *
   * @param peer Address of the caller, whose loads are limited.
   * @param own Public URL of this server.
   * @throws {OAuthError} (as a rejection) if the URL or its document is not valid, or a limit is reached.
   */
  async load(clientId: string, peer: string | undefined, own: URL): Promise<Client> {
    return await this.#documents.load(clientId, { peer, own });
  }

  /** Returns the keys of a client that authenticates with a key. Rejects like {@linkcode load}. */
  async loadKeys({ jwks, jwksUri }: Pick<Client, "jwks" | "jwksUri">, request: LoadRequest): Promise<ClientKeys> {
    return jwksUri === undefined ? toClientKeys(jwks) : await this.#keys.load(jwksUri, request);
  }

  #readDocument(json: unknown, url: URL): Client {
    const refuse = (state: string) => new OAuthError("invalid_client", `the document of client_id ${state}`, 401);
    if (!isObject(json)) throw refuse("is not a JSON object");
    const { client_id: id, client_name: name, redirect_uris: redirectUris } = json;
    // Otherwise a file that users can upload to a host could describe the client of the host.
    if (id !== url.href) throw refuse("has another client_id");
    if (!isClientName(name)) throw refuse("has no valid client_name");
    if (!isTexts(redirectUris)) throw refuse(`needs redirect_uris with 1 to ${MAX_REDIRECTS} texts`);
    if (json.client_secret !== undefined) throw refuse("must not contain a client_secret");
    const { host: origin } = url;
    const base = { id, name, redirectUris, isDocument: true, origin, scope: readScope(json.scope) };
    const { token_endpoint_auth_method: authMethod = "none", jwks, jwks_uri: jwksUri } = json;
    if (authMethod === "none") return { ...base, authMethod };
    if (authMethod !== "private_key_jwt") {
      throw refuse("must have the token_endpoint_auth_method none or private_key_jwt");
    }
    if ((jwks === undefined) === (jwksUri === undefined)) throw refuse("needs either jwks or jwks_uri");
    if (jwksUri === undefined) {
      return { ...base, authMethod, jwks: readKeySet(jwks) };
    }
    if (typeof jwksUri !== "string") throw refuse("has a jwks_uri that is not a text");
    return { ...base, authMethod, jwksUri };
  }
}

function isTexts(list: unknown): list is readonly string[] {
  return Array.isArray(list) && list.length > 0 && list.length <= MAX_REDIRECTS &&
    list.every((text) => typeof text === "string");
}

function toClientKeys(json: unknown): ClientKeys {
  return createLocalJWKSet(readKeySet(json));
}

/** Throws if a value is not a set of public keys. A client that publishes a private key is refused. */
function readKeySet(json: unknown): JSONWebKeySet {
  if (isKeySet(json)) return json;
  const state = `the keys of the client are not a JWK Set with 1 to ${MAX_KEYS} public keys`;
  throw new OAuthError("invalid_client", state, 401);
}

function isKeySet(json: unknown): json is JSONWebKeySet {
  return isObject(json) && Array.isArray(json.keys) && json.keys.length > 0 && json.keys.length <= MAX_KEYS &&
    json.keys.every((key) =>
      isObject(key) && ["RSA", "EC", "OKP"].includes(String(key.kty)) && SECRET_MEMBERS.every((name) => !(name in key))
    );
}
