// A POST is sent once, also if the server cuts the reused connection after it has received the request.
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createServer } from "node:http";
import { clientCredentialsToken } from "../../src/auth/oauth/client_credentials.ts";
import { oauth2 } from "../../src/auth/oauth/proxy/providers.ts";
import { requestTokens } from "../../src/auth/oauth/proxy/upstream.ts";
import { Requests } from "../../src/client/oauth/requests.ts";
import { fetchOnce } from "../../src/core/fetch_once.ts";

/** Runs `use` with a server that answers the first POST, and cuts the connection of all others. */
async function withCuts(use: (url: string, received: string[]) => Promise<void>): Promise<void> {
  const received: string[] = [];
  const server = createServer((request, response) => {
    const { method, url = "" } = request;
    const issuer = `http://${request.headers.host}`;
    const metadata = { issuer, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys` };
    let body = "";
    request.on("data", (bytes) => body += bytes).on("end", () => {
      if (method === "POST") received.push(`${request.headers["content-type"]} ${body}`);
      if (method === "POST" && received.length > 1) return request.socket.destroy();
      const token = { access_token: "a", token_type: "Bearer", expires_in: 1 };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(url.startsWith("/.well-known") ? metadata : token));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  try {
    await use(`http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`, received);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

Deno.test("fetchOnce sends a body of each kind once when a reused connection is cut", async () => {
  const bodies: readonly (readonly [() => BodyInit, RegExp])[] = [
    [() => "a=1", / a=1$/],
    [() => new URLSearchParams({ a: "1" }), /^application\/x-www-form-urlencoded;charset=utf-8 a=1$/i],
    [() => new TextEncoder().encode("a=1"), / a=1$/],
  ];
  for (const [toBody, expected] of bodies) {
    await withCuts(async (url, received) => {
      const post = async () => await (await fetchOnce(url, { method: "POST", body: toBody() })).text();
      await post();
      await assertRejects(post);
      assertEquals(received.length, 2);
      for (const text of received) assertMatch(text, expected);
    });
  }
});

Deno.test("a client sends a token request once when a reused connection is cut", async () => {
  await withCuts(async (url, received) => {
    const send = new Requests(new URL(url), (request) => fetch(request)).toFetch(new AbortController().signal);
    const post = async () =>
      await (await send(`${url}/token`, { method: "POST", body: new URLSearchParams({ code: "c" }) })).text();
    await post();
    await assertRejects(post);
    assertEquals(received.length, 2);
  });
});

Deno.test("a server sends a token request once when a reused connection is cut", async () => {
  await withCuts(async (issuer, received) => {
    // A function would return its token again.
    const toToken = () => clientCredentialsToken({ issuer, clientId: "a", clientSecret: "b" })();
    await toToken();
    await assertRejects(toToken);
    assertEquals(received.length, 2);
  });
});

Deno.test("a server sends a token request to the provider of its users once when a reused connection is cut", async () => {
  await withCuts(async (url, received) => {
    const endpoints = { authorize: `${url}/authorize`, token: `${url}/token` };
    const client = { clientId: "a", clientSecret: "b" };
    const provider = oauth2({ name: "P", ...client, endpoints, apis: [], user: () => Promise.resolve(undefined) });
    const call = { fetch: (request: Request) => fetch(request), signal: new AbortController().signal, now: 0 };
    const request = () => requestTokens(provider, { grant_type: "refresh_token", refresh_token: "c" }, call);
    await request();
    await assertRejects(request);
    assertEquals(received.length, 2);
  });
});
