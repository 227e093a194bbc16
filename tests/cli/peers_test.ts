// Both versions of the official client with the CLI: a config file, a folder and a module, over stdio and HTTP, on both
// runtimes.
import { assertEquals } from "@std/assert";
import { Client as V2Client, StreamableHTTPClientTransport as V2Http } from "@modelcontextprotocol/client";
import { StdioClientTransport as V2Stdio } from "@modelcontextprotocol/client/stdio";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/stdio"
import { StdioClientTransport as V1Stdio } from "@modelcontextprotocol/sdk/client/stdio.js";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport as V1Http } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { testProcesses } from "../support/command_line.ts";
import { root, start } from "../support/processes.ts";

const programs = [
  { runtime: "deno", command: "deno", args: ["run", "--quiet", "--no-prompt", "-A", `${root}mod.ts`] },
  { runtime: "bun", command: "bun", args: [`${root}mod.ts`] },
] as const;

/** The methods that the tests use, which both clients have. */
interface Caller {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<Record<string, unknown>>;
  readResource(params: { uri: string }): Promise<{ readonly contents: readonly object[] }>;
  getPrompt(
    params: { name: string; arguments: Record<string, string> },
  ): Promise<{ readonly messages: readonly object[] }>;
  close(): Promise<void>;
}

interface Where {
  readonly command: string;
  readonly args: string[];
  /** The server's URL; `undefined` for a process over stdio. */
  readonly url?: string;
}

const clients: readonly { readonly name: string; connect(where: Where): Promise<Caller> }[] = [
  {
    name: "the official client, version 1",
    async connect({ url, ...command }) {
      const client = new V1Client({ name: "v1", version: "1.0.0" });
      // The cast is needed, because the transport types of the official client differ from its parameter types in an
      // optional member.
      await client.connect(
        (url ? new V1Http(new URL(url)) : new V1Stdio(command)) as Parameters<typeof client.connect>[0],
      );
      return client as Caller;
    },
  },
  ...(["legacy", { pin: "2026-07-28" }] as const).map((mode) => ({
    name: `the official client, version 2, ${typeof mode === "string" ? mode : "modern"}`,
    async connect({ url, ...command }: Where) {
      const client = new V2Client({ name: "v2", version: "1.0.0" }, { versionNegotiation: { mode } });
      await client.connect(url ? new V2Http(new URL(url)) : new V2Stdio(command));
      return client as Caller;
    },
  })),
];

const targets = [
  {
    target: "examples/project/mcp.jsonc",
    async use(client: Caller) {
      assertEquals((await client.listTools()).tools.map(({ name }) => name), ["count_words", "find_rule"]);
      const { content } = await client.callTool({ name: "count_words", arguments: { text: "one two" } });
      assertEquals(content, [{ type: "text", text: "2" }]);
      const { contents: [style] } = await client.readResource({ uri: "file:///docs/style.md" });
      assertEquals("text" in style && String(style.text).slice(0, 7), "# Style");
      const { messages } = await client.getPrompt({ name: "review", arguments: { text: "this", tone: "kind" } });
      assertEquals(messages.length, 1);
    },
  },
  {
    target: "examples/project/docs",
    async use(client: Caller) {
      const { content } = await client.callTool({ name: "search", arguments: { query: "SHORT" } });
      assertEquals(content, [{ type: "text", text: "style.md:3: - Write short sentences." }]);
      assertEquals((await client.readResource({ uri: "file:///style.md" })).contents.length, 1);
    },
  },
  {
    target: "examples/calc.ts",
    async use(client: Caller) {
      const { content } = await client.callTool({ name: "add", arguments: { a: 2, b: 3 } });
      assertEquals(content, [{ type: "text", text: "5" }]);
    },
  },
];

for (const { runtime, command, args } of programs) {
  for (const { target, use } of targets) {
    testProcesses(`${runtime}: both versions of the official client can use ${target}`, async () => {
      await using server = await start([command, ...args, target, "--http", "--port", "0"]);
      const [, url] = await server.waitFor(/ at (http:\S+)\n/);
      for (const where of [{ url }, {}]) {
        for (const { connect } of clients) {
          const client = await connect({ command, args: [...args, root + target], ...where });
          try {
            await use(client);
          } finally {
            await client.close();
          }
        }
      }
    });
  }
}
