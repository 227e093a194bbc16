/**
 * A way to get tokens from an authorization server.
 *
 * @module
 */
import { type AuthorizationServer, type DPoPHandle, isDPoPNonceError, type TokenEndpointResponse } from "oauth4webapi";
import { SignInError, toErrorCode, toReason } from "./errors.ts";
import type { RegisteredClient } from "./held_tokens.ts";
import type { ProofKey } from "./proof_key.ts";
import { type TokenRequestOptions, toRequestOptions } from "./registration.ts";
import type { Requests } from "./requests.ts";
import type { TokenStore } from "./token_store.ts";

/** Parameters with which a grant obtains a token. */
export interface GrantContext {
  /** The URL of the server. */
  readonly server: string;
  readonly resource: string;
  readonly authorizationServer: AuthorizationServer;
  /** The scopes to request. If empty, the authorization server chooses the scopes. */
  readonly scopes: readonly string[];
  /** The key to which the token will be bound. */
  readonly key?: ProofKey;
  readonly requests: Requests;
  readonly store: TokenStore;
  readonly signal: AbortSignal;
}

/** A token, and the client that it belongs to. */
export interface Granted {
  readonly client: RegisteredClient;
  readonly response: TokenEndpointResponse;
}

/** A way to obtain tokens. */
export interface Grant {
  /** The authorization server that the client belongs to. */
  readonly issuer?: string;
  /** The only client whose tokens may be used. */
  readonly clientId?: string;
  readonly obtain: (context: GrantContext) => Promise<Granted>;
}

/** The error for a token request that the authorization server refused. */
export class TokenRefusedError extends SignInError {
  /** The error code, such as `invalid_grant`. */
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Sends a request for a token. Sends it again if the authorization server requires a nonce in the proof.
 *
 * @throws {TokenRefusedError} if the authorization server refuses the request.
 * @throws {SignInError} if the authorization server cannot be reached, or if its response is invalid.
 */
export async function requestToken(
  context: Pick<GrantContext, "authorizationServer" | "key" | "requests" | "resource" | "signal">,
  request: (
    options: TokenRequestOptions & { additionalParameters: Record<string, string>; DPoP?: DPoPHandle },
  ) => Promise<TokenEndpointResponse>,
): Promise<TokenEndpointResponse> {
  const { authorizationServer: { issuer }, key, requests, resource, signal } = context;
  const options = {
    ...toRequestOptions(requests, signal),
    additionalParameters: { resource },
    ...key ? { DPoP: key.handle } : {},
  };
  try {
    const response = await request(options).catch((error) => {
      if (isDPoPNonceError(error)) return request(options);
      throw error;
    });
    if (!key || response.token_type === "dpop") return response;
    throw new SignInError(`Cannot use the token of ${issuer}: it is not bound to the key of this client`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SignInError) throw error;
    const code = toErrorCode(error);
    const message = `Cannot get a token of ${issuer}: ${toReason(error)}`;
    throw code === undefined ? new SignInError(message) : new TokenRefusedError(message, code);
  }
}
