/**
 * The options that all sources of tokens have, and the facts about tokens that they return.
 *
 * @module
 */
import type { KnownOptions } from "../../core/call/known_options.ts";
import { isObject } from "../../kit/json.ts";
import type { ClientAuth } from "../client_auth.ts";
import type { TokenStore } from "./token_store.ts";

/** Options that all token sources have in common. */
export interface TokenOptions {
  /** Scopes to request in addition to the scopes that a server requires. */
  readonly scopes?: readonly string[];
  /** Stores tokens and registrations. Defaults to {@linkcode memoryTokens}. */
  readonly store?: TokenStore;
  /**
   * Whether tokens are bound to a key (DPoP, RFC 9449), so that a stolen token cannot be used. By default, tokens are
   * bound only if the server's metadata requires it.
   */
  readonly dpop?: boolean;
  /** Replaces the global `fetch` for requests to authorization servers. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** Facts about the sign-in at a server. */
export interface SignInFacts {
  /** The URL of the server. */
  readonly server: string;
  /** The authorization server. */
  readonly issuer: string;
  /** The resource that the token is for: the identifier of the server in its metadata. */
  readonly resource: string;
  /** The id of the client at the authorization server. */
  readonly clientId: string;
  /** The granted scopes. */
  readonly scopes: readonly string[];
  /**
   * Time at which the token expires, in milliseconds since 1970. `undefined` if the authorization server did not state
   * it.
   */
  readonly expiresAt?: number;
  /** Whether the token can be renewed without the user. */
  readonly canRefresh: boolean;
}

/** A source of tokens. It may serve any number of connections and servers. */
export interface SignIn extends ClientAuth {
  /**
   * Returns facts about the stored sign-in for the URL of a server, or `undefined` if the user has not signed in there.
   */
  readonly facts: (server: string) => Promise<SignInFacts | undefined>;
  /**
   * Deletes the tokens of a server, and revokes them if the authorization server supports revocation. Returns whether
   * there were tokens.
   */
  readonly signOut: (server: string) => Promise<boolean>;
}

/** Names of the options that all sources of tokens have. */
export const TOKEN_OPTIONS: KnownOptions<keyof TokenOptions> = {
  names: {
    scopes: "texts",
    store: { findProblem: findStoreProblem },
    dpop: "boolean",
    fetch: "function",
  },
};

function findStoreProblem(value: unknown): string | undefined {
  const isStore = isObject(value) && [value.get, value.update].every((each) => typeof each === "function");
  return isStore ? undefined : "is not a store; it must have the functions get and update";
}
