// `oauthProxy` in front of a real provider that has one client of this server, with the client of this library and with
// both official clients.
import { assert, assertEquals, assertNotEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { Client as V2Client, StreamableHTTPClientTransport as V2Transport } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createServer, type Server, tool } from "../../mod.ts";
import { oauthProxy, oidc as provider } from "../../src/auth/oauth/proxy/proxy.ts";
import { connect } from "../../src/client/client.ts";
import { memoryTokens, signIn, type SignInOptions, type UserAgent } from "../../src/client/oauth/oauth.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { textOf } from "../support/behaviour.ts";
import { CLIENT_DOCUMENT, PROXY, REDIRECT, signIn as visit, startOidc, UserAgent as Agent } from "./oidc.ts";

const document = { client_id: CLIENT_DOCUMENT, client_name: "A client with a document", redirect_uris: [REDIRECT] };

/** Starts a server at a free port, with its one client at the provider. */
async function open(issuer: string) {
  let server: Server | undefined;
  const http = await openHttpServer(async (request, info) => {
    return await server?.fetch(request, info) ?? new Response(null, { status: 503 });
  });
  const { origin } = http;
  const start = (secret: string) => {
    const login = oauthProxy({
      resource: `${origin}/mcp`,
      provider: provider(issuer, {
        ...PROXY,
        name: "Login",
        scopes: ["openid", "offline_access"],
        apis: [issuer],
        params: { prompt: "consent" },
      }),
      who: ({ subject }) => subject !== "mallory",
      scopes: ["notes:read"],
      documents: { fetch: () => Promise.resolve(Response.json(document)) },
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
    const options = { name: "notes", version: "1.0.0", secret, store: memoryStore(), auth: login };
    server = createServer({ ...options, handlers: [whoami] });
  };
  start("secret of the tests with 32 characters");
  return {
    url: `${origin}/mcp`,
    /** Starts the server again as if it had no secret: it knows no client and no token. */
    async restart() {
      await server?.close();
      start("another secret, also with 32 characters");
    },
    async [Symbol.asyncDispose]() {
      await server?.close();
      await http.stop();
    },
  };
}

const clients: Readonly<Record<string, Partial<SignInOptions>>> = {
  "registers itself": {},
  "has a metadata document": { clientMetadataUrl: CLIENT_DOCUMENT },
};

for (const era of ["modern", "legacy"] as const) {
  for (const [name, options] of Object.entries(clients)) {
    Deno.test(`a client of this library that ${name} signs in, renews its tokens, and signs in again after a change of the secret (${era})`, async () => {
      await using oidc = await startOidc();
      await using server = await open(oidc.issuers.first);
      const store = memoryTokens();
      let visits = 0;
      const connectAs = (user: string, more: Partial<SignInOptions> = {}) => {
        const userAgent: UserAgent = () => ({
          redirectUri: REDIRECT,
          async visit({ url }) {
            visits++;
            return (await visit(new URL(url), user)).href;
          },
          end: () => {},
        });
        return connect(server.url, { era, auth: signIn({ userAgent, ...options, ...more }) });
      };
      const [ada, bob] = [await connectAs("ada", { store }), await connectAs("bob")];
      assertEquals(textOf(await ada.callTool("whoami")), "login:ada ada");
      assertEquals(textOf(await bob.callTool("whoami")), "login:bob bob");
      const refused = await connectAs("mallory").then(() => "connected", (error) => `${error}`);
      assertStringIncludes(refused, "access_denied");
      assertEquals(visits, 3);

      const key = `server ${server.url}`;
      const read = async () => JSON.parse(await store.get(key) ?? "{}");
      const held = await read();
      await store.update(key, () => Promise.resolve(JSON.stringify({ ...held, expiresAt: 1 })));
      const again = await connectAs("ada", { store });
      assertEquals(textOf(await again.callTool("whoami")), "login:ada ada");
      assertEquals(visits, 3, "Ada has not signed in again");
      const renewed = await read();
      for (const name of ["token", "refreshToken"]) {
        assert(held[name]);
        assertNotEquals(renewed[name], held[name], name);
      }

      await server.restart();
      // The client does not renew a token that was just issued.
      await store.update(key, () => Promise.resolve(JSON.stringify({ ...renewed, issuedAt: 1 })));
      const last = await connectAs("ada", { store });
      assertEquals(textOf(await last.callTool("whoami")), "login:ada ada");
      assertEquals(visits, 4, "Ada has signed in again");
      for (const client of [ada, bob, again, last]) await client.close();
    });
  }
}

/** What the test uses of a connected client. */
interface Peer {
  callTool(params: { name: string }): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

interface Official {
  readonly connect: (url: URL, agent: Agent) => Promise<Peer>;
  /** Redeems the code of a redirect. */
  readonly finish: (url: URL, agent: Agent, callback: URLSearchParams) => Promise<void>;
}

const official: Readonly<Record<string, Official>> = {
  "1.32.2": {
    connect: async (url, authProvider) => {
      const client = new V1Client({ name: "v1", version: "1.32.2" });
      await client.connect(new V1Transport(url, { authProvider }));
      return client;
    },
    finish: (url, authProvider, callback) =>
      new V1Transport(url, { authProvider }).finishAuth(callback.get("code") ?? ""),
  },
  ...Object.fromEntries(
    ([["legacy", "legacy"], ["modern", { pin: "2026-07-28" }]] as const).map(([era, mode]): [string, Official] => [
      `2.4.0 in the ${era} era`,
      {
        connect: async (url, authProvider) => {
          const client = new V2Client({ name: "v2", version: "2.4.0" }, { versionNegotiation: { mode } });
          await client.connect(new V2Transport(url, { authProvider }));
          return client;
        },
        finish: (url, authProvider, callback) => new V2Transport(url, { authProvider }).finishAuth(callback),
      },
    ]),
  ),
};

for (const [version, { connect, finish }] of Object.entries(official)) {
  Deno.test(`the official client ${version} signs in, renews its tokens, and signs in again after a change of the secret`, async () => {
    await using oidc = await startOidc();
    await using server = await open(oidc.issuers.first);
    const url = new URL(server.url);
    const agent = new Agent("ada");
    await assertRejects(() => connect(url, agent), Error, "Unauthorized");
    await finish(url, agent, agent.takeCallback());
    const first = agent.tokens();
    assert(first);
    const client = await connect(url, agent);
    const call = async () => JSON.stringify((await client.callTool({ name: "whoami" })).content);
    assertStringIncludes(await call(), "login:ada ada");
    assertEquals(agent.tokens(), first);
    // The server refuses the token, as it does after an hour.
    agent.saveTokens({ ...first, access_token: "expired" });
    assertStringIncludes(await call(), "login:ada ada");
    for (const name of ["access_token", "refresh_token"] as const) {
      assertNotEquals(agent.tokens()?.[name], first[name], name);
    }
    assertEquals(agent.visited.length, 1, "the user has not signed in again");
    await client.close();

    await server.restart();
    await assertRejects(() => connect(url, agent), Error, "Unauthorized");
    await finish(url, agent, agent.takeCallback());
    const again = await connect(url, agent);
    assertStringIncludes(JSON.stringify((await again.callTool({ name: "whoami" })).content), "login:ada ada");
    await again.close();
  });
}
