// A provider, a browser and a client for the tests of `oauthProxy`.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { oauthProxy, type OAuthProxyOptions, type Provider } from "../../src/auth/oauth/proxy/proxy.ts";
import { sha256 } from "../../src/core/kit/sha256.ts";

export const origin = "https://notes.example.com";
export const resource = `${origin}/mcp`;
export const redirectUri = "http://127.0.0.1:7777/callback";
export const verifier = "v".repeat(43);
export const secret = "test secret of 32 characters or more";

/** A provider whose answers a test can change. */
export class TestProvider {
  readonly requests: Request[] = [];
  readonly #codes = new Map<string, { challenge: string; nonce: string }>();
  readonly tokens = new Map<string, string>();
  readonly refreshTokens = new Map<string, string>();
  user = "7";
  expiresIn: number | undefined = undefined;
  isDown = false;
  ended = false;
  #count = 0;

  readonly fetch = async (request: Request): Promise<Response> => {
    this.requests.push(request.clone());
    const { pathname, origin: from } = new URL(request.url);
    if (this.isDown) return new Response("down", { status: 503 });
    if (from === "https://api.provider.example") return this.#callApi(request, pathname);
    if (pathname !== "/token") return new Response("elsewhere");
    const form = new URLSearchParams(await request.text());
    if (form.get("client_secret") !== "provider secret") {
      return Response.json({ error: "invalid_client" }, { status: 401 });
    }
    if (form.get("grant_type") === "refresh_token") {
      const user = this.refreshTokens.get(form.get("refresh_token") ?? "");
      if (user === undefined || this.ended) return Response.json({ error: "bad_refresh_token" });
      this.refreshTokens.delete(form.get("refresh_token") ?? "");
      return this.#issue(user);
    }
    const code = this.#codes.get(form.get("code") ?? "");
    const isVerified = code && code.challenge === await sha256(form.get("code_verifier") ?? "");
    if (!isVerified || form.get("redirect_uri") !== `${origin}/callback`) {
      return Response.json({ error: "invalid_grant" }, { status: 400 });
    }
    this.#codes.delete(form.get("code") ?? "");
    return this.#issue(this.user);
  };

  #issue(user: string): Response {
    const count = ++this.#count;
    this.tokens.set(`provider-access-${count}`, user);
    const expires = this.expiresIn === undefined
      ? {}
      : { expires_in: this.expiresIn, refresh_token: `provider-refresh-${count}` };
    if (this.expiresIn !== undefined) this.refreshTokens.set(`provider-refresh-${count}`, user);
    return Response.json({ access_token: `provider-access-${count}`, token_type: "bearer", ...expires });
  }

  #callApi(request: Request, path: string): Response {
    const user = this.tokens.get(/^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "");
    if (path === "/away") return Response.redirect("https://evil.example/take");
    if (user === undefined || this.ended) return new Response("no", { status: 401 });
    return Response.json({ id: Number(user), path });
  }

  /** The address to which the provider sends the browser. */
  signIn(url: URL, more: Readonly<Record<string, string>> = {}): URL {
    assertEquals(url.origin + url.pathname, "https://provider.example/authorize");
    const query = url.searchParams;
    assertEquals(query.get("redirect_uri"), `${origin}/callback`);
    const code = `provider-code-${++this.#count}`;
    this.#codes.set(code, { challenge: query.get("code_challenge") ?? "", nonce: query.get("nonce") ?? "" });
    const back = new URL(query.get("redirect_uri") ?? "");
    const params = "error" in more ? more : { code, ...more };
    back.search = `${new URLSearchParams({ state: query.get("state") ?? "", ...params })}`;
    return back;
  }

  readonly provider: Provider = {
    name: "Provider",
    clientId: "proxy",
    clientSecret: "provider secret",
    scopes: ["read:user"],
    apis: ["https://api.provider.example"],
    params: {},
    endpoints: () =>
      Promise.resolve({ authorize: "https://provider.example/authorize", token: "https://provider.example/token" }),
    findUser: async ({ accessToken }, { fetch }) => {
      const headers = { authorization: `Bearer ${accessToken}` };
      const response = await fetch(new Request("https://api.provider.example/user", { headers }));
      if (response.status === 401) return;
      if (!response.ok) throw new Error("the provider is down");
      const { id } = await response.json();
      return { subject: `${id}`, facts: { id } };
    },
    isEnd: ({ json }) => json.error === "bad_refresh_token",
  };
}

/** A browser that keeps cookies, and follows no redirect by itself. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #server: Pick<Server, "fetch">;
  readonly #peer: string;

  constructor(server: Pick<Server, "fetch">, peer = "192.0.2.1") {
    this.#server = server;
    this.#peer = peer;
  }

  async open(url: URL | string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.cookies.size) {
      headers.set(
        "cookie",
        [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      );
    }
    headers.set("host", new URL(url).host);
    const response = await this.#server.fetch(
      new Request(url, Object.assign({ ...init, headers, redirect: "manual" as const }, { duplex: "half" })),
      {
        remoteAddr: { hostname: this.#peer },
      },
    );
    for (const cookie of response.headers.getSetCookie()) {
      const [pair] = cookie.split(";");
      const [name, value] = pair.split("=");
      if (/Max-Age=0(?:;|$)/.test(cookie)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  /** Sends the form of a consent page. */
  async answer(page: Response, action = "allow", headers: HeadersInit = { origin }): Promise<Response> {
    const html = await page.text();
    const request = /name="request" value="([^"]+)"/.exec(html)?.[1] ?? "";
    const body = new URLSearchParams({ request, action });
    return await this.open(`${origin}/consent`, { method: "POST", body, headers });
  }

  post(path: string, form: Readonly<Record<string, string>>): Promise<Response> {
    return this.open(origin + path, { method: "POST", body: new URLSearchParams(form) });
  }
}

/** Starts a server with `oauthProxy`. */
export function open(
  options: Partial<OAuthProxyOptions> = {},
  server: Partial<ServerOptions> = {},
  provider = new TestProvider(),
) {
  const login = oauthProxy({
    resource,
    provider: provider.provider,
    who: () => true,
    scopes: ["notes:read", "notes:write"],
    fetch: provider.fetch,
    ...options,
  });
  const whoami = tool({
    name: "whoami",
    run: async (_input, ctx) => {
      const response = await login.fetch(ctx, new Request("https://api.provider.example/user"));
      return JSON.stringify([ctx.principal?.id, ctx.principal?.scopes, await response.json()]);
    },
  });
  const made = createServer({ name: "notes", version: "1.0.0", secret, auth: login, handlers: [whoami], ...server });
  return { login, provider, server: made, browser: new Browser(made) };
}

export type Opened = ReturnType<typeof open>;

export async function register(browser: Browser, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const response = await browser.open(`${origin}/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: "Test client", redirect_uris: [redirectUri], ...more }),
  });
  const json = await response.json();
  assertEquals(response.status, 201, JSON.stringify(json));
  return json.client_id;
}

export async function toRequest(client: string, more: Readonly<Record<string, string>> = {}): Promise<URL> {
  const url = new URL(`${origin}/authorize`);
  url.search = `${new URLSearchParams({
    response_type: "code",
    client_id: client,
    redirect_uri: redirectUri,
    code_challenge: await sha256(verifier),
    code_challenge_method: "S256",
    state: "client state",
    resource,
    ...more,
  })}`;
  return url;
}

/** Signs in, and returns the query of the redirect to the client. */
export async function authorize(
  { browser, provider }: Pick<Opened, "browser" | "provider">,
  client: string,
  more: Readonly<Record<string, string>> = {},
): Promise<URLSearchParams> {
  const page = await browser.open(await toRequest(client, more));
  assertEquals(page.status, 200, await page.clone().text());
  const toProvider = await browser.answer(page);
  assertEquals(toProvider.status, 303, await toProvider.clone().text());
  const back = await browser.open(provider.signIn(new URL(toProvider.headers.get("location") ?? "")));
  assertEquals(back.status, 303, await back.clone().text());
  const location = back.headers.get("location") ?? "";
  assert(location.startsWith(more.redirect_uri ?? redirectUri), location);
  return new URL(location).searchParams;
}

export async function redeem(
  browser: Browser,
  client: string,
  code: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const grant_type = "authorization_code";
  const form = { grant_type, code, client_id: client, redirect_uri: redirectUri, code_verifier: verifier, ...more };
  return await browser.post("/token", form);
}

export async function refresh(
  browser: Browser,
  client: string,
  token: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return await browser.post("/token", {
    grant_type: "refresh_token",
    refresh_token: token,
    client_id: client,
    ...more,
  });
}

/** Calls the tool `whoami` with an access token. */
export async function call(
  { browser }: Pick<Opened, "browser">,
  token: string,
): Promise<[status: number, text: string]> {
  const params = {
    name: "whoami",
    arguments: {},
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  };
  const response = await browser.open(resource, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "whoami",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  return [response.status, await response.text()];
}

/** Signs in, and returns the tokens. */
export async function signIn(opened: Pick<Opened, "browser" | "provider">, client?: string) {
  const id = client ?? await register(opened.browser);
  const query = await authorize(opened, id);
  const response = await redeem(opened.browser, id, query.get("code") ?? "");
  const json = await response.json();
  assertEquals(response.status, 200, JSON.stringify(json));
  return { client: id, access: `${json.access_token}`, refresh: `${json.refresh_token}`, json };
}
