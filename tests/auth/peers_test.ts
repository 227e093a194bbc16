// The official clients sign in at real authorization servers and call a server of this library, on Deno and Bun.
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { Client as V2Client, StreamableHTTPClientTransport as V2Transport } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { runtimes, testProcesses } from "../support/command_line.ts";
import { findFreePort, root, start } from "../support/processes.ts";
import { startOidc, UserAgent } from "./oidc.ts";

type Args = Readonly<Record<string, unknown>>;

/** A signed-in client of either generation. */
interface SignedIn extends AsyncDisposable {
  readonly agent: UserAgent;
  /** Calls a tool, and returns its text. */
  call(name: string, args?: Args): Promise<string>;
}

interface Peer {
  readonly name: string;
  connect(url: URL, agent: UserAgent): Promise<SignedIn>;
}

function toText(result: object): string {
  assert("content" in result, JSON.stringify(result));
  return (result.content as readonly { readonly text: string }[])[0].text; // every tool of the server returns a text
}

const peers: readonly Peer[] = [
  {
    name: "client 1.32.2",
    async connect(url, agent) {
      const open = () => new V1Transport(url, { authProvider: agent });
      const client = new V1Client({ name: "v1", version: "1.32.2" });
      const first = open();
      const error = await assertRejects(() => client.connect(first));
      assertMatch(String(error), /Unauthorized/);
      await first.finishAuth(agent.takeCallback().get("code") ?? "");
      await client.connect(open());
      return {
        agent,
        call: async (name, args = {}) => toText(await client.callTool({ name, arguments: args })),
        [Symbol.asyncDispose]: () => client.close(),
      };
    },
  },
  ...[["legacy", "legacy"], ["modern", { pin: "2026-07-28" }]].map(([era, mode]) => ({
    name: `client 2.4.0 in the ${era} era`,
    async connect(url: URL, agent: UserAgent) {
      const open = () => new V2Transport(url, { authProvider: agent });
      const create = () =>
        new V2Client({ name: "v2", version: "2.4.0" }, {
          versionNegotiation: { mode: mode as "legacy" | { pin: string } }, // one of the two above
        });
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
        async call(name: string, args: Args = {}) {
          const call = () => client.callTool({ name, arguments: args });
          try {
            return toText(await call());
          } catch (error) {
            // The client asked for more scopes, and the user has consented.
            if (!/Unauthorized/.test(String(error))) throw error;
            await transport.finishAuth(agent.takeCallback());
            return toText(await call());
          }
        },
        [Symbol.asyncDispose]: () => client.close(),
      };
    },
  })),
];

/** Serves the notes on a runtime, for tokens of the given issuers. */
async function serveNotes(program: readonly string[], issuers: readonly string[]) {
  const port = findFreePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const words = [...program, `${root}tests/auth/notes_server.ts`, "--http", "--port", String(port)];
  const env = { NOTES_RESOURCE: url, NOTES_ISSUERS: issuers.join(" ") };
  const running = await start(words, { env, timeoutMs: 120_000 });
  await running.waitFor(/Serving/);
  return { url: new URL(url), running, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

function assertResourceAsked({ visited: [url] }: UserAgent, resource: URL, scope: string): void {
  assertEquals(url.searchParams.get("resource"), resource.href);
  assertEquals(url.searchParams.get("code_challenge_method"), "S256");
  assertEquals(url.searchParams.get("scope")?.split(" ").filter((each) => each !== "offline_access").join(" "), scope);
}

for (const { name: runtime, program } of runtimes) {
  testProcesses(`${runtime}: the official clients sign in and call`, async (t) => {
    await using oidc = await startOidc();
    const { issuers } = oidc;

    for (const issuer of ["first", "second"] as const) {
      await using notes = await serveNotes(program, [issuers[issuer]]);
      for (const peer of peers) {
        await t.step(`${peer.name}, issuer ${issuer}: two users see different notes`, async () => {
          const [ada, eve] = [`ada of ${peer.name}`, `eve of ${peer.name}`];
          await using first = await peer.connect(notes.url, new UserAgent(ada));
          await using second = await peer.connect(notes.url, new UserAgent(eve));
          assertResourceAsked(first.agent, notes.url, "notes:read");
          assert((await first.call("whoami")).includes(ada));
          assert((await first.call("whoami")).includes(issuers[issuer]));
          assertEquals(await first.call("list"), "none");
          if (peer.name.startsWith("client 1")) return;
          assertEquals(await first.call("add", { text: "buy milk" }), "1");
          assertEquals(await first.call("list"), "buy milk");
          assertEquals(await second.call("list"), "none");
        });
      }
    }
  });
}
