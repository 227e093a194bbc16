/**
 * This server as a client of an authorization server.
 *
 * @module
 */
import { importJWK, SignJWT } from "jose";
import type { KnownOptions } from "../../core/call/known_options.ts";
import { readSecureUrl, type Send, sendJson } from "./http.ts";
import type { Issuer } from "./issuer.ts";

/** How this server authenticates at an authorization server: with a secret, or with a private key. */
export interface OAuthClient {
  /** Id of this server as a client of the authorization server. */
  readonly clientId: string;
  /** The client's secret. Not needed with a private key. */
  readonly clientSecret?: string;
  /** Where the secret is sent: in the `Authorization` header, the default, or in the body. */
  readonly secretIn?: "header" | "body";
  /** The client's private key, instead of a secret. It signs a short-lived JWT for each request. */
  readonly privateKey?: CryptoKey | PrivateJwk;
  /** Signature algorithm of the private key. Defaults to `alg` of the key, else `ES256`. */
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
  /** Id of the key, if the authorization server knows several of this client. */
  readonly kid?: string;
}

/** An access token for a server that this server calls. */
export interface AccessToken {
  /** The token, for an `Authorization: Bearer` header. */
  readonly accessToken: string;
  /** Time at which it expires, in milliseconds since 1970, if the issuer says so. */
  readonly expiresAt?: number;
  /** Scopes that were granted, if the issuer says so. */
  readonly scopes?: readonly string[];
}

/** Validates how a client authenticates. */
export function checkClient({ clientId, clientSecret, privateKey }: OAuthClient, place: string): void {
  if (typeof clientId !== "string" || !clientId) throw new TypeError(`Cannot use ${place}: clientId is missing`);
  if (clientSecret || privateKey && clientSecret === undefined) return;
  throw new TypeError(`Cannot use ${place}: give it a clientSecret or a privateKey; is its variable set?`);
}

/** A form for an endpoint of an authorization server. */
export interface Form {
  readonly endpoint: string;
  readonly client: OAuthClient;
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** Sends a form with the client's authentication. */
export async function sendForm(
  { issuer, send }: { readonly issuer: Issuer; readonly send: Send },
  { endpoint, client, params }: Form,
): ReturnType<typeof sendJson> {
  // The credentials must not go where they could be read, or to this machine by mistake.
  if (!readSecureUrl(endpoint)) throw new Error(`${endpoint} is neither https nor on loopback`);
  const { clientId, clientSecret, secretIn = "header", privateKey } = client;
  const body = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined) body.set(name, value);
  const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
  if (privateKey) {
    body.set("client_id", clientId);
    body.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    body.set("client_assertion", await signAssertion(client, privateKey, issuer.name));
  } else if (secretIn === "body") {
    body.set("client_id", clientId);
    body.set("client_secret", clientSecret ?? "");
  } else headers.set("authorization", `Basic ${btoa(`${encode(clientId)}:${encode(clientSecret ?? "")}`)}`);
  return await sendJson(send, endpoint, { method: "POST", headers, body });
}

const ASSERTION_SECONDS = 60;

async function signAssertion(client: OAuthClient, given: CryptoKey | PrivateJwk, audience: string): Promise<string> {
  const { clientId } = client;
  const jwk = "kty" in given ? given : undefined;
  const alg = client.algorithm ?? jwk?.alg ?? "ES256";
  const key = "kty" in given ? await importJWK(given, alg) : given;
  const now = Math.floor(Date.now() / 1000);
  return await new SignJWT({ iss: clientId, sub: clientId, aud: audience, jti: crypto.randomUUID() })
    .setProtectedHeader({ alg, ...jwk?.kid !== undefined && { kid: jwk.kid } })
    .setIssuedAt(now)
    .setExpirationTime(now + ASSERTION_SECONDS)
    .sign(key);
}

// The encoding of forms, as RFC 6749 wants it in the header too.
function encode(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/**
 * Requests a token. The errors have no text of the issuer but its error code, because some issuers repeat the tokens
 * that they were sent.
 */
export async function requestToken(
  place: { readonly issuer: Issuer; readonly send: Send },
  { client, params }: Pick<Form, "client" | "params">,
): Promise<AccessToken> {
  const { tokenEndpoint } = await place.issuer.metadata.get(Date.now());
  const state = `Cannot get a token from ${place.issuer.name}`;
  if (tokenEndpoint === undefined) throw new Error(`${state}: its metadata has no usable token_endpoint`);
  const { status, json } = await sendForm(place, { endpoint: tokenEndpoint, client, params });
  const { access_token: accessToken, error, expires_in: seconds, scope, token_type: type } = json;
  if (status !== 200) {
    const code = typeof error === "string" && /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : "";
    throw new Error(`${state}: it responds with status ${status}${code}`);
  }
  if (typeof accessToken !== "string" || !accessToken) throw new Error(`${state}: its response has no access_token`);
  if (accessToken === params.subject_token) throw new Error(`${state}: it returns the caller's own token`);
  if (typeof type === "string" && !/^(bearer|n_a)$/i.test(type)) {
    throw new Error(`${state}: the token is no bearer token`);
  }
  return Object.freeze({
    accessToken,
    expiresAt: typeof seconds === "number" && seconds >= 0 ? Date.now() + seconds * 1000 : undefined,
    scopes: typeof scope === "string" ? scope.split(" ").filter(Boolean) : undefined,
  });
}

/** Time before its expiry from which a token is not used again, in milliseconds. At most half of its life. */
const MARGIN_MS = 30_000;
/** Time for which a token without expiry is used, in milliseconds. */
const UNKNOWN_MS = 60_000;

/** A token that is requested when it is first needed, and again before it expires. Requests share it. */
export class ReusedToken {
  readonly #request: () => Promise<AccessToken>;
  #token?: Promise<AccessToken>;
  #until = -Infinity;

  constructor(request: () => Promise<AccessToken>) {
    this.#request = request;
  }

  get(): Promise<AccessToken> {
    if (this.#token && Date.now() < this.#until) return this.#token;
    const token = this.#request();
    this.#token = token;
    this.#until = Infinity;
    token.then(({ expiresAt }) => {
      const now = Date.now();
      const life = expiresAt === undefined ? UNKNOWN_MS : expiresAt - now;
      if (this.#token === token) this.#until = now + life - Math.min(MARGIN_MS, life / 2);
    }, () => {
      if (this.#token === token) this.#token = undefined;
    });
    return token;
  }
}
