/**
 * Signs users in with the authorization code grant and PKCE.
 *
 * @see specification/2026-07-28/basic/authorization (Authorization Flow Steps)
 */
import {
  authorizationCodeGrantRequest,
  AuthorizationResponseError,
  type AuthorizationServer,
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomState,
  processAuthorizationCodeResponse,
  validateAuthResponse,
} from "oauth4webapi";
import { deadline } from "../../core/kit/deadline.ts";
import { isLoopback } from "../../core/kit/loopback_host.ts";
import { sha256 } from "../../core/kit/sha256.ts";
import { startTimer } from "../../core/kit/timer.ts";
import { SignInError, toReason, toShown } from "./errors.ts";
import type { Grant, GrantContext, Granted } from "./grant.ts";
import { requestToken } from "./grant.ts";
import type { RegisteredClient } from "./held_tokens.ts";
import {
  announcesIssuer,
  type ClientIdentityOptions,
  findClient,
  registersItself,
  toAuthentication,
} from "./registration.ts";
import type { SignInAttempt, SignInPage, UserAgent } from "./user_agent.ts";
import { toDuration } from "../../core/kit/duration.ts";

export interface CodeGrantOptions extends ClientIdentityOptions {
  readonly userAgent: UserAgent;
  readonly signInMs: number;
}

export function codeGrant(options: CodeGrantOptions): Grant {
  return {
    issuer: options.client?.issuer,
    clientId: options.client?.id,
    isInteractive: true,
    obtain: (context) => withSignInTime(options.signInMs, context, (context) => signInUser(options, context)),
  };
}

/** Runs a sign-in with a signal that also aborts when the user takes too long. */
export async function withSignInTime(
  signInMs: number,
  context: GrantContext,
  run: (context: GrantContext) => Promise<Granted>,
): Promise<Granted> {
  const late = new AbortController();
  const state = `the user did not sign in within ${toDuration(signInMs)}; try again`;
  const stopTimer = startTimer(
    signInMs,
    () => late.abort(new SignInError(`Cannot sign in to ${context.server}: ${state}`)),
  );
  try {
    return await run({ ...context, signal: AbortSignal.any([context.signal, late.signal]) });
  } finally {
    stopTimer();
  }
}

async function signInUser(options: CodeGrantOptions, context: GrantContext): Promise<Granted> {
  checkProofOfCode(context);
  const ownPath = await toOwnPath(options, context.authorizationServer);
  if (!ownPath) checkIssuerOfCode(options, context);
  const attempt = await startAttempt(ownPath ?? "", options, context);
  try {
    const { redirectUri } = attempt;
    const url = readRedirectUri(redirectUri, context.server);
    if (ownPath && !url.pathname.endsWith(ownPath)) {
      checkIssuerOfCode(options, context, "use path, which the user agent gets, in its redirectUri, or, ");
    }
    const granted = await authorize(attempt, redirectUri, options, context);
    await attempt.end();
    return granted;
  } catch (error) {
    await attempt.end(error);
    throw error;
  }
}

/**
 * Returns the last segment of the redirect URI for an issuer, such as `/jFvQ3x0aMBl8Bd7uOeOLzQ`. Returns `undefined` if
 * the client does not register itself, because only a client that registers itself can tell the authorization server
 * another redirect URI. With such a segment, a malicious issuer that names the sign-in page of another authorization
 * server cannot use the client that is registered there, and that the user may have consented to.
 *
 * @see specification/2026-07-28/basic/authorization/security-considerations (Mix-Up Attacks)
 */
async function toOwnPath(options: CodeGrantOptions, server: AuthorizationServer): Promise<string | undefined> {
  return registersItself(options, server) ? `/${(await sha256(server.issuer)).slice(0, 22)}` : undefined;
}

/** Starts a sign-in. If the signal aborts first, ends the sign-in when it has started, because it may hold a port. */
async function startAttempt(ownPath: string, options: CodeGrantOptions, context: GrantContext): Promise<SignInAttempt> {
  const { authorizationServer: { issuer }, signal } = context;
  const starting = Promise.resolve(options.userAgent({ issuer, path: `/callback${ownPath}` }));
  try {
    return await deadline(starting, { signal });
  } catch (error) {
    starting.then((attempt) => attempt.end(error)).catch(() => {});
    throw error;
  }
}

/** Throws unless the authorization server supports PKCE, because without PKCE an attacker could use a stolen code. */
export function checkProofOfCode({ server, authorizationServer }: GrantContext): void {
  const { code_challenge_methods_supported: methods, issuer, authorization_endpoint: endpoint } = authorizationServer;
  const state = methods?.includes("S256")
    ? endpoint ? undefined : "has no sign-in page (authorization_endpoint)"
    : "does not support PKCE with S256";
  if (state) throw new SignInError(`Cannot sign in to ${server}: the authorization server ${issuer} ${state}`);
}

/**
 * Throws if nothing would show that the code is from another authorization server. A client can have the same id and
 * redirect URI at several authorization servers, if it did not register itself or if the user agent does not use the
 * path of the issuer, and the page of a malicious issuer can redirect the browser to the page of another authorization
 * server. So the user must have named the issuer, or the response must contain `iss`, which {@linkcode readReturn}
 * requires if the metadata announces `iss`.
 *
 * @param remedy another remedy than to name the issuer
 * @see specification/2026-07-28/basic/authorization (Authorization Response Validation)
 */
export function checkIssuerOfCode(
  { client, clientMetadataUrl }: ClientIdentityOptions,
  { server, authorizationServer }: GrantContext,
  remedy = "",
): void {
  if (client?.issuer !== undefined || announcesIssuer(authorizationServer)) return;
  const { issuer } = authorizationServer;
  const id = client?.id ?? clientMetadataUrl;
  throw new SignInError(
    `Cannot sign in to ${server}: ${issuer} does not announce that its responses contain its issuer (iss), so a code ` +
      `may be from another authorization server; ${remedy}if you trust ${issuer}, name it: set client to ` +
      `{ id${
        id === undefined ? "" : `: "${id}"`
      }, issuer: "${issuer}" }, or add --issuer ${issuer} on the command line`,
  );
}

async function authorize(
  attempt: SignInAttempt,
  redirectUri: string,
  options: CodeGrantOptions,
  context: GrantContext,
): Promise<Granted> {
  const { key, signal } = context;
  const thumbprint = key && await key.handle.calculateThumbprint();
  const { page, sent } = await prepare(redirectUri, options, context, thumbprint);
  // Stop waiting when the signal aborts, because a user agent that ignores the signal would block every request that
  // waits for a token.
  const address = await deadline(attempt.visit(page, { signal }), { signal });
  signal.throwIfAborted();
  return await exchangeCode({ ...sent, address }, context);
}

/**
 * Finds the client, and creates the URL of the sign-in page. Returns the URL, and the values that the exchange of the
 * code needs.
 *
 * @param thumbprint The thumbprint of the key to which the authorization server binds the code.
 */
export async function prepare(
  redirectUri: string,
  options: ClientIdentityOptions,
  context: GrantContext,
  thumbprint?: string,
): Promise<{ readonly page: SignInPage; readonly sent: SentToPage }> {
  const { authorizationServer, resource, scopes, requests, signal, server, store } = context;
  const client = await findClient({ ...options, authorizationServer, redirectUri, scopes, requests, store, signal });
  const [verifier, state] = [generateRandomCodeVerifier(), generateRandomState()];
  const url = requests.readUrl(authorizationServer.authorization_endpoint, "the sign-in page");
  const params = {
    response_type: "code",
    client_id: client.id,
    redirect_uri: redirectUri,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    resource,
    ...scopes.length ? { scope: scopes.join(" ") } : {},
    ...scopes.includes("offline_access") ? { prompt: "consent" } : {},
    ...thumbprint === undefined ? {} : { dpop_jkt: thumbprint },
  };
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
  const { issuer } = authorizationServer;
  const host = url.host === new URL(issuer).host ? {} : { pageHost: url.host };
  return {
    page: { url: url.href, server, issuer, ...host, scopes },
    sent: { redirectUri, client, state, verifier },
  };
}

/** Parses the redirect URI. Throws if it would send a code over http, except to a loopback address. */
export function readRedirectUri(redirectUri: string, server: string): URL {
  const url = URL.parse(redirectUri);
  if (url && (url.protocol !== "http:" || isLoopback(url.hostname))) return url;
  const state = `the redirectUri of the user agent is ${
    toShown(redirectUri)
  }, which is not an https URL or an http URL on loopback; change the redirectUri`;
  throw new SignInError(`Cannot sign in to ${server}: ${state}`);
}

/** The values with which the user was sent to the sign-in page. */
export interface SentToPage {
  readonly redirectUri: string;
  readonly client: RegisteredClient;
  readonly state: string;
  readonly verifier: string;
}

interface Returned extends SentToPage {
  readonly address: string;
}

/** Validates the redirect, and exchanges the code for a token. */
export async function exchangeCode(returned: Returned, context: GrantContext): Promise<Granted> {
  const { redirectUri, client, verifier } = returned;
  const { authorizationServer } = context;
  const info = { client_id: client.id };
  const params = readReturn(returned, context);
  const response = await requestToken(context, (options) =>
    authorizationCodeGrantRequest(
      authorizationServer,
      info,
      toAuthentication(client),
      params,
      redirectUri,
      verifier,
      options,
    ).then((response) => processAuthorizationCodeResponse(authorizationServer, info, response)));
  return { client, response };
}

/**
 * Validates the redirect URL and returns its parameters. The error parameter is used only after the state and the
 * issuer have been validated, because anyone can open the redirect URL.
 */
function readReturn(returned: Returned, context: GrantContext): URLSearchParams {
  const { address, redirectUri, client, state } = returned;
  const url = URL.parse(address);
  const expected = new URL(redirectUri);
  if (!url || url.origin !== expected.origin || url.pathname !== expected.pathname) {
    throw new SignInError(
      `Cannot sign in to ${context.server}: the redirect went to another address, not to ${redirectUri}; try again`,
    );
  }
  try {
    // Throws without `iss` if the metadata announces `iss`; `checkIssuerOfCode` relies on it.
    return validateAuthResponse(context.authorizationServer, { client_id: client.id }, url, state);
  } catch (error) {
    const { issuer } = context.authorizationServer;
    const state = error instanceof AuthorizationResponseError
      ? `${issuer} rejected the sign-in`
      : "the redirect is not valid";
    throw new SignInError(`Cannot sign in to ${context.server}: ${state}: ${toReason(error)}`);
  }
}
