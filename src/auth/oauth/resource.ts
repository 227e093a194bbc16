/**
 * The protected resources of a server: a single resource, or one resource for each concrete path.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { hideCredentials } from "../../core/kit/url_text.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { AuthRoute, Challenge, PathInfo } from "../../server/engine/auth.ts";
import { toAudience } from "./claims.ts";
import { PROOF_ALGORITHMS } from "./dpop.ts";
import { readSecureUrl } from "./http.ts";
import { fixedRoutes, pathRoutes, toMetadataUrl } from "./metadata.ts";

/**
 * Returns a value for the parameters of a concrete path. The server's `params` schema has converted the parameters.
 * Strings are encoded with `encodeURIComponent`, so they are safe in a URL.
 */
export type ByPath<T> = (params: Readonly<Record<string, unknown>>) => T;

export interface ResourceOptions {
  readonly resource: string | ByPath<string>;
  readonly audience?: string | readonly string[] | ByPath<string | readonly string[]>;
  readonly issuers: readonly string[];
  readonly scopes?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly rootMetadata?: boolean;
  readonly dpop?: "required";
}

/** A protected resource: a URL for which issuers issue tokens. */
export class Resource {
  /** Prefix for the keys of token caches. Empty if the server has a single resource. */
  readonly key: string;
  readonly #text: string;
  readonly #audience: readonly string[];
  readonly #options: ResourceOptions;
  #url?: URL;
  #audiences?: ReadonlySet<string>;
  #challenges?: readonly [Challenge, ...Challenge[]];

  constructor(text: string, audience: readonly string[], options: ResourceOptions) {
    this.key = typeof options.resource === "function" ? `${JSON.stringify([text, audience])} ` : "";
    this.#text = text;
    this.#audience = audience;
    this.#options = options;
  }

  get url(): URL {
    return this.#url ??= this.#readUrl();
  }

  #readUrl(): URL {
    const url = readSecureUrl(this.#text);
    const refuse = (state: string) =>
      new TypeError(`Cannot use the resource ${quote(hideCredentials(String(this.#text)))}: ${state}`);
    if (!url) {
      throw refuse(
        "it must be the endpoint's https URL without a user name, a password and a fragment; http is allowed only on loopback",
      );
    }
    // Require the normal form. Otherwise, paths whose URLs differ only in spelling would share one resource.
    if (this.key && toName(this.#text, url) !== this.#text) {
      const normal = toName(this.#text, url);
      throw refuse(`it is not in normal form; write ${normal}, or restrict the parameters with \`params\``);
    }
    return url;
  }

  /**
   * The identifier that clients see: the URL with scheme and host in lower case. If the author wrote no slash after the
   * host, the identifier has no slash there either.
   */
  get name(): string {
    return toName(this.#text, this.url);
  }

  /** Accepted values of the `aud` claim: the URL of the resource, and the `audience` option. */
  get audiences(): ReadonlySet<string> {
    return this.#audiences ??= new Set([this.name, ...this.#audience].map(toAudience));
  }

  /** The challenge with the preferred scheme: Bearer, or DPoP if it is required. */
  get challenge(): Challenge {
    return this.challenges[0];
  }

  /** One challenge for each accepted scheme, each with the URL of the resource's metadata. */
  get challenges(): readonly [Challenge, ...Challenge[]] {
    return this.#challenges ??= this.#toChallenges();
  }

  #toChallenges(): readonly [Challenge, ...Challenge[]] {
    const { scopes, dpop } = this.#options;
    const scope = scopes?.join(" ");
    const params = { resource_metadata: toMetadataUrl(this.url), ...scope && { scope } };
    const proof = { scheme: "DPoP", params: { algs: PROOF_ALGORITHMS.join(" "), ...params } };
    return dpop === "required" ? [proof] : [{ scheme: "Bearer", params }, proof];
  }

  /** The protected resource metadata (RFC 9728) as JSON text. */
  get metadata(): string {
    const { metadata, issuers, scopes, dpop } = this.#options;
    return JSON.stringify({
      ...metadata,
      resource: this.name,
      authorization_servers: issuers,
      ...scopes?.length && { scopes_supported: scopes },
      bearer_methods_supported: ["header"],
      ...dpop === "required" && { dpop_bound_access_tokens_required: true },
      dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
    });
  }
}

export interface Resources {
  /** Returns the resource for the concrete path of a request. */
  readonly at: (info: PathInfo) => Resource;
  readonly challenge: Challenge | ((info: PathInfo) => Challenge);
  readonly routes: readonly AuthRoute[] | ((path: string) => readonly AuthRoute[]);
}

/** @throws {TypeError} if the options contradict each other. */
export function readResources(options: ResourceOptions): Resources {
  const { resource, audience = [], rootMetadata = false } = options;
  if (typeof resource !== "function") {
    if (typeof audience === "function") {
      throw new TypeError(
        "Cannot use oauth(): audience is a function, but resource is not; make resource a function too",
      );
    }
    const only = new Resource(resource, [audience].flat().map(toText), options);
    const routes = fixedRoutes(only.url, { json: only.metadata, atRoot: rootMetadata });
    return { at: () => only, challenge: only.challenge, routes };
  }
  if (rootMetadata) {
    throw new TypeError(
      "Cannot use oauth(): rootMetadata requires a single resource; remove rootMetadata, or make resource a URL",
    );
  }
  // With a fixed audience, a token for one path would be accepted at all paths.
  if (typeof audience !== "function" && audience.length) {
    throw new TypeError(
      "Cannot use oauth(): resource is a function, but audience is not; make audience a function too",
    );
  }
  const toAudiences = typeof audience === "function" ? audience : () => [];
  const at = ({ pathParams }: PathInfo) => {
    const params = encode(pathParams());
    return new Resource(toText(resource(params)), [toAudiences(params)].flat().map(toText), options);
  };
  const routes = (path: string) => {
    if (path.includes("/:")) return pathRoutes(path, (info) => at(info).metadata);
    const state = `resource is a function, but the server's path ${path} has no parameters`;
    throw new TypeError(`Cannot use oauth(): ${state}; write the resource as a URL`);
  };
  return { at, challenge: (info) => at(info).challenge, routes };
}

/**
 * Checks that each concrete path of a server has its own resource. If all tenants shared one resource, a token for one
 * tenant would be accepted at the paths of all other tenants.
 *
 * @throws {TypeError} if `path` has parameters and `resource` is not a function.
 */
export function checkPath({ resource }: Pick<ResourceOptions, "resource">, path: string): void {
  if (typeof resource === "function" || !path.includes("/:")) return;
  const state = `resource is one URL, but the server's path ${path} has parameters`;
  throw new TypeError(`Cannot use oauth(): ${state}; make resource (and audience) a function of the parameters`);
}

/** Scheme and host in lower case, and no slash after the host unless `text` contains one. */
function toName(text: string, { href, origin, pathname, search }: URL): string {
  return pathname === "/" && !search && !text.endsWith("/") ? origin : href;
}

// Encodes the parameters, because other text could change the path or the host of the resource's URL.
function encode(params: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const encoded = Object.entries(params).map(([name, value]) =>
    [name, typeof value === "string" ? encodeURIComponent(value) : value] as const
  );
  return Object.fromEntries(encoded);
}

function toText(value: unknown): string {
  if (typeof value === "string" && value) return value;
  const state = isStrayPromise(value) ? "a promise" : value === "" ? "an empty text" : `of type ${typeof value}`;
  throw new TypeError(`Cannot use the resource or the audience of oauth(): the value is ${state}; use a string`);
}
