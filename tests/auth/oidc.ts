// Starts the test authorization servers, and signs users in by following redirects instead of opening a browser.
import { assert, assertEquals } from "@std/assert";
import { deno } from "../../src/core/runtime.ts";
import { startProgram } from "../support/http_process.ts";

/** The URLs of the issuers. */
export interface Issuers {
  /** Issues JWTs, and accepts the URL of a client's metadata as the client id. */
  readonly first: string;
  /** Issues JWTs. The URL of this issuer has a path. */
  readonly second: string;
  /** Issues opaque tokens. */
  readonly opaque: string;
}

/** The running authorization servers. Disposing the object stops the servers. */
export interface Oidc extends AsyncDisposable {
  readonly issuers: Issuers;
}

/** Redirect URI of all clients. No server listens at this URI, because `signIn` stops before the last redirect. */
export const REDIRECT = "http://127.0.0.1:7777/callback";
/** Client id that is the URL of the client's metadata. The first issuer knows this client. */
export const CLIENT_DOCUMENT = "https://client.example/metadata.json";

/** The client of a server with `oauthProxy`, which every issuer knows. Its redirect URI has the path `/callback`. */
export const PROXY = { clientId: "proxy", clientSecret: "proxy-secret" };

/** Starts the authorization servers in a process of Deno, on which `oidc-provider` runs, whichever runtime runs the test. */
export async function startOidc(): Promise<Oidc> {
  const { pathname } = new URL("oidc_process.ts", import.meta.url);
  const words = [deno?.execPath() ?? "deno", "run", "-A", "--no-check", "--quiet", pathname];
  const program = await startProgram(words, /^Issuers (.*)\n/m);
  return { issuers: JSON.parse(program.found), [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

/** Replaces the signing key of an issuer. */
export async function rotateKeys(issuer: string): Promise<void> {
  const response = await fetch(`${new URL(issuer).origin}/control/rotate`, { method: "POST" });
  await response.body?.cancel();
  assertEquals(response.status, 200);
}

/** Returns the number of requests that an issuer has received for each path. */
export async function readFetches(issuer: string): Promise<Readonly<Record<string, number>>> {
  return await (await fetch(`${new URL(issuer).origin}/control/fetched`)).json();
}

/**
 * Follows an authorization URL as the user's browser would, up to the client's redirect URI. Consents on the page of a
 * server with `oauthProxy`. `toUrl` replaces URLs that cannot be reached.
 */
export async function signIn(authorizationUrl: URL, user: string, toUrl = (url: URL) => url): Promise<URL> {
  const cookies = new Map<string, string>();
  const redirectUri = authorizationUrl.searchParams.get("redirect_uri") ?? REDIRECT;
  let url = authorizationUrl;
  let form: URLSearchParams | undefined;
  for (let step = 0; step < 12; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(toUrl(url), {
      redirect: "manual",
      headers: { cookie, "x-user": user, ...form && { origin: url.origin } },
      ...form && { method: "POST", body: form },
    });
    const text = await response.text();
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (name !== undefined) cookies.set(name, value);
    }
    const [, request] = /<form method="post" action="consent">[^]*name="request" value="([^"]+)"/.exec(text) ?? [];
    form = request === undefined ? undefined : new URLSearchParams({ request, action: "allow" });
    const location = form ? "consent" : response.headers.get("location");
    assert(location !== null, `${url.pathname} gives ${response.status}: ${text.slice(0, 500)}`);
    url = new URL(location, url);
    if (url.href.startsWith(redirectUri)) return url;
  }
  throw new Error("The sign-in does not end");
}

/** Requests a token for `resource` with the client credentials grant. */
export async function requestRobotToken(issuer: string, resource: string, scope = "notes:read"): Promise<string> {
  const response = await sendAsRobot(`${issuer}/token`, { grant_type: "client_credentials", resource, scope });
  const { access_token: token, ...rest } = await response.json();
  assert(typeof token === "string", JSON.stringify(rest));
  return token;
}

/** Revokes a token that `requestRobotToken` returned. */
export async function revokeRobotToken(issuer: string, token: string): Promise<void> {
  const response = await sendAsRobot(`${issuer}/token/revocation`, { token });
  await response.body?.cancel();
  assertEquals(response.status, 200);
}

async function sendAsRobot(url: string, params: Record<string, string>): Promise<Response> {
  const headers = { authorization: `Basic ${btoa("robot:robot-secret")}` };
  return await fetch(url, { method: "POST", headers, body: new URLSearchParams(params) });
}

/** The fields of a token response that both client libraries use. */
export interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly scope?: string;
  readonly refresh_token?: string;
  readonly issuer?: string;
}

interface ClientInfo {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly issuer?: string;
}

/**
 * The `OAuthClientProvider` that the official client library requires. Keeps the state of one user in memory. Works
 * with versions 1 and 2 of the library.
 */
export class UserAgent {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata = {
    client_name: "Test client",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native" as const,
  };
  /** If set, the client library uses this URL as the client id. */
  readonly clientMetadataUrl?: string;
  /** The authorization URLs to which the user was redirected, in order. */
  readonly visited: URL[] = [];
  readonly #user: string;
  #info?: ClientInfo;
  #tokens?: Tokens;
  #verifier = "";
  #discovery?: never;
  #callback?: URL;

  constructor(user: string, clientMetadataUrl?: string) {
    this.#user = user;
    this.clientMetadataUrl = clientMetadataUrl;
  }

  clientInformation(): ClientInfo | undefined {
    return this.#info;
  }

  saveClientInformation(info: ClientInfo): void {
    this.#info = info;
  }

  tokens(): Tokens | undefined {
    return this.#tokens;
  }

  saveTokens(tokens: Tokens): void {
    this.#tokens = tokens;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  saveDiscoveryState(state: unknown): void {
    this.#discovery = state as never; // The cast is safe, because the value is only returned to the library that created it.
  }

  discoveryState(): undefined {
    return this.#discovery;
  }

  /** `scope` is what the client library has found to be invalid, such as `tokens`, `client` or `all`. */
  invalidateCredentials(scope: string): void {
    if (scope === "client" || scope === "all") this.#info = undefined;
    this.#tokens = undefined;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.visited.push(url);
    this.#callback = await signIn(url, this.#user);
  }

  /** Returns the query parameters of the last redirect to the client. */
  takeCallback(): URLSearchParams {
    const callback = this.#callback;
    this.#callback = undefined;
    assert(callback, "the user was not sent to sign in");
    return callback.searchParams;
  }
}
