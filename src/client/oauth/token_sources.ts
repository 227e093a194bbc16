/**
 * A token source for any number of servers.
 */
import { processRevocationResponse, revocationRequest } from "oauth4webapi";
import type { AuthChallenge, ClientAuth } from "../client_auth.ts";
import type { Grant } from "./grant.ts";
import type { HeldTokens } from "./held_tokens.ts";
import { toAuthentication, toRequestOptions } from "./registration.ts";
import type { SignIn, SignInInfo, TokenOptions } from "./token_options.ts";
import { type RefreshOptions, type SourceOptions, TokenSource } from "./token_source.ts";
import { memoryTokens } from "./token_store.ts";

/** Milliseconds that revoking a token may take. The token is deleted from the store even if revoking fails. */
const REVOKE_MS = 5000;

/** One {@linkcode TokenSource} per server, so that each server receives only its own tokens. */
export class TokenSources implements SignIn {
  readonly refreshMs: number;
  readonly #sources = new Map<string, TokenSource>();
  readonly #options: SourceOptions;

  /**
   * Creates a token source whose tokens come from `grant`.
   *
   * @param refreshMs Milliseconds that users may take to sign in. Request timeouts do not include this time.
   */
  constructor(grant: Grant, options: TokenOptions, refreshMs = 0) {
    this.refreshMs = refreshMs;
    const { store = memoryTokens(), scopes = [], dpop = false, resource } = options;
    const { fetch = (request) => globalThis.fetch(request) } = options;
    this.#options = { grant, store, scopes, dpop, resource, fetch };
  }

  readonly token: ClientAuth["token"] = (request) => this.#find(request.url).token(request);

  readonly refresh = (challenge: AuthChallenge, options: RefreshOptions): Promise<boolean> =>
    this.#find(challenge.url).refresh(challenge, options);

  readonly info = async (server: string): Promise<SignInInfo | undefined> => {
    const held = await this.#find(server).read();
    if (!held) return;
    const { issuer, resource, client: { id: clientId }, scopes, expiresAt, refreshToken, tokenEndpoint } = held;
    const canRefresh = refreshToken !== undefined;
    const facts = { server, issuer, resource, clientId, scopes, canRefresh, ...tokenEndpoint && { tokenEndpoint } };
    return expiresAt === undefined ? facts : { ...facts, expiresAt };
  };

  readonly signOut = async (server: string): Promise<boolean> => {
    const source = this.#find(server);
    const held = await source.read();
    await source.forget();
    if (!held) return false;
    try {
      await revoke(source, held, AbortSignal.timeout(REVOKE_MS));
    } catch {
      // Revoking may fail: the tokens are deleted from the store, and expire at the authorization server.
    }
    return true;
  };

  async obtain(challenge: AuthChallenge, signal: AbortSignal): Promise<void> {
    await this.#find(challenge.url).obtain(challenge, signal);
  }

  #find(server: string): TokenSource {
    const url = new URL(server);
    url.hash = url.username = url.password = "";
    const source = this.#sources.get(url.href) ?? new TokenSource(url, this.#options);
    this.#sources.set(url.href, source);
    return source;
  }
}

async function revoke(source: TokenSource, held: HeldTokens, signal: AbortSignal): Promise<void> {
  const { authorizationServer } = await source.discover(signal, { metadataUrl: held.metadataUrl, held });
  if (authorizationServer.issuer !== held.issuer || !authorizationServer.revocation_endpoint) return;
  const info = { client_id: held.client.id };
  const options = toRequestOptions(source.requests, signal);
  for (const token of [held.refreshToken, held.token]) {
    if (token === undefined) continue;
    const authentication = toAuthentication(held.client);
    await processRevocationResponse(await revocationRequest(authorizationServer, info, authentication, token, options));
  }
}
