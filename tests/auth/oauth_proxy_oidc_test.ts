// `oauthProxy` in front of a real provider that has one client of this server, with the client of this library and with
// the official one.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { auth as officialAuth } from "@modelcontextprotocol/sdk/client/auth.js";
import { createServer, type Server, tool } from "../../mod.ts";
import { oauthProxy, oidc as provider } from "../../src/auth/oauth/proxy/proxy.ts";
import { connect } from "../../src/client/client.ts";
import { signIn, type UserAgent } from "../../src/client/oauth/oauth.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { textOf } from "../support/behaviour.ts";
import { REDIRECT, signIn as visitAs, startOidc, testWithOidc, UserAgent as OfficialAgent } from "./oidc.ts";

/** Consents, signs in at the provider, and returns the address to which the client is redirected. */
async function visit(url: string, user: string): Promise<URL> {
  const { origin } = new URL(url);
  const page = await fetch(url);
  const html = await page.text();
  assertEquals(page.status, 200, html);
  assertStringIncludes(html, "Continue to <bdi>Login</bdi>");
  const request = /name="request" value="([^"]+)"/.exec(html)?.[1] ?? "";
  const body = new URLSearchParams({ request, action: "allow" });
  const options = { method: "POST", body, headers: { origin }, redirect: "manual" } as const;
  const consented = await fetch(`${origin}/consent`, options);
  await consented.body?.cancel();
  const cookie = consented.headers.getSetCookie().map((each) => each.split(";")[0]).join("; ");
  const back = await visitAs(new URL(consented.headers.get("location") ?? ""), user);
  const last = await fetch(back, { headers: { cookie }, redirect: "manual" });
  assertEquals(last.status, 303, await last.text());
  return new URL(last.headers.get("location") ?? "");
}

function agentOf(user: string): UserAgent {
  return () => ({
    redirectUri: REDIRECT,
    visit: async ({ url }) => (await visit(url, user)).href,
    end: () => {},
  });
}

/** Starts a server at a free port, with its one client at the provider. */
async function open(issuer: string) {
  const { promise: made, resolve } = Promise.withResolvers<Server>();
  const http = await openHttpServer(async (request, info) => await (await made).fetch(request, info));
  const { origin } = http;
  const registered = await fetch(`${issuer}/reg`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      redirect_uris: [`${origin}/callback`],
      grant_types: ["authorization_code", "refresh_token"],
      application_type: "native",
    }),
  });
  const { client_id: clientId, client_secret: clientSecret } = await registered.json();
  assert(clientSecret);
  const make = () => {
    const login = oauthProxy({
      resource: `${origin}/mcp`,
      provider: provider(issuer, {
        clientId,
        clientSecret,
        name: "Login",
        scopes: ["openid", "offline_access"],
        apis: [issuer],
        params: { prompt: "consent" },
      }),
      who: ({ subject }) => subject !== "mallory",
      scopes: ["notes:read"],
    });
    const whoami = tool({
      name: "whoami",
      scopes: ["notes:read"],
      run: async (_input, ctx) => {
        const response = await login.fetch(ctx, new Request(`${issuer}/me`));
        const { sub } = await response.json();
        return `${ctx.principal?.id} ${sub}`;
      },
    });
    return createServer({
      name: "notes",
      version: "1.0.0",
      secret: "secret of the tests with 32 characters",
      store: memoryStore(),
      auth: login,
      handlers: [whoami],
    });
  };
  const server = make();
  resolve(server);
  return {
    url: `${origin}/mcp`,
    async [Symbol.asyncDispose]() {
      await server.close();
      await http.stop();
    },
  };
}

for (const era of ["modern", "legacy"] as const) {
  testWithOidc(`the client of this library signs in at a provider that registers nobody (${era})`, async () => {
    await using oidc = await startOidc();
    await using server = await open(oidc.issuers.first);
    const connectAs = (user: string) => connect(server.url, { era, auth: signIn({ userAgent: agentOf(user) }) });
    const [ada, bob] = [await connectAs("ada"), await connectAs("bob")];
    assertEquals(textOf(await ada.callTool("whoami")), "login:ada ada");
    assertEquals(textOf(await bob.callTool("whoami")), "login:bob bob");
    const refused = await connectAs("mallory").then(() => "connected", (error) => `${error}`);
    assertStringIncludes(refused, "access_denied");
    for (const client of [ada, bob]) await client.close();
  });
}

testWithOidc("the official client signs in, and renews its tokens", async () => {
  await using oidc = await startOidc();
  await using server = await open(oidc.issuers.first);
  class Agent extends OfficialAgent {
    back?: URL;
    override async redirectToAuthorization(url: URL): Promise<void> {
      this.back = await visit(url.href, "ada");
    }
  }
  const agent = new Agent("ada");
  assertEquals(await officialAuth(agent, { serverUrl: server.url }), "REDIRECT");
  const authorizationCode = agent.back?.searchParams.get("code") ?? "";
  assertEquals(await officialAuth(agent, { serverUrl: server.url, authorizationCode }), "AUTHORIZED");
  const first = agent.tokens()?.access_token;
  assertEquals(await officialAuth(agent, { serverUrl: server.url }), "AUTHORIZED");
  assert(agent.tokens()?.access_token !== first);
  const client = await connect(server.url, { headers: { authorization: `Bearer ${agent.tokens()?.access_token}` } });
  assertEquals(textOf(await client.callTool("whoami")), "login:ada ada");
  await client.close();
});
