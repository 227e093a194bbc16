// Calls the server of the official conformance suite with both official clients and access tokens. The server runs in a
// separate process.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { Client as V2Client, StreamableHTTPClientTransport as V2Transport } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { TestIssuer } from "../support/issuer.ts";
import { testProcesses } from "../support/command_line.ts";
import { findFreePort, root, type Running, start } from "../support/processes.ts";
import { toRequest } from "../support/requests.ts";
import { isTested } from "../support/runtimes.ts";
import { until } from "../support/behaviour.ts";

const file = `${root}examples/everything.ts`;

/** The command that serves the file on each runtime. The conformance suite uses the same commands. */
const commands = {
  deno: (port: number) => ["deno", "serve", "-q", "-A", "--host", "127.0.0.1", "--port", String(port), file],
  bun: () => ["bun", file],
};

interface Served extends AsyncDisposable {
  readonly url: URL;
}

/**
 * Serves the file until the result is disposed. `toEnv` returns the environment variables for the URL of the server.
 */
async function serve(runtime: keyof typeof commands, toEnv: (url: string) => Record<string, string>): Promise<Served> {
  const port = findFreePort();
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const env = { PORT: String(port), BUN_PORT: String(port), ...toEnv(url.href) };
  const running: Running = await start(commands[runtime](port), { env, timeoutMs: 60_000 });
  const isServed = async () => {
    const response = await fetch(url).catch(() => undefined);
    await response?.body?.cancel();
    return response !== undefined;
  };
  try {
    await until(isServed, "the server listens");
  } catch {
    await running[Symbol.asyncDispose]();
    throw new Error((await running.finished).stderr);
  }
  return { url, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

/** The client methods that the tests use. Both clients have these methods. */
interface Peer {
  callTool(params: { name: string }): Promise<object>;
  readResource(params: { uri: string }): Promise<object>;
  getPrompt(params: { name: string }): Promise<object>;
  listTools(): Promise<{ readonly tools: readonly unknown[] }>;
  close(): Promise<void>;
}

type ConnectPeer = (url: URL, headers: Record<string, string>) => Promise<Peer>;

const peers: readonly (readonly [string, ConnectPeer])[] = [
  ["client 1.32.2", async (url, headers) => {
    const client = new V1Client({ name: "v1", version: "1.32.2" });
    await client.connect(new V1Transport(url, { requestInit: { headers } }));
    return client;
  }],
  ...([["legacy", "legacy"], ["modern", { pin: "2026-07-28" }]] as const).map(([era, mode]) =>
    [`client 2.4.0 in the ${era} era`, async (url: URL, headers: Record<string, string>) => {
      const client = new V2Client({ name: "v2", version: "2.4.0" }, { versionNegotiation: { mode } });
      await client.connect(new V2Transport(url, { requestInit: { headers } }));
      assertEquals(client.getProtocolEra(), era);
      return client;
    }] as const
  ),
];

const operations: Readonly<Record<string, (peer: Peer) => Promise<unknown>>> = {
  "tools/call": (peer) => peer.callTool({ name: "test_simple_text" }),
  "resources/read": (peer) => peer.readResource({ uri: "test://static-text" }),
  "resources/read of a template": (peer) => peer.readResource({ uri: "test://template/1/data" }),
  "prompts/get": (peer) => peer.getPrompt({ name: "test_simple_prompt" }),
};

async function send(url: URL, token: string | undefined, method = "tools/call", params: Record<string, unknown> = {}) {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const named = { name: "test_simple_text", ...params };
  const request = toRequest(method, method === "tools/call" ? named : params, headers);
  const response = await fetch(new Request(url, request));
  await response.body?.cancel();
  return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "" };
}

for (const runtime of (["deno", "bun"] as const).filter(isTested)) {
  testProcesses(
    `${runtime}: the fixture server requires tokens from its issuers and the scopes in its environment variables`,
    async (t) => {
      await using first = await TestIssuer.start({ alg: "RS256" });
      await using second = await TestIssuer.start({
        path: "/tenant",
        wellKnown: "/.well-known/openid-configuration/tenant",
      });
      await using served = await serve(runtime, (url) => ({
        MCP_ISSUERS: `${first.name} ${second.name}`,
        MCP_RESOURCE: url,
        MCP_SCOPES: "notes:read notes:write",
      }));
      const { url } = served;
      const sign = (claims: object = {}, issuer = first) =>
        issuer.sign({ claims: { aud: url.href, scope: "notes:read notes:write", ...claims } });
      const hour = 3600;
      const now = Math.floor(Date.now() / 1000);

      await t.step("the metadata names the issuers, and the server loads no keys before the first token", async () => {
        assertEquals([first.keyFetches, second.keyFetches], [0, 0]);
        const response = await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url));
        const { resource, authorization_servers: issuers, scopes_supported: scopes } = await response.json();
        assertEquals({ resource, issuers, scopes }, {
          resource: url.href,
          issuers: [first.name, second.name],
          scopes: ["notes:read", "notes:write"],
        });
      });

      for (const [name, connect] of peers) {
        await t.step(`${name} works with tokens from both issuers`, async () => {
          for (const issuer of [first, second]) {
            const peer = await connect(url, { authorization: `Bearer ${await sign({}, issuer)}` });
            assert((await peer.listTools()).tools.length > 10);
            for (const run of Object.values(operations)) assert(await run(peer));
            await peer.close();
          }
        });

        await t.step(
          `${name} can list handlers without scopes, but cannot call handlers that require scopes`,
          async () => {
            for (const scope of [undefined, "notes:read"]) {
              const peer = await connect(url, { authorization: `Bearer ${await sign({ scope })}` });
              assert((await peer.listTools()).tools.length > 10);
              for (const [operation, run] of Object.entries(operations)) {
                const error = await assertRejects(() => run(peer), Error, undefined, operation);
                assertMatch(String(error), /-31403|scope|403/i);
              }
              await peer.close();
            }
          },
        );

        await t.step(`${name} is refused with an expired token and with a token from an untrusted issuer`, async () => {
          await using stranger = await TestIssuer.start();
          const tokens = {
            expired: await sign({ iat: now - 2 * hour, exp: now - hour }),
            foreign: await sign({ aud: "https://other.example/mcp" }),
            stranger: await sign({}, stranger),
            none: undefined,
          };
          for (const [kind, token] of Object.entries(tokens)) {
            const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
            const error = await assertRejects(() => connect(url, headers), Error, undefined, kind);
            assertMatch(String(error), /401|unauthorized|-31401|authenticate/i);
          }
        });
      }

      await t.step("refusals have the status and the challenge that the specification requires", async () => {
        const metadata = `resource_metadata="${url.origin}/.well-known/oauth-protected-resource/mcp"`;
        const none = await send(url, undefined);
        assertEquals(none.status, 401);
        assert(none.challenge.includes(metadata) && !none.challenge.includes("error="), none.challenge);
        for (const claims of [{ exp: now - hour }, { aud: "https://other.example/mcp" }, { aud: undefined }]) {
          const refused = await send(url, await sign(claims));
          assertEquals(refused.status, 401);
          assert(refused.challenge.includes('error="invalid_token"'), refused.challenge);
          assert(refused.challenge.includes(metadata), refused.challenge);
        }
        const few = await send(url, await sign({ scope: "notes:read" }));
        assertEquals(few.status, 403);
        for (const part of ['error="insufficient_scope"', 'scope="notes:read notes:write"', metadata]) {
          assert(few.challenge.includes(part), few.challenge);
        }
        assertEquals((await send(url, await sign({ scope: "" }), "tools/list")).status, 200);
        assertEquals((await send(url, await sign())).status, 200);
      });

      await t.step("the server loads the keys of each issuer only once", () => {
        assertEquals([first.keyFetches, second.keyFetches], [1, 1]);
      });
    },
  );

  testProcesses(
    `${runtime}: the fixture server accepts requests without a token if the environment variables are not set`,
    async () => {
      await using served = await serve(runtime, () => ({ MCP_SCOPES: "notes:read" }));
      assertEquals((await send(served.url, undefined)).status, 200);
      const metadata = await fetch(new URL("/.well-known/oauth-protected-resource/mcp", served.url));
      await metadata.body?.cancel();
      assertEquals(metadata.status, 404);
    },
  );

  testProcesses(
    `${runtime}: the fixture server does not start if only the issuers are set and the resource is not`,
    async () => {
      const env = { MCP_ISSUERS: "http://127.0.0.1:9", PORT: "0", BUN_PORT: "0" };
      await using running = await start(commands[runtime](findFreePort()), { env });
      const { code, stderr } = await running.finished;
      assert(code !== 0);
      assertStringIncludes(stderr, "MCP_RESOURCE");
    },
  );
}
