/**
 * The options of all token sources, and the interface of token sources.
 */
import type { KnownOptions } from "../../core/known_options.ts";
import { isObject } from "../../core/kit/json.ts";
import type { ClientAuth } from "../client_auth.ts";
import type { TokenStore } from "./token_store.ts";

/** Options that all token sources have in common. */
export interface TokenOptions {
  /** Scopes to request in addition to the scopes that the server requires. */
  readonly scopes?: readonly string[];
  /**
   * The resource identifier of a server, if it is a URL that contains the server's URL, such as
   * `https://mcp.example.com` for `https://mcp.example.com/mcp`. The tokens can then be used at every server that the
   * resource contains, so set the option only if you trust all these servers. By default, the resource in a server's
   * metadata must be the server's URL.
   */
  readonly resource?: string;
  /** The store for tokens and client registrations. Defaults to {@linkcode memoryTokens}. */
  readonly store?: TokenStore;
  /**
   * Whether to bind tokens to a key (DPoP, RFC 9449), so that a stolen token cannot be used. By default, tokens are
   * bound only if the server's metadata requires bound tokens.
   */
  readonly dpop?: boolean;
  /** Replaces the global `fetch` for requests to authorization servers. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** Facts about a sign-in to a server. */
export interface SignInInfo {
  /** The URL of the server. */
  readonly server: string;
  /** The issuer identifier of the authorization server. */
  readonly issuer: string;
  /** The resource identifier in the server's metadata, for which the token was issued. */
  readonly resource: string;
  /** The client id at the authorization server. */
  readonly clientId: string;
  /** The granted scopes. */
  readonly scopes: readonly string[];
  /**
   * Time at which the token expires, in milliseconds since 1970. `undefined` if the authorization server did not send
   * an expiry time.
   */
  readonly expiresAt?: number;
  /** Whether the token can be renewed without signing in again. */
  readonly canRefresh: boolean;
  /** URL at which the token is renewed. `undefined` for a sign-in of an older release. */
  readonly tokenEndpoint?: string;
}

/** A token source. Any number of connections and servers can share a token source. */
export interface SignIn extends ClientAuth {
  /** Returns facts about the stored sign-in to the server at a URL, or `undefined` if there is no stored sign-in. */
  readonly info: (server: string) => Promise<SignInInfo | undefined>;
  /**
   * Deletes the stored tokens of a server, and revokes the tokens if the authorization server supports revocation.
   * Returns whether there were tokens.
   */
  readonly signOut: (server: string) => Promise<boolean>;
}

export const TOKEN_OPTIONS: KnownOptions<keyof TokenOptions> = {
  names: {
    scopes: "texts",
    resource: { findProblem: (value) => typeof value === "string" && URL.canParse(value) ? undefined : "is not a URL" },
    store: { findProblem: findStoreProblem },
    dpop: "boolean",
    fetch: "function",
  },
};

function findStoreProblem(value: unknown): string | undefined {
  const isStore = isObject(value) && [value.get, value.update].every((each) => typeof each === "function");
  return isStore ? undefined : "is not a token store; pass an object with the functions get and update";
}
