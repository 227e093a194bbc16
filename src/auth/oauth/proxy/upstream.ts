/**
 * The tokens of users at the provider: the exchange of codes, renewal under a lease, and requests of tools.
 */
import { toBasicCredentials } from "../../../core/kit/basic_credentials.ts";
import { deadline, delay } from "../../../core/kit/deadline.ts";
import { toInitOnce } from "../../../core/fetch_once.ts";
import { quote } from "../../../core/protocol/errors.ts";
import { sendJson } from "../http.ts";
import type { Grant, Grants } from "./grants.ts";
import type { Provider, ProviderCall, ProviderTokens } from "./provider.ts";

/** The error for a refusal of the provider's token endpoint. */
export class ProviderError extends Error {
  /** Error code, such as `invalid_client`. `undefined` if the response contains none. */
  readonly code?: string;

  constructor(state: string, error?: unknown) {
    const code = typeof error === "string" && /^[a-z_]{1,40}$/.test(error) ? error : undefined;
    super(code === undefined ? state : `${state} (${code})`);
    this.code = code;
  }
}

/** The provider has ended the grant of a user, so that the user must sign in again. */
export class ProviderEndError extends ProviderError {}

const LEASE_MS = 15_000;
/** Remaining time of a lease above which it counts as abandoned: the clock of its instance was wrong. */
const MOST_LEASE_MS = 60_000;
/** Maximum time in milliseconds for which a request waits until another request has renewed the tokens. */
const WAIT_MS = 20_000;
/** Time before its expiry at which a token is renewed. */
const EARLY_MS = 30_000;
const POLL_MS = 100;

/**
 * Sends a request to the token endpoint of the provider.
 *
 * @throws {ProviderEndError} if the provider has ended the grant.
 */
export async function requestTokens(
  provider: Provider,
  params: Readonly<Record<string, string>>,
  { fetch, signal, now }: ProviderCall & { readonly now: number },
): Promise<ProviderTokens> {
  const { token, secretIn } = await provider.endpoints({ fetch, signal });
  const { clientId, clientSecret } = provider;
  const isInHeader = secretIn === "header";
  const body = new URLSearchParams({
    ...params,
    ...!isInHeader && { client_id: clientId, client_secret: clientSecret },
  });
  const send = async (url: string, init: RequestInit) => await fetch(new Request(url, await toInitOnce(init)));
  const response = await sendJson(send, token, {
    method: "POST",
    body: body.toString(),
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      ...isInHeader && { authorization: toBasicCredentials(clientId, clientSecret) },
    },
    signal,
  });
  const { status, json } = response;
  const { access_token: accessToken, token_type: type, refresh_token: refresh, id_token: idToken } = json;
  const { expires_in: expiresIn, error } = json;
  if (provider.isEnd(response)) throw new ProviderEndError(`${provider.name} has ended the sign-in of the user`, error);
  // Other characters are not allowed in a header, and the error of `Headers` would contain the token.
  if (status !== 200 || typeof accessToken !== "string" || !/^[!-~]+$/.test(accessToken)) {
    throw new ProviderError(`Cannot get a token from ${provider.name}: the response has status ${status}`, error);
  }
  if (typeof type !== "string" || type.toLowerCase() !== "bearer") {
    throw new Error(
      `Cannot get a token from ${provider.name}: the response has another token_type than Bearer, or none; make the ` +
        "provider issue bearer tokens to this client",
    );
  }
  const seconds = Number(expiresIn);
  return {
    accessToken,
    refreshToken: typeof refresh === "string" && refresh ? refresh : params.refresh_token,
    idToken: typeof idToken === "string" ? idToken : undefined,
    expiresAt: expiresIn !== undefined && seconds > 0 && Number.isFinite(seconds) ? now + seconds * 1000 : undefined,
  };
}

export interface UpstreamParts {
  readonly provider: Provider;
  readonly grants: Grants;
  readonly fetch: ProviderCall["fetch"];
  readonly now: () => number;
}

/** Renews the tokens of grants. Only one instance renews the tokens of a grant at a time. */
export class Upstream {
  readonly #parts: UpstreamParts;

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
  }

  /**
   * Returns a valid token of a grant. `refused` is a token that the provider has refused. Returns `undefined` if the
   * grant has ended.
   *
   * @throws {ProviderEndError} if the provider has ended the grant, or if the refused token cannot be renewed.
   */
  async findTokens(id: string, signal: AbortSignal, refused?: string): Promise<ProviderTokens | undefined> {
    const { grants, now } = this.#parts;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
    for (;;) {
      limited.throwIfAborted();
      const grant = await grants.find(id);
      if (!grant) return;
      const { tokens } = grant;
      const { expiresAt = Infinity, accessToken, refreshToken } = tokens;
      if (accessToken !== refused && expiresAt - EARLY_MS > now()) return tokens;
      if (refreshToken === undefined) {
        if (accessToken !== refused && expiresAt > now()) return tokens;
        throw new ProviderEndError("the token cannot be renewed");
      }
      // Continues after an abort, because the tokens of the response are the only ones that are valid then.
      const renewed = await deadline(this.#renew(id, grant), { signal: limited });
      if (renewed) return renewed;
      await delay(POLL_MS, { signal: limited });
    }
  }

  /** Returns `undefined` if another request renews the tokens. */
  async #renew(
    id: string,
    { tokens: { accessToken } }: Grant,
  ): Promise<ProviderTokens | undefined> {
    const { provider, grants, fetch, now } = this.#parts;
    const until = now() + LEASE_MS;
    const leased = await grants.update(id, (grant) => {
      const leftMs = (grant.renewingUntil ?? 0) - now();
      const isFree = grant.tokens.accessToken === accessToken && (leftMs <= 0 || leftMs > MOST_LEASE_MS);
      return isFree ? { ...grant, renewingUntil: until } : undefined;
    });
    if (!leased) return;
    const signal = AbortSignal.timeout(LEASE_MS - 5000);
    const release = (tokens: ProviderTokens) =>
      grants.update(id, (grant) => grant.renewingUntil === until ? { ...grant, tokens, renewingUntil: 0 } : undefined);
    try {
      const params = { grant_type: "refresh_token", refresh_token: leased.tokens.refreshToken ?? "" };
      const renewed = await requestTokens(provider, params, { fetch, signal, now: now() });
      await release(renewed);
      return renewed;
    } catch (error) {
      if (!(error instanceof ProviderEndError)) await release(leased.tokens);
      throw error;
    }
  }
}

const MOST_REDIRECTS = 5;

/**
 * Sends a request with a token. The token goes only to the origins in `apis`: a redirect to another origin loses it. It
 * stays lost if that origin redirects back, because the origin would choose a request that carries the token. The headers
 * of the request go only to its own origin, because any of them can be a credential, such as `x-api-key`.
 *
 * @throws {TypeError} if the request goes to another origin, or is redirected although it does not allow redirects.
 */
export async function fetchWith(
  token: string,
  request: Request,
  { apis, fetch }: { readonly apis: readonly string[]; readonly fetch: ProviderCall["fetch"] },
): Promise<Response> {
  const { origin } = new URL(request.url);
  if (!apis.includes(origin)) {
    throw new TypeError(
      `Cannot send the user's token to ${quote(origin)}: only ${
        apis.join(" and ")
      } may get it; use fetch() without a token`,
    );
  }
  let sent = new Request(request, { redirect: "manual" });
  let hasToken = true;
  for (let redirects = 0;; redirects++) {
    const headers = new Headers(sent.headers);
    headers.delete("authorization");
    if (hasToken) headers.set("authorization", `Bearer ${token}`);
    const response = await fetch(new Request(sent, { headers, redirect: "manual" }));
    const location = response.headers.get("location");
    const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== null;
    if (isRedirect && request.redirect === "error") {
      await response.body?.cancel();
      throw new TypeError(`Cannot follow the redirect of ${quote(origin)}: the request has redirect: "error"`);
    }
    // Only requests without a body can be sent to another place.
    const isFollowed = isRedirect && request.redirect === "follow" && ["GET", "HEAD"].includes(sent.method) &&
      redirects < MOST_REDIRECTS;
    if (!isFollowed) return response;
    await response.body?.cancel();
    const target = new URL(location, sent.url);
    const isSame = target.origin === new URL(sent.url).origin;
    if (target.protocol !== "https:" && !isSame) return response;
    hasToken &&= apis.includes(target.origin);
    const kept = isSame ? sent.headers : {};
    sent = new Request(target, { method: sent.method, headers: kept, redirect: "manual", signal: sent.signal });
  }
}
