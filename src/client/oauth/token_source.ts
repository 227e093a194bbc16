/**
 * Supplies the tokens for one server. Reads stored tokens, renews tokens, and obtains new tokens.
 */
import type { JWK } from "jose";
import type { TokenEndpointResponse } from "oauth4webapi";
import type { AuthChallenge, AuthRequest, BoundToken } from "../client_auth.ts";
import { discover, type Discovered, toScopes } from "./discovery.ts";
import { SignInError, toShown } from "./errors.ts";
import { type Grant, type Granted, requestGrant, TokenRefusedError } from "./grant.ts";
import { type HeldTokens, readTokens, writeTokens } from "./held_tokens.ts";
import { toTokenKey } from "../../core/kit/token_key.ts";
import { ProofKey } from "./proof_key.ts";
import { forgetClient, RegistrationError, toAuthentication } from "./registration.ts";
import { Requests } from "./requests.ts";
import { hideSecrets } from "./sent_secrets.ts";
import type { TokenOptions } from "./token_options.ts";

export interface SourceOptions extends Required<Omit<TokenOptions, "resource">>, Pick<TokenOptions, "resource"> {
  readonly grant: Grant;
}

interface DiscoveryInfo {
  readonly metadataUrl?: string;
  readonly held?: HeldTokens;
}

export interface RefreshOptions {
  readonly signal: AbortSignal;
  /** Defaults to `true`. */
  readonly interactive?: boolean;
}

/** Milliseconds before a token expires at which the client renews the token. */
const EARLY_MS = 10_000;
/**
 * Age in milliseconds up to which a token counts as just issued. If the server rejects a token of this age, the client
 * does not obtain another token, because the server would probably reject another token too.
 */
const FRESH_MS = 30_000;

export class TokenSource {
  readonly #server: URL;
  readonly #options: SourceOptions;
  readonly #requests: Requests;
  /** The tokens that this process has most recently read from or written to the store. */
  #held: HeldTokens | undefined;
  #isRead = false;
  /** The authorization server where the user has signed in with the given client, unless the options name one. */
  #boundIssuer: string | undefined;
  #key: { readonly jwk: JWK; readonly key: Promise<ProofKey> } | undefined;
  /** Settles when the last call has ended. Calls run in turn, because a call can use the token of an earlier call. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(server: URL, options: SourceOptions) {
    this.#server = server;
    this.#options = options;
    this.#requests = new Requests(server, options.fetch);
  }

  /** If the token is about to expire, renews the token first. */
  async token({ method }: AuthRequest): Promise<string | BoundToken | undefined> {
    if (!this.#isRead) await this.read();
    if (this.#held && isExpiring(this.#held)) await this.#inTurn(() => this.#renewExpiring());
    const held = this.#held;
    if (!held?.key) return held?.token;
    const key = await this.#readKey(held.key);
    return { token: held.token, proof: await key.prove(method, this.#server.href, held.token) };
  }

  /** Returns whether another token is available. */
  async refresh(challenge: AuthChallenge, options: RefreshOptions): Promise<boolean> {
    return await this.#inTurn(() => this.#answer(challenge, options));
  }

  /** Obtains a token for a challenge, even if there is a token. Used after the user has returned from the sign-in page. */
  async obtain(challenge: AuthChallenge, signal: AbortSignal): Promise<void> {
    await this.#inTurn(async () => {
      await this.read();
      await this.#obtain(challenge, undefined, signal);
    });
  }

  async read(): Promise<HeldTokens | undefined> {
    this.#hold(readTokens(await this.#options.store.get(this.#storeKey)));
    return this.#held;
  }

  async forget(): Promise<void> {
    await this.#options.store.update(this.#storeKey, () => Promise.resolve(undefined));
    this.#hold(undefined);
    this.#boundIssuer = undefined;
  }

  /**
   * Reads the metadata. `held` are the server's tokens. The user has agreed to their resource, so the user does not have
   * to name it again.
   */
  async discover(signal: AbortSignal, { metadataUrl, held = this.#held }: DiscoveryInfo = {}): Promise<Discovered> {
    const { grant: { issuer }, resource = held?.resource } = this.#options;
    return await discover({ requests: this.#requests, server: this.#server, metadataUrl, issuer, resource, signal });
  }

  get requests(): Requests {
    return this.#requests;
  }

  get #storeKey(): string {
    return toTokenKey(this.#server);
  }

  #hold(found: HeldTokens | undefined): void {
    const { clientId } = this.#options.grant;
    this.#isRead = true;
    this.#held = found && (clientId === undefined || found.client.id === clientId) ? found : undefined;
    if (clientId !== undefined) this.#boundIssuer = this.#held?.issuer ?? this.#boundIssuer;
  }

  async #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => {});
    return await turn;
  }

  async #renewExpiring(): Promise<void> {
    const held = this.#held;
    if (!held || !isExpiring(held)) return;
    if (held.refreshToken !== undefined) await this.#renew(held, new AbortController().signal);
  }

  async #answer(challenge: AuthChallenge, { signal, interactive = true }: RefreshOptions): Promise<boolean> {
    signal.throwIfAborted();
    const { status, params, nonce } = challenge;
    if (nonce !== undefined && params.error === "use_dpop_nonce") return await this.#useNonce(nonce);
    const held = await this.read();
    // Use the stored token if another connection or process has obtained a new token since the rejected request.
    if (held && held.token !== challenge.token && !isExpiring(held)) return true;
    const asked = toScopes(params.scope);
    if (status === 403 && held && asked.every((scope) => held.requested.includes(scope))) return false;
    const isFresh = status === 401 && held !== undefined && !hasExpired(held) && isNew(held);
    if (status === 401 && held?.refreshToken !== undefined && !isFresh && await this.#renew(held, signal)) return true;
    if (!interactive && this.#options.grant.isInteractive) return false;
    return await this.#obtain(challenge, isFresh && !held.isRenewed ? held : undefined, signal);
  }

  async #useNonce(nonce: string): Promise<boolean> {
    const key = this.#held?.key && await this.#readKey(this.#held.key);
    return key?.useNonce(nonce) ?? false;
  }

  /**
   * Obtains new tokens. `refused` contains tokens that the server has rejected although they were just issued. Returns
   * `false` if the authorization server is only a guess and the client cannot register there.
   */
  async #obtain(challenge: AuthChallenge, refused: HeldTokens | undefined, signal: AbortSignal): Promise<boolean> {
    const { grant, store } = this.#options;
    const server = this.#server.href;
    const found = await this.discover(signal, { metadataUrl: challenge.params.resource_metadata });
    const { resource, authorizationServer } = found;
    if (refused?.issuer === authorizationServer.issuer && refused.resource === resource) {
      const reason = challenge.params.error_description ?? challenge.params.error ?? "without a reason";
      const shown = toShown(hideSecrets(reason, [refused.token]));
      throw new SignInError(
        `Cannot use ${server}: the server rejects a token that ${refused.issuer} has just issued (${shown}); check the user's permissions`,
      );
    }
    if ((this.#boundIssuer ?? authorizationServer.issuer) !== authorizationServer.issuer) {
      const state = `the client ${grant.clientId} has signed in at ${this.#boundIssuer}`;
      const remedy = "if the server has moved to another authorization server, sign out first";
      throw new SignInError(
        `Cannot sign in to ${server}: ${state}, but the server now names ${
          toShown(authorizationServer.issuer)
        }; ${remedy}`,
      );
    }
    const before = this.#held?.issuer === authorizationServer.issuer ? this.#held.requested : [];
    const scopes = this.#chooseScopes(challenge, found, before);
    const key = this.#options.dpop || found.needsProof ? await this.#findKey() : undefined;
    const { metadataUrl } = found;
    const { token_endpoint: tokenEndpoint } = authorizationServer;
    const facts = { issuer: authorizationServer.issuer, resource, requested: scopes, key, metadataUrl, tokenEndpoint };
    const requests = this.#requests;
    const context = { server, resource, authorizationServer, scopes, key, metadataUrl, requests, store, signal };
    const granted = await grant.obtain(context).catch((error) => {
      if (found.isGuess && error instanceof RegistrationError) return;
      throw error;
    });
    if (!granted) return false;
    await this.#keep(toHeld(granted, facts));
    return true;
  }

  /**
   * Returns the scopes to request: the scopes in `before`, in the options, and in the challenge. If the challenge
   * contains no scopes, uses the scopes in the server's metadata instead. Adds `offline_access` to a list that is not
   * empty if the authorization server supports this scope.
   */
  #chooseScopes({ params }: AuthChallenge, found: Discovered, before: readonly string[]): readonly string[] {
    const asked = toScopes(params.scope);
    const scopes = [...before, ...asked.length ? asked : found.scopes, ...this.#options.scopes];
    const { scopes_supported: supported } = found.authorizationServer;
    if (scopes.length && supported?.includes("offline_access")) scopes.push("offline_access");
    return [...new Set(scopes)];
  }

  async #keep(tokens: HeldTokens): Promise<void> {
    await this.#options.store.update(this.#storeKey, () => Promise.resolve(writeTokens(tokens)));
    this.#hold(tokens);
  }

  /**
   * Renews tokens with the refresh token. Locks the stored value, because only one process may use a refresh token.
   * Returns whether another token is available.
   *
   * @throws {SignInError} if the authorization server cannot be reached, in which case the refresh token may still be
   * valid.
   */
  async #renew(held: HeldTokens, signal: AbortSignal): Promise<boolean> {
    const text = await this.#options.store.update(this.#storeKey, async (current) => {
      const now = readTokens(current);
      // Do nothing if another process has renewed the tokens, or if the user has signed out.
      if (now?.token !== held.token || now.refreshToken === undefined) return current;
      const renewed = await this.#requestRenewal(now, now.refreshToken, signal);
      return renewed && writeTokens(renewed);
    });
    this.#hold(readTokens(text));
    return this.#held !== undefined && this.#held.token !== held.token;
  }

  /** Requests new tokens with a refresh token. Returns `undefined` if the refresh token is no longer valid. */
  async #requestRenewal(held: HeldTokens, refreshToken: string, signal: AbortSignal): Promise<HeldTokens | undefined> {
    const { client, issuer, resource, requested, metadataUrl } = held;
    const found = await this.discover(signal, { metadataUrl, held });
    const { authorizationServer } = found;
    // Send a refresh token only to the authorization server that has issued it, and only for the same resource.
    if (authorizationServer.issuer !== issuer || found.resource !== resource) return;
    const key = held.key && await this.#readKey(held.key);
    const context = { authorizationServer, key, requests: this.#requests, resource, signal };
    try {
      const party = { info: { client_id: client.id }, authentication: toAuthentication(client) };
      const params = { refresh_token: refreshToken };
      const response = await requestGrant(context, { ...party, type: "refresh_token", params });
      const { token_endpoint: tokenEndpoint } = authorizationServer;
      const renewed = toHeld({ client, response }, { issuer, resource, requested, key, metadataUrl, tokenEndpoint });
      return {
        ...renewed,
        isRenewed: true,
        refreshToken: renewed.refreshToken ?? refreshToken,
        scopes: toGranted(response, held.scopes),
      };
    } catch (error) {
      if (!(error instanceof TokenRefusedError) || !error.isFinal) throw error;
      if (error.isUnknownClient) await forgetClient(this.#options.store, issuer, client.id);
    }
  }

  #readKey(jwk: JWK): Promise<ProofKey> {
    if (this.#key?.jwk.x !== jwk.x) this.#key = { jwk, key: ProofKey.read(jwk) };
    return this.#key!.key; // Not undefined, because the line above sets `#key`.
  }

  async #findKey(): Promise<ProofKey> {
    if (this.#held?.key) return await this.#readKey(this.#held.key);
    const key = await ProofKey.create();
    this.#key = { jwk: key.jwk, key: Promise.resolve(key) };
    return key;
  }
}

function isExpiring({ expiresAt }: HeldTokens): boolean {
  return expiresAt !== undefined && expiresAt - EARLY_MS <= Date.now();
}

/**
 * Tests whether a token has expired since it was issued. Returns `false` for a token that was already expired when it
 * was issued, because a new token would probably be expired too.
 */
function hasExpired({ issuedAt, expiresAt }: HeldTokens): boolean {
  return expiresAt !== undefined && expiresAt <= Date.now() && expiresAt > issuedAt;
}

/** Returns `false` if the time of issue is in the future, because the clock was wrong then, or is wrong now. */
function isNew({ issuedAt }: HeldTokens): boolean {
  const ageMs = Date.now() - issuedAt;
  return ageMs >= 0 && ageMs < FRESH_MS;
}

/** The latest time that a `Date` can represent, because JSON cannot represent an infinite time. */
const LAST_MS = 8.64e15;

interface TokenInfo extends Pick<HeldTokens, "issuer" | "resource" | "requested" | "metadataUrl" | "tokenEndpoint"> {
  readonly key?: ProofKey;
}

function toHeld({ client, response }: Granted, { key, ...info }: TokenInfo): HeldTokens {
  const { access_token: token, refresh_token: refreshToken, expires_in: seconds } = response;
  const issuedAt = Date.now();
  const expiresAt = seconds === undefined ? undefined : Math.min(issuedAt + seconds * 1000, LAST_MS);
  const scopes = toGranted(response, info.requested);
  return { ...info, client, scopes, token, refreshToken, issuedAt, expiresAt, key: key?.jwk };
}

/** If the response contains no scopes, the requested scopes were granted. */
function toGranted({ scope }: TokenEndpointResponse, requested: readonly string[]): readonly string[] {
  return scope === undefined ? requested : toScopes(scope);
}
