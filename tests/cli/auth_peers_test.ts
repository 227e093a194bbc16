// The official clients sign in at real authorization servers and call a server of this library, on Deno and Bun.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { Client as V2Client, StreamableHTTPClientTransport as V2Transport } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { testProcesses } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { serveNotes } from "../auth/serve_notes.ts";
import { run } from "../support/processes.ts";
import { type Authentication, type Clock, createServer, type Server, tool } from "../../mod.ts";
import { requirePrincipal } from "../../src/auth/auth.ts";
import { oauth, toPrincipalId } from "../../src/auth/oauth/oauth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { toRequest } from "../support/requests.ts";
import {
  CLIENT_DOCUMENT,
  readFetches,
  requestRobotToken,
  revokeRobotToken,
  rotateKeys,
  startOidc,
  UserAgent,
} from "../auth/oidc.ts";
import { sentence } from "../support/messages.ts";

type Args = Readonly<Record<string, unknown>>;

/** A signed-in client, version 1 or 2 of the official SDK. */
interface SignedIn extends AsyncDisposable {
  readonly agent: UserAgent;
  /** Calls a tool, and returns its text. */
  call(name: string, args?: Args): Promise<string>;
}

interface Peer {
  readonly name: string;
  /**
   * Whether the client requests its existing scopes together with new scopes, as it should. If not, the client loses
   * the existing scopes.
   */
  readonly keepsScopes: boolean;
  connect(url: URL, agent: UserAgent): Promise<SignedIn>;
}

function toText(result: object): string {
  assert("content" in result, JSON.stringify(result));
  return (result.content as readonly { readonly text: string }[])[0].text; // Every tool of the server returns text.
}

/**
 * Calls a tool. If the call lacks a scope, the user consents to the scopes that the client requested, and the call is
 * repeated.
 */
async function callWithStepUp(call: () => Promise<object>, finish: () => Promise<void>): Promise<string> {
  try {
    return toText(await call());
  } catch (error) {
    if (!/Unauthorized/.test(String(error))) throw error;
    await finish();
    return toText(await call());
  }
}

const peers: readonly Peer[] = [
  {
    name: "client 1.32.2",
    keepsScopes: false,
    async connect(url, agent) {
      const open = () => new V1Transport(url, { authProvider: agent });
      const client = new V1Client({ name: "v1", version: "1.32.2" });
      const first = open();
      const error = await assertRejects(() => client.connect(first));
      assertMatch(String(error), /Unauthorized/);
      const finish = (transport: V1Transport) => transport.finishAuth(agent.takeCallback().get("code") ?? "");
      await finish(first);
      const transport = open();
      await client.connect(transport);
      return {
        agent,
        call: (name, args = {}) =>
          callWithStepUp(() => client.callTool({ name, arguments: args }), () => finish(transport)),
        [Symbol.asyncDispose]: () => client.close(),
      };
    },
  },
  ...([["legacy", "legacy"], ["modern", { pin: "2026-07-28" }]] as const).map(([era, mode]) => ({
    name: `client 2.4.0 in the ${era} era`,
    keepsScopes: true,
    async connect(url: URL, agent: UserAgent) {
      const open = () => new V2Transport(url, { authProvider: agent });
      const create = () => new V2Client({ name: "v2", version: "2.4.0" }, { versionNegotiation: { mode } });
      const first = open();
      const error = await assertRejects(() => create().connect(first));
      assertMatch(String(error), /Unauthorized/);
      await first.finishAuth(agent.takeCallback());
      const client = create();
      const transport = open();
      await client.connect(transport);
      assertEquals(client.getProtocolEra(), era);
      return {
        agent,
        call: (name: string, args: Args = {}) =>
          callWithStepUp(
            () => client.callTool({ name, arguments: args }),
            () => transport.finishAuth(agent.takeCallback()),
          ),
        [Symbol.asyncDispose]: () => client.close(),
      };
    },
  })),
];

/** Returns the scopes that the client requested from a user, without the scope for refresh tokens. */
function toScopes(url: URL): string {
  const scopes = url.searchParams.get("scope")?.split(" ") ?? [];
  return scopes.filter((each) => each !== "offline_access").sort().join(" ");
}

for (const { name: runtime, program } of runtimes) {
  testProcesses(
    `${runtime}: the official clients sign in, see their users' notes, and request more scopes`,
    async (t) => {
      await using oidc = await startOidc();
      for (const kind of ["first", "second", "opaque"] as const) {
        const issuer = oidc.issuers[kind];
        await using notes = await serveNotes(program, [issuer]);
        for (const peer of peers) {
          await t.step(`${peer.name} works with the issuer ${kind}`, async () => {
            const document = kind === "first" ? CLIENT_DOCUMENT : undefined;
            const [ada, eve] = ["ada", "eve"].map((user) => `${user} of ${peer.name}`);
            await using first = await peer.connect(notes.url, new UserAgent(ada, document));
            await using second = await peer.connect(notes.url, new UserAgent(eve, document));
            const { visited } = first.agent;
            const { searchParams: asked } = visited[0];
            assertEquals(visited.length, 1);
            assertEquals(asked.get("resource"), notes.url.href);
            assertEquals(asked.get("code_challenge_method"), "S256");
            assertEquals(toScopes(visited[0]), "notes:read");
            assertEquals(asked.get("client_id") === CLIENT_DOCUMENT, kind === "first");

            assertEquals(await first.call("whoami"), toPrincipalId(issuer, ada));
            assertEquals(await second.call("whoami"), toPrincipalId(issuer, eve));
            assertEquals(await first.call("list"), "none");

            assertEquals(await first.call("add", { text: "buy milk" }), "1");
            assertEquals(visited.length, 2, "the client did not request more scopes");
            assertEquals(toScopes(visited[1]), peer.keepsScopes ? "notes:read notes:write" : "notes:write");
            assertEquals(await first.call("list"), "buy milk");
            assertEquals(await second.call("list"), "none");
            assertEquals(await second.call("add", { text: "call Ada" }), "1");
            assertEquals(await second.call("list"), "call Ada");
            if (!peer.keepsScopes) return;
            assertEquals([first, second].map(({ agent }) => agent.visited.length), [2, 2]);
          });
        }
      }
    },
  );

  testProcesses(
    `${runtime}: tokens from two issuers are accepted, with and without a user, but tokens for another server are refused`,
    async () => {
      await using oidc = await startOidc();
      const { first, second, opaque } = oidc.issuers;
      await using notes = await serveNotes(program, [first, second]);
      const whoami = async (token: string) => {
        const words = ["--header", `authorization=Bearer ${token}`];
        return await run([...program, "call", notes.url.href, "whoami", ...words]);
      };
      for (const issuer of [first, second]) {
        const { stdout, stderr } = await whoami(await requestRobotToken(issuer, notes.url.href));
        assertEquals(stdout, `${toPrincipalId(issuer, "robot")}\n`, stderr);
        const foreign = await whoami(await requestRobotToken(issuer, "https://other.example/mcp"));
        assertEquals(foreign.code, 1);
        assertStringIncludes(foreign.stderr, sentence());
      }
      const unknown = await whoami(await requestRobotToken(opaque, notes.url.href));
      assertEquals([unknown.code, unknown.stdout], [1, ""]);
    },
  );

  testProcesses(`${runtime}: doctor finds no problem with a protected server`, async () => {
    await using oidc = await startOidc();
    const { first, second } = oidc.issuers;
    await using notes = await serveNotes(program, [first, second]);
    const diagnose = async (words: readonly string[]) => {
      const { code, stdout, stderr } = await run([...program, "doctor", notes.url.href, "--json", ...words]);
      assertEquals(code, 0, stdout);
      assertEquals(stderr.includes("mcp login"), words.length === 0, stderr);
      const findings: readonly { level: string; check: string; message: string }[] = JSON.parse(stdout).findings;
      return findings.filter(({ level, check }) => level !== "ok" && check !== "cors").map(({ check }) => check);
    };
    assertEquals(await diagnose([]), ["token"]);
    const token = await requestRobotToken(first, notes.url.href);
    assertEquals(await diagnose(["--header", `authorization=Bearer ${token}`]), []);
  });
}

/** Creates a server in this process, for tests that advance its clock. */
function createNotes(auth: Authentication, clock: Clock): Server {
  const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
  return createServer({ name: "notes", version: "1.0.0", auth, handlers: [whoami], clock });
}

/** Calls a tool with a token, and returns the status. */
async function call(server: Server, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await server.fetch(toRequest("tools/call", { name: "whoami" }, headers));
  await response.body?.cancel();
  return response.status;
}

testProcesses(
  "after a key rotation, old tokens stay valid, and the first new token makes the server load the keys once",
  async () => {
    await using oidc = await startOidc();
    const { first, second } = oidc.issuers;
    const resource = "https://mcp.example.com/mcp";
    const clock = fakeClock(Date.now());
    const auth = oauth({ resource, issuers: [first, second] });
    await using server = createNotes(auth, clock);
    const keyFetches = async (issuer: string) =>
      (await readFetches(issuer))[`${new URL(`${issuer}/jwks`).pathname}`] ?? 0;

    const old = await requestRobotToken(first, resource);
    assertEquals([await call(server, old), await keyFetches(first), await keyFetches(second)], [200, 1, 0]);
    await rotateKeys(first);
    const fresh = await requestRobotToken(first, resource);
    assertEquals(
      [await call(server, fresh), await keyFetches(first)],
      [401, 1],
      "the server loaded the keys again within 30 seconds",
    );
    await clock.advance(31_000);
    assertEquals([await call(server, fresh), await call(server, fresh), await keyFetches(first)], [200, 200, 2]);
    assertEquals(await call(server, await requestRobotToken(second, resource)), 200);
  },
);

testProcesses("an opaque token is introspected at most once every 30 seconds, until it is revoked", async () => {
  await using oidc = await startOidc();
  const { opaque, first } = oidc.issuers;
  const resource = "https://mcp.example.com/mcp";
  const clock = fakeClock(Date.now());
  const introspection = { issuer: opaque, clientId: "resource-server", clientSecret: "resource-server-secret" };
  await using server = createNotes(oauth({ resource, issuers: [opaque, first], introspection }), clock);
  const checks = async () => (await readFetches(opaque))["/token/introspection"] ?? 0;

  const token = await requestRobotToken(opaque, resource);
  assert(!token.includes("."), "the token is a JWT");
  assertEquals([await call(server, token), await call(server, token), await checks()], [200, 200, 1]);
  assertEquals(await call(server, await requestRobotToken(first, resource)), 200);
  assertEquals(await call(server, await requestRobotToken(opaque, "https://other.example/mcp")), 401);
  const before = await checks();
  await revokeRobotToken(opaque, token);
  await clock.advance(31_000);
  assertEquals([await call(server, token), await checks()], [401, before + 1]);
});
