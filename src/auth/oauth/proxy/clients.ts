/**
 * Finds, registers and authenticates the clients of an authorization server. Nothing is stored: the id of a registered
 * client is its sealed registration.
 *
 * @see RFC 7591
 */
import { isObject, parseJson } from "../../../core/kit/json.ts";
import { checkOptions, toPlace } from "../../../core/known_options.ts";
import { type Client, isClientName, OAuthError, readScope } from "./client.ts";
import { ASSERTION_TYPE, type AuthenticationFacts, checkAssertion } from "./client_assertions.ts";
import type { MetadataDocuments } from "./metadata_documents.ts";
import { findRedirectProblem, type RedirectRules } from "./redirect_uris.ts";

export { type Client, OAuthError } from "./client.ts";
export type { AssertionId, AuthenticationFacts } from "./client_assertions.ts";

/** Encrypts and authenticates values. `open` rejects, or resolves to `undefined`, if `seal` has not made the text. */
export interface Sealer {
  readonly seal: (value: unknown) => Promise<string>;
  readonly open: (text: string) => Promise<unknown>;
}

/** A client that the author of a server lists. It has no secret, because MCP clients are public clients. */
export interface ListedClient {
  /** Client id, such as `my-app`. */
  readonly id: string;
  /** Name for the user. */
  readonly name: string;
  /** Redirect URIs of the client. On loopback, the port is free. */
  readonly redirects: readonly string[];
}

export interface ClientsOptions {
  readonly rules: RedirectRules;
  readonly sealer: Sealer;
  /** Public URL of this server. */
  readonly own: URL;
  /** Without it, the URL of a metadata document is not a valid client id. */
  readonly documents?: MetadataDocuments;
  readonly clients?: readonly ListedClient[];
  /** Returns the time in milliseconds since 1970. Defaults to `Date.now`. */
  readonly date?: () => number;
}

/** The response to a registration. */
export interface RegistrationResponse {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

/** A sealed registration. Short names, because the client id contains them. */
interface Registration {
  /** Distinguishes registrations from other sealed values of the server, such as tokens. */
  readonly t: typeof KIND;
  readonly n: string;
  readonly r: readonly string[];
  readonly s?: string;
}

const KIND = "oauth-client";
/** Maximum size of the body of a registration in bytes. */
const MAX_BODY = 8 * 1024;
const MAX_REDIRECTS = 10;
/** Maximum length of a client id in characters. Clients send the id in URLs. */
const MAX_ID = 4000;
/** Name of a client that registers without a name. */
const UNNAMED = "Unnamed client";
/** Methods of clients that would use a secret. Servers can replace values of a registration (RFC 7591, section 2). */
const PUBLIC_METHODS: readonly unknown[] = [undefined, "none", "client_secret_basic", "client_secret_post"];
/** Age in milliseconds from which the keys of a client are loaded again for a signature that does not match. */
const ROTATED_MS = 60_000;
/** Parameters of clients that authenticate. */
const CREDENTIALS = ["client_secret", "client_assertion", "client_assertion_type"];

export class Clients {
  readonly #options: ClientsOptions;
  readonly #listed: ReadonlyMap<string, Client>;

  /** @throws {TypeError} if a listed client is not valid. */
  constructor(options: ClientsOptions) {
    const { clients = [] } = options;
    this.#options = options;
    this.#listed = new Map(clients.map(toListed).map((client) => [client.id, client]));
    if (this.#listed.size < clients.length) {
      throw new TypeError("Cannot list the clients: an id occurs twice; give each client a different id");
    }
  }

  /**
   * Registers a client. Never rejects because of the body, for which the response states the error.
   *
   * @param body The body of the request, as text or as parsed JSON.
   */
  async register(body: unknown): Promise<RegistrationResponse> {
    try {
      return { status: 201, json: await this.#register(readBody(body)) };
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return { status: error.status, json: { error: error.code, error_description: error.description } };
    }
  }

  /**
   * Returns the client with an id.
   *
   * @param peer Address of the caller, whose loads are limited.
   * @throws {OAuthError} (as a rejection) if there is no such client, or its document cannot be loaded now.
   */
  async find(clientId: string, peer: string | undefined): Promise<Client> {
    const listed = this.#listed.get(clientId);
    if (listed) return listed;
    const { documents, own } = this.#options;
    if (documents && isUrl(clientId)) return await documents.load(clientId, peer, own);
    return await this.#open(clientId);
  }

  /** Tests whether a client id is listed or registered, or is the URL of a metadata document, which is not loaded. */
  async isKnown(clientId: string): Promise<boolean> {
    return this.#listed.has(clientId) || isUrl(clientId) || isRegistration(await this.#unseal(clientId));
  }

  /**
   * Checks that a token request comes from the client.
   *
   * @param params Parameters of the request. Pass a secret from the `Authorization` header as `client_secret`.
   * @throws {OAuthError} (as a rejection) if the client does not prove its identity.
   */
  async authenticate(client: Client, params: URLSearchParams, facts: AuthenticationFacts): Promise<void> {
    const refuse = (state: string) => new OAuthError("invalid_client", state, 401);
    const read = (name: string) => {
      const values = params.getAll(name);
      if (values.length > 1) throw new OAuthError("invalid_request", `${name} occurs twice`);
      // An empty parameter counts as absent (RFC 6749, section 3.2).
      return values[0] || undefined;
    };
    const [secret, assertion, type] = CREDENTIALS.map(read);
    if (client.authMethod === "none") {
      if (secret ?? assertion ?? type) throw refuse("the client is public; send no secret and no assertion");
      return;
    }
    if (secret !== undefined) throw refuse("the client must send client_assertion and no secret");
    if (assertion === undefined || type !== ASSERTION_TYPE) {
      throw refuse(`the client must send client_assertion, and client_assertion_type ${ASSERTION_TYPE}`);
    }
    const { documents, own } = this.#options;
    if (!documents) throw refuse("the server loads no keys of clients");
    const { peer } = facts;
    const loadKeys = (isRotated: boolean) =>
      documents.loadKeys(client, { peer, own, ...isRotated ? { maxAgeMs: ROTATED_MS } : {} });
    await checkAssertion(client, assertion, facts, loadKeys);
  }

  async #register(body: Readonly<Record<string, unknown>>): Promise<RegistrationResponse["json"]> {
    const refuse = (state: string) => new OAuthError("invalid_client_metadata", state);
    const { client_name: name = UNNAMED, token_endpoint_auth_method: method, scope: scopes } = body;
    const redirects = this.#readRedirects(body.redirect_uris);
    if (!isClientName(name)) throw refuse("client_name is empty, too long, or has invisible characters");
    if (!PUBLIC_METHODS.includes(method)) {
      throw refuse("token_endpoint_auth_method must be none; clients with keys need a metadata document");
    }
    const scope = readScope(scopes);
    const { sealer, date = Date.now } = this.#options;
    const registration: Registration = { t: KIND, n: name, r: redirects, s: scope };
    const id = await sealer.seal(registration);
    if (id.length > MAX_ID) throw refuse("the registration is too long; register fewer or shorter redirect_uris");
    return {
      client_id: id,
      client_id_issued_at: Math.floor(date() / 1000),
      client_name: name,
      redirect_uris: redirects,
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      ...scope === undefined ? {} : { scope },
    };
  }

  #readRedirects(list: unknown): readonly string[] {
    const refuse = (state: string) => new OAuthError("invalid_redirect_uri", state);
    if (!Array.isArray(list) || !list.length || list.length > MAX_REDIRECTS) {
      throw refuse(`redirect_uris must be a list of 1 to ${MAX_REDIRECTS} texts`);
    }
    for (const [at, uri] of list.entries()) {
      const problem = this.#options.rules.findListProblem(uri);
      if (problem !== undefined) throw refuse(`redirect URI ${at + 1} cannot be registered: ${problem}`);
    }
    return list;
  }

  async #open(id: string): Promise<Client> {
    const opened = await this.#unseal(id);
    if (!isRegistration(opened)) throw toUnknownClient();
    const { n: name, r: redirectUris, s: scope } = opened;
    return { id, name, redirectUris, isDocument: false, authMethod: "none", scope };
  }

  async #unseal(id: string): Promise<unknown> {
    if (id.length > MAX_ID) return;
    try {
      return await this.#options.sealer.open(id);
    } catch {
      // The server has not sealed this text.
    }
  }
}

/** The error after which clients register again. */
export function toUnknownClient(): OAuthError {
  const remedy = "register the client again, for example by removing the server from the app and adding it again";
  return new OAuthError("invalid_client", `client_id is not known; ${remedy}`, 401);
}

function isUrl(clientId: string): boolean {
  return /^https?:/i.test(clientId);
}

function readBody(body: unknown): Readonly<Record<string, unknown>> {
  const refuse = (state: string) => new OAuthError("invalid_client_metadata", state);
  const text = typeof body === "string" ? body : JSON.stringify(body) ?? "";
  if (text.length > MAX_BODY || new TextEncoder().encode(text).length > MAX_BODY) {
    throw refuse(`the registration is longer than ${MAX_BODY} bytes`);
  }
  const json = typeof body === "string" ? parseJson(body) : body;
  if (!isObject(json)) throw refuse("the registration is not a JSON object");
  return json;
}

function isRegistration(value: unknown): value is Registration {
  return isObject(value) && value.t === KIND && typeof value.n === "string" && Array.isArray(value.r);
}

function toListed(client: ListedClient): Client {
  const action = `list ${toPlace("client", client, "id")}`;
  checkOptions(action, client, {
    names: { id: "text", name: "text", redirects: "texts" },
    hints: { client_id: "id", client_name: "name", redirect_uris: "redirects", redirectUris: "redirects" },
    elsewhere: { secret: "remove it, because MCP clients are public clients, which prove themselves with PKCE" },
  });
  const { id, name, redirects } = client;
  const refuse = (state: string) => new TypeError(`Cannot ${action}: ${state}`);
  if (typeof id !== "string" || !/^[!-~]{1,200}$/.test(id) || /^https?:/i.test(id)) {
    throw refuse("its id must have 1 to 200 printable ASCII characters, and must not be a URL");
  }
  if (!isClientName(name)) throw refuse("its name must be a readable text of at most 100 characters");
  if (!redirects?.length) throw refuse("it has no redirect URI; add its redirects");
  for (const uri of redirects) {
    const problem = findRedirectProblem(uri);
    if (problem !== undefined) throw refuse(`its redirect URI ${JSON.stringify(uri)} is not valid: ${problem}`);
  }
  return { id, name, redirectUris: [...redirects], isDocument: false, isTrusted: true, authMethod: "none" };
}
