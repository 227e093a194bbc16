// Version 2 of the official SDK's client with this library: both eras, over HTTP, stdio and the bridge.
import { assertEquals, assertRejects } from "@std/assert";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answerForm, behaviours, CAPABILITIES, MODEL_ANSWER, type Peer, ROOTS } from "./peer.ts";
import { until } from "../support/behaviour.ts";
import { type Command, createWire, listCommands, serve, toBridge, type Wire } from "./runtime.ts";
import { createPeerServer } from "./server.ts";

type Mode = "legacy" | "auto" | { pin: string };
type Transport = StreamableHTTPClientTransport | StdioClientTransport;
type Level = "debug" | "warning";

interface V2Peer extends Peer {
  readonly client: Client;
  readonly era?: string;
}

async function connect(transport: Transport, mode: Mode, version?: string): Promise<V2Peer> {
  const client = new Client({ name: "v2", version: "2.4.0" }, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode },
    ...(version === undefined ? {} : { supportedProtocolVersions: [version] }),
  });
  const heard: Peer["heard"] = [];
  const asked: string[] = [];
  const errors: unknown[] = [];
  client.onerror = (error) => errors.push(error);
  client.setRequestHandler("elicitation/create", ({ params }) => {
    asked.push(params.message);
    return answerForm(params.message);
  });
  client.setRequestHandler("sampling/createMessage", () => MODEL_ANSWER);
  client.setRequestHandler("roots/list", () => ROOTS);
  const methods = [
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
  ] as const;
  for (const method of methods) {
    client.setNotificationHandler(method, ({ params }) => void heard.push({ method, params }));
  }
  await client.connect(transport);
  const isModern = client.getProtocolEra() === "modern";
  return {
    client,
    era: client.getProtocolEra(),
    version: client.getNegotiatedProtocolVersion() ?? "",
    missing: -32602,
    server: {
      name: client.getServerVersion()?.name,
      version: client.getServerVersion()?.version,
      instructions: client.getInstructions(),
    },
    heard,
    asked,
    errors,
    callTool: (name, args = {}, { _meta, ...options } = {}) =>
      client.callTool({ name, arguments: args, _meta }, { timeout: 10_000, ...options }),
    listTools: () => client.listTools(),
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    listPrompts: () => client.listPrompts(),
    readResource: (params) => client.readResource(params),
    getPrompt: (params) => client.getPrompt(params),
    complete: (params) => client.complete(params),
    async setLogLevel(level: Level) {
      if (isModern) return { _meta: { "io.modelcontextprotocol/logLevel": level } };
      await client.setLoggingLevel(level);
      return {};
    },
    async watch(uri) {
      if (isModern) {
        const listening = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
        assertEquals(listening.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [uri] });
        return { [Symbol.asyncDispose]: () => listening.close() };
      }
      await client.subscribeResource({ uri });
      return { [Symbol.asyncDispose]: async () => void await client.unsubscribeResource({ uri }) };
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

/** Connects a client over HTTP to a new server. In the legacy era, waits until the GET stream is open. */
async function connectHttp(
  stack: AsyncDisposableStack,
  mode: Mode,
  version?: string,
): Promise<{ peer: V2Peer; wire: Wire; transport: StreamableHTTPClientTransport; url: URL }> {
  const server = createPeerServer();
  stack.defer(() => server.close());
  const { host } = stack.use(serve(server));
  const wire = createWire();
  const url = new URL(`http://${host}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { fetch: wire.fetch });
  const peer = stack.use(await connect(transport, mode, version));
  if (peer.era === "legacy") await until(() => wire.streams("GET") === 1, "the GET stream is open");
  return { peer, wire, transport, url };
}

async function connectStdio(stack: AsyncDisposableStack, { command, args }: Command, mode: Mode): Promise<V2Peer> {
  return stack.use(await connect(new StdioClientTransport({ command, args, stderr: "inherit" }), mode));
}

const commands = listCommands(new URL("./stdio.ts", import.meta.url));
const eras = [["modern", { pin: "2026-07-28" }, "2026-07-28"], ["legacy", "legacy", "2025-11-25"]] as const;
const ways = [
  { name: "HTTP", connect: async (stack: AsyncDisposableStack, mode: Mode) => (await connectHttp(stack, mode)).peer },
  ...commands.map((command) => ({
    name: `stdio of ${command.runtime}`,
    connect: (stack: AsyncDisposableStack, mode: Mode) => connectStdio(stack, command, mode),
  })),
  ...listCommands(new URL("../../mod.ts", import.meta.url)).map(({ runtime, command, args }) => ({
    name: `the bridge on ${runtime}`,
    async connect(stack: AsyncDisposableStack, mode: Mode) {
      const server = createPeerServer();
      const { host } = stack.use(serve(server));
      stack.defer(() => server.close());
      return await connectStdio(stack, { command, args: toBridge(args, `http://${host}/mcp`) }, mode);
    },
  })),
];

for (const [era, mode, version] of eras) {
  for (const way of ways) {
    Deno.test(`the official SDK's client 2.4.0 works in the ${era} era over ${way.name}`, async (t) => {
      await using stack = new AsyncDisposableStack();
      const peer = await way.connect(stack, mode);
      assertEquals([peer.era, peer.version], [era, version]);
      for (const { name, run } of behaviours) await t.step(name, () => run(peer));
      assertEquals(peer.errors, []);
    });
  }
}

for (const version of ["2025-06-18", "2025-03-26", "2024-11-05"]) {
  Deno.test(`the official SDK's client 2.4.0 works over HTTP if it supports only ${version}`, async (t) => {
    await using stack = new AsyncDisposableStack();
    const { peer } = await connectHttp(stack, "legacy", version);
    assertEquals(peer.version, version);
    for (const { name, run } of behaviours) await t.step(name, () => run(peer));
    assertEquals(peer.errors, []);
  });
}

for (const way of ways) {
  Deno.test(`the official SDK's client 2.4.0 detects the modern era over ${way.name}`, async () => {
    await using stack = new AsyncDisposableStack();
    const peer = await way.connect(stack, "auto");
    assertEquals([peer.era, peer.version], ["modern", "2026-07-28"]);
    assertEquals((await peer.callTool("give", { what: "text" })).content, [{ type: "text", text: "a text" }]);
  });
}

Deno.test("in the modern era, the call of the official SDK's client 2.4.0 is cancelled if the connection is lost", async () => {
  await using stack = new AsyncDisposableStack();
  const { peer, wire } = await connectHttp(stack, { pin: "2026-07-28" });
  const begun = Promise.withResolvers<void>();
  const giveUp = new AbortController();
  const options = { signal: giveUp.signal, onprogress: () => begun.resolve() };
  const lost = assertRejects(() => peer.callTool("wait", {}, options));
  await begun.promise;
  wire.cut("POST");
  await until(
    async () => JSON.stringify(await peer.callTool("seen")).includes('\\"aborted\\":1'),
    "the call is cancelled on the server",
  );
  // Abort the call, because the client does not detect that the connection was lost.
  giveUp.abort();
  await lost;
});

Deno.test("in the modern era, a subscription of the official SDK's client 2.4.0 ends when the server closes", async () => {
  const server = createPeerServer();
  await using port = serve(server);
  const transport = new StreamableHTTPClientTransport(new URL(`http://${port.host}/mcp`));
  await using peer = await connect(transport, { pin: "2026-07-28" });
  const listening = await peer.client.listen({ toolsListChanged: true });
  await server.close();
  assertEquals(await listening.closed, "graceful");
});

Deno.test("in the legacy era, the official SDK's client 2.4.0 cannot use a session that it has terminated", async () => {
  await using stack = new AsyncDisposableStack();
  const { peer, transport, wire, url } = await connectHttp(stack, "legacy");
  const { sessionId = "" } = transport;
  await transport.terminateSession();
  await until(() => wire.streams("GET") === 0, "the GET stream has ended");
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "accept": "application/json, text/event-stream",
      "mcp-session-id": sessionId,
      "mcp-protocol-version": peer.version,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
  await response.body?.cancel();
  assertEquals(response.status, 404);
});
