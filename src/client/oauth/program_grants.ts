/**
 * Obtains tokens without opening a browser: for programs, for users of a company's identity provider, and for workloads
 * on a platform.
 */
import { importJWK } from "jose";
import { type AuthorizationServer, PrivateKeyJwt, type TokenEndpointResponse } from "oauth4webapi";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { SignInError } from "./errors.ts";
import { type Grant, type GrantContext, type Party, requestGrant, TokenRefusedError } from "./grant.ts";
import { checkIssuer, type ClientAuthentication, toAuthentication, toKnown } from "./registration.ts";
import { type SignIn, TOKEN_OPTIONS, type TokenOptions } from "./token_options.ts";
import { TokenSources } from "./token_sources.ts";

/** A client that was registered manually, with a secret or a private key. */
export interface ProgramClient {
  /** The client id at the authorization server. */
  readonly id: string;
  /** The client secret at the authorization server. */
  readonly secret?: string;
  /**
   * The client's private key, instead of a secret. The JSON Web Key (RFC 7517) must contain `alg`, such as `ES256`, and
   * `kid` if the authorization server requires a key id.
   */
  readonly key?: {
    /** The signature algorithm. */
    readonly alg: string;
    /** Other members of the key, such as `kid`. */
    readonly [member: string]: unknown;
  };
  /**
   * The URL of the authorization server where the client was registered, spelled as in its metadata. Required with a
   * secret or a key.
   */
  readonly issuer?: string;
}

/** Options of {@linkcode clientCredentials}. */
export interface ClientCredentialsOptions extends TokenOptions {
  /** The client that is registered for the program at the authorization server. */
  readonly client: ProgramClient;
}

/** The options of {@linkcode workloadIdentity}. */
export interface WorkloadIdentityOptions extends TokenOptions {
  /**
   * Returns the token that the platform has issued to the workload, such as a Kubernetes service account token. Called
   * for each new access token.
   */
  readonly assertion: () => string | Promise<string>;
  /** The URL of the authorization server that accepts the assertion, spelled as in its metadata. */
  readonly issuer: string;
  /** The client, if the authorization server requires a client. */
  readonly client?: Omit<ProgramClient, "issuer">;
}

/** The options of {@linkcode enterpriseSignIn}. */
export interface EnterpriseSignInOptions extends TokenOptions {
  /** The company's identity provider, and the client that is registered there. */
  readonly identityProvider: {
    /** The https URL at which id tokens are exchanged. */
    readonly tokenEndpoint: string;
    /** The client. */
    readonly client: Omit<ProgramClient, "issuer">;
  };
  /** Returns the user's id token from the identity provider. Called for each new access token. */
  readonly idToken: () => string | Promise<string>;
  /** The client that is registered at the MCP server's authorization server. */
  readonly client: ProgramClient;
}

const CLIENT_AT: KnownOptions<"id" | "secret" | "key"> = { names: { id: true, secret: true, key: true } };
const CLIENT: KnownOptions<keyof ProgramClient> = { names: { ...CLIENT_AT.names, issuer: true } };

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";

/**
 * Obtains tokens for a program that acts on its own behalf (OAuth client credentials).
 *
 * ```ts
 * import { connect } from "@x/mcp/client";
 * import { clientCredentials } from "@x/mcp/client/oauth";
 *
 * const client = { id: "nightly-report", secret: "…", issuer: "https://login.example.com" };
 * const auth = clientCredentials({ client });
 *
 * export const open = (url: string) => connect(url, { auth });
 * ```
 *
 * @see the extension io.modelcontextprotocol/oauth-client-credentials
 */
export function clientCredentials(options: ClientCredentialsOptions): SignIn {
  checkOptions("use clientCredentials()", options, { names: { ...TOKEN_OPTIONS.names, client: CLIENT } });
  const client = readBoundClient("use clientCredentials()", options.client);
  if ((client.secret ?? client.key) === undefined) {
    throw new TypeError(
      "Cannot use clientCredentials(): the client has neither a secret nor a key; pass client.secret or client.key",
    );
  }
  return new TokenSources(
    toGrant(client, (context, party) => requestGrant(context, { ...party, type: "client_credentials" })),
    options,
  );
}

/**
 * Obtains tokens for a workload, in exchange for a token that the platform has issued to the workload (JWT bearer
 * grant, RFC 7523). An assertion that the authorization server has rejected is not sent again.
 */
export function workloadIdentity(options: WorkloadIdentityOptions): SignIn {
  const action = "use workloadIdentity()";
  const names = { ...TOKEN_OPTIONS.names, assertion: "function", issuer: true, client: CLIENT_AT } as const;
  checkOptions(action, options, { names });
  const { assertion, issuer } = options;
  checkFunction(action, assertion, "assertion");
  checkIssuer(action, "issuer", issuer);
  const client = { ...options.client ? readClient(action, options.client) : { id: "" }, issuer };
  let refused: { readonly assertion: string; readonly error: unknown } | undefined;
  return new TokenSources(
    toGrant(client, async (context, party) => {
      const text = await assertion();
      if (refused?.assertion === text) throw refused.error;
      try {
        return await exchangeAssertion(context, party, text);
      } catch (error) {
        // Remember a rejection only if the authorization server has checked the assertion, because after a temporary
        // failure the same assertion may succeed.
        if (error instanceof TokenRefusedError && error.isFinal) refused = { assertion: text, error };
        throw error;
      }
    }),
    options,
  );
}

/**
 * Obtains tokens for users of a company's identity provider. The identity provider decides which servers a user may
 * use. The identity provider exchanges the user's id token for an assertion. The server's authorization server then
 * exchanges the assertion for an access token.
 *
 * @see the extension io.modelcontextprotocol/enterprise-managed-authorization
 */
export function enterpriseSignIn(options: EnterpriseSignInOptions): SignIn {
  const provider = { names: { tokenEndpoint: true, client: CLIENT_AT } } as const;
  const names = { ...TOKEN_OPTIONS.names, identityProvider: provider, idToken: "function", client: CLIENT } as const;
  checkOptions("use enterpriseSignIn()", options, { names });
  const action = "use enterpriseSignIn()";
  const client = readBoundClient(action, options.client);
  const { identityProvider, idToken } = options;
  readClient(action, identityProvider?.client);
  if (!URL.canParse(identityProvider.tokenEndpoint)) {
    throw new TypeError(`Cannot ${action}: identityProvider.tokenEndpoint is not a URL`);
  }
  checkFunction(action, idToken, "idToken");
  return new TokenSources(
    toGrant(client, async (context, party) => {
      const assertion = await exchangeIdToken(context, identityProvider, await idToken());
      return await exchangeAssertion(context, party, assertion);
    }),
    options,
  );
}

function readClient(action: string, client: ProgramClient | undefined): ProgramClient {
  if (typeof client?.id !== "string") throw new TypeError(`Cannot ${action}: client.id is not a string`);
  if (client.secret === undefined || client.key === undefined) return client;
  throw new TypeError(`Cannot ${action}: the client has both a secret and a key; remove client.secret or client.key`);
}

/** Requires `issuer` with a secret or a key, because these belong to one authorization server. */
function readBoundClient(action: string, client: ProgramClient | undefined): ProgramClient {
  const read = readClient(action, client);
  if ((read.secret ?? read.key ?? read.issuer) !== undefined) checkIssuer(action, "client.issuer", read.issuer);
  return read;
}

function checkFunction(action: string, value: unknown, name: string): void {
  if (typeof value !== "function") throw new TypeError(`Cannot ${action}: ${name} is not a function`);
}

function toGrant(
  client: ProgramClient,
  request: (context: GrantContext, party: Party) => Promise<TokenEndpointResponse>,
): Grant {
  return {
    issuer: client.issuer,
    clientId: client.id,
    isInteractive: false,
    async obtain(context) {
      const { authorizationServer: as } = context;
      return { client: toKnown(client, as), response: await request(context, await toParty(client, as)) };
    },
  };
}

async function toParty(client: ProgramClient, as: AuthorizationServer): Promise<Party> {
  // If a workload has no client, only the assertion identifies the workload.
  if (!client.id) return { info: { client_id: "none" }, authentication: () => {} };
  const authentication = client.key ? await toKeyAuthentication(client.key) : toAuthentication(toKnown(client, as));
  return { info: { client_id: client.id }, authentication };
}

async function toKeyAuthentication(jwk: NonNullable<ProgramClient["key"]>): Promise<ClientAuthentication> {
  const key = await importJWK(jwk);
  if (!(key instanceof CryptoKey)) {
    throw new TypeError("Cannot use client.key: the value is not a private JSON Web Key with alg");
  }
  return PrivateKeyJwt(typeof jwk.kid === "string" ? { key, kid: jwk.kid } : key);
}

async function exchangeAssertion(context: GrantContext, party: Party, assertion: string) {
  return await requestGrant(context, { ...party, type: JWT_BEARER, params: { assertion } });
}

async function exchangeIdToken(
  context: GrantContext,
  { tokenEndpoint, client }: EnterpriseSignInOptions["identityProvider"],
  idToken: string,
): Promise<string> {
  const authorizationServer = { issuer: new URL(tokenEndpoint).origin, token_endpoint: tokenEndpoint };
  const party = await toParty(client, authorizationServer);
  const params = {
    requested_token_type: ID_JAG,
    audience: context.authorizationServer.issuer,
    subject_token: idToken,
    subject_token_type: ID_TOKEN,
  };
  // Do not bind the assertion to the key, because the assertion is not an access token.
  const requests = context.requests.toChosen(tokenEndpoint);
  const exchanging = { ...context, authorizationServer, requests, key: undefined };
  const response = await requestGrant(exchanging, { ...party, type: TOKEN_EXCHANGE, params, otherTypes: ["n_a"] });
  if (response.issued_token_type === ID_JAG) return response.access_token;
  throw new SignInError(
    `Cannot sign in to ${context.server}: the identity provider ${tokenEndpoint} returned a token of another type; an ID-JAG is required`,
  );
}
