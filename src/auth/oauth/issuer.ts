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
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    let state = "";
    for (const url of listMetadataUrls(this.#url)) {
      const { status, json } = await sendJson(this.#send, url, { signal });
      if (status !== 200) state ||= `${url} responded with status ${status}`;
      // Check the issuer in the metadata, because the metadata of another issuer must not provide keys for this issuer.
      else if (json.issuer !== this.name) state = `${url} names another issuer, ${JSON.stringify(json.issuer)}`;
      else {
        return {
          jwksUri: this.#readEndpoint(json.jwks_uri),
          tokenEndpoint: this.#readEndpoint(json.token_endpoint),
          introspectionEndpoint: this.#readEndpoint(json.introspection_endpoint),
        };
      }
    }
    throw new Error(state);
  }

  #readEndpoint(text: unknown): string | undefined {
    const url = readSecureUrl(text);
    return url && (url.protocol === "https:" || isLoopback(this.#url.hostname)) ? url.href : undefined;
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

function isKeySet(json: object): json is JSONWebKeySet {
  return "keys" in json && Array.isArray(json.keys);
}
