/**
 * The interface of grants, which obtain tokens from an authorization server, and the function that sends a token
 * request.
 */
import {
  type AuthorizationServer,
  type DPoPHandle,
  genericTokenEndpointRequest,
  isDPoPNonceError,
  processGenericTokenEndpointResponse,
  type TokenEndpointResponse,
} from "oauth4webapi";
import { type Refusal, SignInError, toReason, toRefusal } from "./errors.ts";
import type { RegisteredClient } from "./held_tokens.ts";
import type { ProofKey } from "./proof_key.ts";
import { type ClientAuthentication, type TokenRequestOptions, toRequestOptions } from "./registration.ts";
import type { Requests } from "./requests.ts";
import type { TokenStore } from "./token_store.ts";
import { explain } from "../shown.ts";

export interface GrantContext {
  readonly server: string;
  readonly resource: string;
  readonly authorizationServer: AuthorizationServer;
  /** The scopes to request. If empty, the authorization server chooses the scopes. */
  readonly scopes: readonly string[];
  readonly key?: ProofKey;
  /** Set if the server's challenge contained the URL of the resource metadata. */
  readonly metadataUrl?: string;
  readonly requests: Requests;
  readonly store: TokenStore;
  readonly signal: AbortSignal;
}

/** The response with a token, and the client to which the token was issued. */
export interface Granted {
  readonly client: RegisteredClient;
  readonly response: TokenEndpointResponse;
}

export interface Grant {
  /** The authorization server where the client is registered. */
  readonly issuer?: string;
  /** The client's id. Stored tokens of other clients are not used. */
  readonly clientId?: string;
  /** Whether obtaining tokens involves the user. */
  readonly isInteractive: boolean;
  readonly obtain: (context: GrantContext) => Promise<Granted>;
}

/** Error codes after which the authorization server rejects what it was sent whatever the status is. */
const FINAL = ["invalid_grant", "invalid_client", "unauthorized_client"];
/** Error codes of a temporary failure, after which the same request may succeed. */
const TEMPORARY = ["server_error", "temporarily_unavailable", "slow_down", "use_dpop_nonce"];

export class TokenRefusedError extends SignInError {
  /** Whether the authorization server would reject the same request again. */
  readonly isFinal: boolean;
  /** Whether the authorization server does not know the client. */
  readonly isUnknownClient: boolean;

  constructor(message: string, { status, code }: Refusal) {
    super(message);
    // Not every authorization server uses the codes of OAuth, and some send none.
    this.isUnknownClient = code === "invalid_client";
    this.isFinal = FINAL.includes(code) || [400, 401].includes(status) && !TEMPORARY.includes(code);
  }
}

type TokenContext = Pick<GrantContext, "authorizationServer" | "key" | "requests" | "resource" | "signal">;

/** A client, as it authenticates at the authorization server of a token request. */
export interface Party {
  readonly info: { readonly client_id: string };
  readonly authentication: ClientAuthentication;
}

export interface GrantRequest extends Party {
  readonly type: string;
  /** The parameters of the grant, to which the resource and the scopes are added. */
  readonly params?: Readonly<Record<string, string>>;
  /** Token types to accept in addition to `bearer` and `dpop`. */
  readonly otherTypes?: readonly string[];
}

/** Sends the token request of any grant except an authorization code, like {@linkcode requestToken}. */
export async function requestGrant(
  context: TokenContext & Partial<Pick<GrantContext, "scopes">>,
  { info, authentication, type, params, otherTypes = [] }: GrantRequest,
): Promise<TokenEndpointResponse> {
  const { authorizationServer, scopes } = context;
  const recognizedTokenTypes = Object.fromEntries(otherTypes.map((type) => [type, () => {}]));
  return await requestToken(context, async (options) => {
    const scope: Record<string, string> = scopes?.length ? { scope: scopes.join(" ") } : {};
    const all = { ...options.additionalParameters, ...params, ...scope };
    const response = await genericTokenEndpointRequest(authorizationServer, info, authentication, type, all, options);
    return await processGenericTokenEndpointResponse(authorizationServer, info, response, { recognizedTokenTypes });
  });
}

/**
 * Sends a token request. If the authorization server requires a nonce in the proof, sends the request again with the
 * nonce.
 *
 * @throws {TokenRefusedError} if the authorization server rejects the request.
 * @throws {SignInError} if the authorization server cannot be reached, or if its response is invalid.
 */
export async function requestToken(
  context: TokenContext,
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
    throw new SignInError(`Cannot use the token from ${issuer}: the token is not bound to this client's key`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SignInError) throw error;
    const refusal = toRefusal(error);
    const message = explain(`Cannot get a token from ${issuer}`, error, toReason(error));
    throw refusal ? new TokenRefusedError(message, refusal) : new SignInError(message);
  }
}
