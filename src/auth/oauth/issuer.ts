/**
 * Loads the metadata and the keys of authorization servers.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import { listMetadataUrls } from "../../core/kit/issuer_metadata.ts";
import { isLoopback } from "../../core/kit/loopback_host.ts";
import { readSecureUrl, type Send, sendJson, TIMEOUT_MS } from "./http.ts";
import { Loaded } from "./loaded.ts";
import { hideCredentials } from "../../core/kit/url_text.ts";
import { quote } from "../../core/protocol/errors.ts";

/** An endpoint is `undefined` if the metadata contains no secure URL for the endpoint. */
export interface IssuerMetadata {
  readonly jwksUri?: string;
  readonly tokenEndpoint?: string;
  readonly introspectionEndpoint?: string;
}

/** A key set of an issuer, as loaded from `jwks_uri`. */
export interface IssuerKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  /** The key set as JSON text, to detect whether the issuer's keys have changed. */
  readonly text: string;
}

/** A trusted authorization server. Its metadata and keys are loaded when they are first needed. */
export class Issuer {
  readonly name: string;
  readonly metadata: Loaded<IssuerMetadata>;
  readonly keys: Loaded<IssuerKeys>;
  readonly #url: URL;
  readonly #send: Send;
  #latest?: IssuerKeys;

  /** Throws if `name` is not a URL over https, or over http on loopback. */
  constructor(name: string, send: Send) {
    const url = readSecureUrl(name);
    if (!url || url.search) {
      const state =
        "it must be an https URL without a user name, a password and a query, as in the claim `iss` of its tokens; http is allowed only on loopback";
      throw new TypeError(`Cannot use the issuer ${quote(hideCredentials(String(name)))}: ${state}`);
    }
    this.name = name;
    this.#url = url;
    this.#send = send;
    this.metadata = new Loaded(`the metadata of the issuer ${name}`, () => this.#loadMetadata());
    this.keys = new Loaded(`the keys of the issuer ${name}`, (now) => this.#loadKeys(now));
  }

  get latestKeys(): IssuerKeys | undefined {
    return this.#latest;
  }

  async #loadMetadata(): Promise<IssuerMetadata> {
    const json = await loadIssuerMetadata(this.#url, (issuer) => issuer === this.name, this.#send);
    return {
      jwksUri: readEndpoint(this.#url, json.jwks_uri),
      tokenEndpoint: readEndpoint(this.#url, json.token_endpoint),
      introspectionEndpoint: readEndpoint(this.#url, json.introspection_endpoint),
    };
  }

  async #loadKeys(now: number): Promise<IssuerKeys> {
    const { jwksUri } = await this.metadata.get(now);
    if (jwksUri === undefined) throw new Error("the issuer's metadata contains no jwks_uri over https");
    const { status, json } = await sendJson(this.#send, jwksUri, {});
    if (status !== 200 || !isKeySet(json)) {
      throw new Error(`${jwksUri} responded with status ${status} and without a valid key set`);
    }
    const text = JSON.stringify(json);
    // Return the same object if the keys have not changed, because the token cache ignores tokens that were verified
    // with a different object.
    if (this.#latest?.text === text) return this.#latest;
    return this.#latest = { find: createLocalJWKSet(json), text };
  }
}

/**
 * Loads the metadata of an authorization server from its well-known URLs. `accepts` checks the issuer in the metadata,
 * because the metadata of another issuer must not provide keys for this issuer.
 */
export async function loadIssuerMetadata(
  url: URL,
  accepts: (issuer: unknown) => boolean,
  send: Send,
): Promise<Readonly<Record<string, unknown>>> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let state = "";
  for (const place of listMetadataUrls(url)) {
    const { status, json } = await sendJson(send, place, { signal });
    if (status !== 200) state ||= `${place} responded with status ${status}`;
    else if (!accepts(json.issuer)) state = `${place} names another issuer, ${JSON.stringify(json.issuer)}`;
    else return json;
  }
  throw new Error(state);
}

/** Returns `undefined` unless the URL of an endpoint uses https, or http if the issuer is on loopback. */
export function readEndpoint(issuer: URL, text: unknown): string | undefined {
  const url = readSecureUrl(text);
  return url && (url.protocol === "https:" || isLoopback(issuer.hostname)) ? url.href : undefined;
}

export function isKeySet(json: object): json is JSONWebKeySet {
  return "keys" in json && Array.isArray(json.keys);
}
