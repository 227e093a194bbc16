// Starts the authorization servers for tests, and signs users in without a page, as a browser would.
import { assert, assertEquals } from "@std/assert";
import { root, type Running, start } from "../support/processes.ts";

/** The URLs of the issuers. */
export interface Issuers {
  /** Issues JWTs, and accepts URLs of client metadata as client ids. */
  readonly first: string;
  /** Issues JWTs, and has a path in its URL. */
  readonly second: string;
  /** Issues opaque tokens. */
  readonly opaque: string;
}

/** The running authorization servers. Disposing stops them. */
export interface Oidc extends AsyncDisposable {
  readonly issuers: Issuers;
}

/** The redirect URI of clients. No server listens there, because the test reads the code from the URL. */
export const REDIRECT = "http://127.0.0.1:7777/callback";
/** The id of a client whose metadata is registered at the first issuer. */
export const CLIENT_DOCUMENT = "https://client.example/metadata.json";

/** Starts the authorization servers in a separate process. */
export async function startOidc(): Promise<Oidc> {
  const words = ["deno", "run", "-A", "--no-check", `${root}tests/auth/oidc_process.ts`];
  const running: Running = await start(words, { timeoutMs: 120_000 });
  const [, text] = await running.waitFor(/Issuers (.*)\n/);
  return { issuers: JSON.parse(text), [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

/** Replaces the signing key of an issuer. */
export async function rotateKeys(issuer: string): Promise<void> {
  const response = await fetch(`${new URL(issuer).origin}/control/rotate`, { method: "POST" });
  await response.body?.cancel();
  assertEquals(response.status, 200);
}

/** Returns how often each path of an issuer was requested. */
export async function readFetches(issuer: string): Promise<Readonly<Record<string, number>>> {
  return await (await fetch(`${new URL(issuer).origin}/control/fetched`)).json();
}

/** Follows an authorization URL as the user's browser would, up to the client's redirect URI. */
export async function signIn(authorizationUrl: URL, user: string): Promise<URL> {
  const cookies = new Map<string, string>();
  const redirectUri = authorizationUrl.searchParams.get("redirect_uri") ?? REDIRECT;
  let url = authorizationUrl;
  for (let step = 0; step < 10; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie, "x-user": user } });
    const text = await response.text();
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (name !== undefined) cookies.set(name, value);
    }
    const location = response.headers.get("location");
    assert(location !== null, `${url.pathname} gives ${response.status}: ${text.slice(0, 500)}`);
    url = new URL(location, url);
    if (url.href.startsWith(redirectUri)) return url;
  }
  throw new Error("The sign-in does not end");
}

/** Requests a token for the client without a user. The token is issued for a resource. */
export async function requestRobotToken(issuer: string, resource: string, scope = "notes:read"): Promise<string> {
  const response = await sendAsRobot(`${issuer}/token`, { grant_type: "client_credentials", resource, scope });
  const { access_token: token, ...rest } = await response.json();
  assert(typeof token === "string", JSON.stringify(rest));
  return token;
}

/** Revokes a token of the client without a user. */
export async function revokeRobotToken(issuer: string, token: string): Promise<void> {
  const response = await sendAsRobot(`${issuer}/token/revocation`, { token });
  await response.body?.cancel();
  assertEquals(response.status, 200);
}

async function sendAsRobot(url: string, params: Record<string, string>): Promise<Response> {
  const headers = { authorization: `Basic ${btoa("robot:robot-secret")}` };
  return await fetch(url, { method: "POST", headers, body: new URLSearchParams(params) });
}

/** A token set in the form of both client libraries. */
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
 * The provider object that a client library expects from its program, with the state of one user in memory. Works with
 * both generations of the library.
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
  /** Set to use the URL of the client's metadata as the client's id. */
  readonly clientMetadataUrl?: string;
  /** The authorization URLs that the user was redirected to, in order. */
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
    this.#discovery = state as never; // The value is given back to the library that made it.
  }

  discoveryState(): undefined {
    return this.#discovery;
  }

  invalidateCredentials(): void {
    this.#tokens = undefined;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.visited.push(url);
    this.#callback = await signIn(url, this.#user);
  }

  /** Reads the parameters of the redirect URI that the browser has reached. */
  takeCallback(): URLSearchParams {
    const callback = this.#callback;
    this.#callback = undefined;
    assert(callback, "the user was not sent to sign in");
    return callback.searchParams;
  }
}
