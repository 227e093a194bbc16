/**
 * The options of all sources of tokens, and what they tell of tokens.
 *
 * @module
 */
import type { KnownOptions } from "../../core/call/known_options.ts";
import { isObject } from "../../kit/json.ts";
import type { ClientAuth } from "../client_auth.ts";
import type { TokenStore } from "./token_store.ts";

/** The options of all sources of tokens. */
export interface TokenOptions {
  /** Scopes to request besides those that a server asks for. */
  readonly scopes?: readonly string[];
  /** Keeps tokens and registrations. Defaults to {@linkcode memoryTokens}. */
  readonly store?: TokenStore;
  /**
   * Whether tokens are bound to a key (RFC 9449), so that whoever steals one cannot use it. Defaults to what the server's
   * metadata demands.
   */
  readonly dpop?: boolean;
  /** Replaces the global `fetch` for requests to authorization servers. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** What is known of a sign-in. */
export interface SignInFacts {
  /** The URL of the server. */
  readonly server: string;
  /** The authorization server. */
  readonly issuer: string;
  /** What the token is for: the server, as its metadata identifies it. */
  readonly resource: string;
  /** The client, as the authorization server knows it. */
  readonly clientId: string;
  /** The granted scopes. */
  readonly scopes: readonly string[];
  /** When the token expires, in milliseconds since 1970, if that is known. */
  readonly expiresAt?: number;
  /** Whether the token is renewed without the user. */
  readonly canRefresh: boolean;
}

/** A source of tokens. It may serve any number of connections and servers. */
export interface SignIn extends ClientAuth {
  /** Returns what the store holds for the URL of a server, or `undefined`. */
  readonly facts: (server: string) => Promise<SignInFacts | undefined>;
  /**
   * Deletes the tokens of a server, and revokes them at the authorization server if that can be done. Returns whether
   * there were any.
   */
  readonly signOut: (server: string) => Promise<boolean>;
}

/** The options of every source of tokens. */
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
