// Version 1 of the official SDK's client, which most hosts use, with this library: Streamable HTTP with lost
// connections, stdio, HTTP+SSE and WebSocket.
import { assertEquals, assertObjectMatch, assertRejects } from "@std/assert";
import { Client } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/sse"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
// @ts-types="@modelcontextprotocol/sdk/client/stdio"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
// @ts-types="@modelcontextprotocol/sdk/client/websocket"
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
// @ts-types="@modelcontextprotocol/sdk/types"
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { type Context, createServer, type Server, tool } from "../../mod.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { answerForm, behaviours, CAPABILITIES, MODEL_ANSWER, type Peer, readPages, ROOTS } from "./peer.ts";
import { until } from "../support/behaviour.ts";
import { createWire, listCommands, serve, type Service, toBridge, type Wire } from "./runtime.ts";
import { createPeerServer } from "./server.ts";

type Transport = Parameters<Client["connect"]>[0];

async function connect(transport: Transport): Promise<Peer> {
  const client = new Client({ name: "v1", version: "1.32.2" }, { capabilities: CAPABILITIES });
  const heard: Peer["heard"] = [];
  const asked: string[] = [];
  const errors: unknown[] = [];
  client.onerror = (error) => errors.push(error);
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return answerForm(params.message);
  });
  client.setRequestHandler(CreateMessageRequestSchema, () => MODEL_ANSWER);
  client.setRequestHandler(ListRootsRequestSchema, () => ROOTS);
  const record = (heardNow: Peer["heard"][number]) => void heard.push(heardNow);
  client.setNotificationHandler(LoggingMessageNotificationSchema, record);
  client.setNotificationHandler(ToolListChangedNotificationSchema, record);
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, record);
  let version = "";
  transport.setProtocolVersion = chain((agreed) => version = agreed, transport.setProtocolVersion?.bind(transport));
  await client.connect(transport);
  return {
    version,
    missing: -32002,
    server: {
      name: client.getServerVersion()?.name,
      version: client.getServerVersion()?.version,
      instructions: client.getInstructions(),
    },
    heard,
    asked,
    errors,
    callTool: (name, args = {}, { _meta, ...options } = {}) =>
      client.callTool({ name, arguments: args, _meta }, undefined, { timeout: 10_000, ...options }),
    listTools: async () => ({ tools: await readPages((cursor) => client.listTools(cursor), ({ tools }) => tools) }),
    listResources: async () => ({
      resources: await readPages((cursor) => client.listResources(cursor), ({ resources }) => resources),
    }),
    listResourceTemplates: () => client.listResourceTemplates(),
    listPrompts: () => client.listPrompts(),
    readResource: (params) => client.readResource(params),
    getPrompt: (params) => client.getPrompt(params),
    complete: (params) => client.complete(params),
    async setLogLevel(level) {
      await client.setLoggingLevel(level);
      return {};
    },
    async watch(uri) {
      await client.subscribeResource({ uri });
      return { [Symbol.asyncDispose]: async () => void await client.unsubscribeResource({ uri }) };
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function chain(first: (text: string) => void, second?: (text: string) => void): (text: string) => void {
  return (text) => {
    first(text);
    second?.(text);
  };
}

/**
 * Changes the revision in the client's `initialize` request, because the client always proposes its newest revision.
 */
function propose(transport: Transport, version: string): Transport {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const isOffer = "method" in message && message.method === "initialize";
    return send(isOffer ? { ...message, params: { ...message.params, protocolVersion: version } } : message, options);
  };
  return transport;
}

interface Served {
  readonly server: Server;
  readonly host: string;
}

function start(stack: AsyncDisposableStack, toService: (server: Server) => Service = (server) => server): Served {
  const server = createPeerServer();
  const { host } = stack.use(serve(toService(server)));
  stack.defer(() => server.close());
  return { server, host };
}

interface Wired extends Served {
  readonly peer: Peer;
  readonly wire: Wire;
  readonly transport: StreamableHTTPClientTransport;
}

/** Connects over Streamable HTTP, and waits until the GET stream is open. */
async function connectHttp(stack: AsyncDisposableStack): Promise<Wired> {
  const served = start(stack);
  const wire = createWire();
  const url = new URL(`http://${served.host}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { fetch: wire.fetch });
  const peer = stack.use(await connect(transport));
  await until(() => wire.streams("GET") === 1, "the GET stream is open");
  return { ...served, peer, wire, transport };
}

interface Way {
  readonly name: string;
  readonly version?: string;
  connect(stack: AsyncDisposableStack): Promise<Peer>;
}

const ways: readonly Way[] = [
  { name: "Streamable HTTP", connect: async (stack) => (await connectHttp(stack)).peer },
  ...listCommands(new URL("./stdio.ts", import.meta.url)).map(({ runtime, command, args }) => ({
    name: `stdio of ${runtime}`,
    connect: async (stack: AsyncDisposableStack) =>
      stack.use(await connect(new StdioClientTransport({ command, args, stderr: "inherit" }))),
  })),
  ...listCommands(new URL("../../mod.ts", import.meta.url)).map(({ runtime, command, args: [...words] }) => ({
    name: `the bridge on ${runtime}`,
    async connect(stack: AsyncDisposableStack) {
      const { host } = start(stack);
      const args = toBridge(words, `http://${host}/mcp`);
      return stack.use(await connect(new StdioClientTransport({ command, args, stderr: "inherit" })));
    },
  })),
  {
    name: "HTTP with SSE",
    version: "2024-11-05",
    async connect(stack) {
      const { host } = start(stack, httpSse);
      return stack.use(await connect(propose(new SSEClientTransport(new URL(`http://${host}/sse`)), "2024-11-05")));
    },
  },
  {
    name: "WebSocket",
    async connect(stack) {
      const { host } = start(stack, webSocket);
      return stack.use(await connect(new WebSocketClientTransport(new URL(`ws://${host}/ws`))));
    },
  },
];

for (const way of ways) {
  Deno.test(`the official SDK's client 1.32.2 works over ${way.name}`, async (t) => {
    await using stack = new AsyncDisposableStack();
    const peer = await way.connect(stack);
    assertEquals(peer.version, way.version ?? "2025-11-25");
    for (const { name, run } of behaviours) await t.step(name, () => run(peer));
    assertEquals(peer.errors, []);
  });
}

/** Adds a tool that the test controls. Returns the context of the first call, and a function that ends the call. */
function createStory(server: Server): { readonly begun: Promise<Context>; readonly end: (text: string) => void } {
  const { promise: begun, resolve: begin } = Promise.withResolvers<Context>();
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  const run = (_: unknown, ctx: Context) => {
    begin(ctx);
    return ended;
  };
  server.handlers.add(tool({ name: "story", run }));
  return { begun, end };
}

function pause(ms: number): Promise<void> {
  // Fixed wait: a client of another library does not report which messages it has not received.
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function wordsOf({ heard }: Peer): unknown[] {
  return heard.filter(({ method }) => method === "notifications/message").map(({ params }) => params?.data);
}

/** Calls the `story` tool, and waits until the client has received a first log message. */
async function beginStory(stack: AsyncDisposableStack) {
  const { peer, wire, server } = await connectHttp(stack);
  const { begun, end } = createStory(server);
  const result = peer.callTool("story");
  result.catch(() => {}); // Prevent an unhandled rejection, because the test may fail before it awaits the call.
  const ctx = await begun;
  await ctx.log.info("heard");
  await until(() => wordsOf(peer).length === 1, "the first word");
  return { peer, wire, ctx, end, result };
}

for (const fault of ["cut", "vanish"] as const) {
  Deno.test(`the official SDK's client 1.32.2 receives every message of a call exactly once (${fault})`, async () => {
    await using stack = new AsyncDisposableStack();
    const { peer, wire, ctx, end, result } = await beginStory(stack);
    wire.lose("POST");
    await ctx.log.info("lost on the way");
    await pause(50);
    wire[fault]("POST");
    await ctx.log.info("said at once after it");
    await pause(50);
    await ctx.log.info("said to nobody");
    const answer = ctx.elicit("who", { message: "Who?", schema: z.object({ name: z.string() }) });
    await until(() => wire.streams("GET") === 2, "the client resumes the stream");
    await ctx.log.info(`said to ${(await answer).content?.name}`);
    await until(() => wordsOf(peer).length === 5, "the fifth word");
    wire[fault]("GET");
    await ctx.log.info("said after the second fault");
    end("The end");
    assertObjectMatch(await result, { content: [{ type: "text", text: "The end" }] });
    assertEquals(wordsOf(peer), [
      "heard",
      "lost on the way",
      "said at once after it",
      "said to nobody",
      "said to Ada",
      "said after the second fault",
    ]);
    assertEquals(peer.asked, ["Who?"]);
  });

  Deno.test(`the official SDK's client 1.32.2 receives every notification exactly once (${fault})`, async () => {
    await using stack = new AsyncDisposableStack();
    const { peer, wire, server } = await connectHttp(stack);
    for (let i = 1; i <= 6; i++) await peer.watch(`note://${i}`);
    const heard = () => peer.heard.map(({ params }) => params?.uri);
    server.resourceUpdated("note://1");
    await until(() => heard().length === 1, "the first notification");
    wire.lose("GET");
    server.resourceUpdated("note://2");
    await pause(50);
    wire[fault]("GET");
    server.resourceUpdated("note://3");
    await pause(50);
    server.resourceUpdated("note://4");
    await until(() => wire.streams("GET") === 1, "the client resumes the stream");
    server.resourceUpdated("note://5");
    await until(() => heard().length >= 5, "the fifth notification");
    server.resourceUpdated("note://6");
    await until(() => heard().length >= 6, "the sixth notification");
    assertEquals(heard(), [1, 2, 3, 4, 5, 6].map((i) => `note://${i}`));
  });
}

Deno.test("the official SDK's client 1.32.2 resumes a stream after two lost connections in a row", async () => {
  await using stack = new AsyncDisposableStack();
  const { peer, wire, ctx, end, result } = await beginStory(stack);
  wire.cut("POST");
  await until(() => wire.streams("GET") === 2, "the client resumes the stream");
  wire.cut("GET");
  await until(() => wire.streams("GET") === 0, "both streams are lost");
  await ctx.log.info("said to nobody");
  end("The end");
  assertObjectMatch(await result, { content: [{ type: "text", text: "The end" }] });
  assertEquals(wordsOf(peer), ["heard", "said to nobody"]);
});

Deno.test("the official SDK's client 1.32.2 resumes a stream that the handler has closed", async () => {
  await using stack = new AsyncDisposableStack();
  const { peer, server } = await connectHttp(stack);
  const { begun, end } = createStory(server);
  const result = peer.callTool("story");
  result.catch(() => {}); // Prevent an unhandled rejection, because the test may fail before it awaits the call.
  const ctx = await begun;
  await ctx.log.info("before");
  ctx.closeStream(20);
  await ctx.log.info("while nobody listened");
  await pause(10);
  end("The end");
  assertObjectMatch(await result, { content: [{ type: "text", text: "The end" }] });
  assertEquals(wordsOf(peer), ["before", "while nobody listened"]);
});

Deno.test("if the official SDK's client 1.32.2 ends its session, its running calls end, and requests in the session are refused", async () => {
  await using stack = new AsyncDisposableStack();
  const { peer, transport, server, host, wire } = await connectHttp(stack);
  const { begun } = createStory(server);
  const leave = new AbortController();
  const left = assertRejects(() => peer.callTool("story", {}, { signal: leave.signal }));
  const { signal } = await begun;
  const { sessionId } = transport;
  await transport.terminateSession();
  assertEquals(signal.aborted, true);
  await until(() => wire.streams("GET") === 0, "the GET stream has ended");
  leave.abort();
  await left;
  const late = new StreamableHTTPClientTransport(new URL(`http://${host}/mcp`), { sessionId });
  await late.start();
  stack.defer(() => late.close());
  const error = await assertRejects(() => late.send({ jsonrpc: "2.0", id: 1, method: "tools/list" }));
  assertObjectMatch(error as object, { code: 404 });
});

Deno.test("the official SDK's client 1.32.2 continues its session after the server has restarted with the same secret", async () => {
  await using stack = new AsyncDisposableStack();
  const secret = "a secret of more than thirty-two characters";
  const start = () => createServer({ name: "phoenix", version: "1.0.0", secret, handlers: [lives] });
  let life = 1;
  const lives = tool({ name: "lives", run: () => life });
  let server = start();
  const fetch = (url: string | URL, init?: RequestInit) => server.fetch(new Request(url, init));
  const peer = stack.use(await connect(new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), { fetch })));
  assertObjectMatch(await peer.callTool("lives"), { content: [{ text: "1" }] });
  await server.close();
  server = start();
  stack.defer(() => server.close());
  life++;
  assertObjectMatch(await peer.callTool("lives"), { content: [{ text: "2" }] });
});

Deno.test("two of the official SDK's clients 1.32.2 with the same request ids do not cancel each other's calls", async () => {
  await using stack = new AsyncDisposableStack();
  const { host, server } = start(stack);
  const signals: AbortSignal[] = [];
  server.handlers.add(
    tool({
      name: "stay",
      run: (_, ctx) => {
        signals.push(ctx.signal);
        return new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("left")));
      },
    }),
  );
  const join = async () => stack.use(await connect(new StreamableHTTPClientTransport(new URL(`http://${host}/mcp`))));
  const cancels = [new AbortController(), new AbortController()];
  const calls = [];
  for (const { signal } of cancels) {
    const peer = await join();
    calls.push(assertRejects(() => peer.callTool("stay", {}, { signal })));
  }
  await until(() => signals.length === 2, "both calls have begun");
  cancels[0].abort();
  await until(() => signals.some(({ aborted }) => aborted), "one call is cancelled");
  await pause(50);
  assertEquals(signals.filter(({ aborted }) => aborted).length, 1);
  cancels[1].abort();
  await until(() => signals.every(({ aborted }) => aborted), "the other call is cancelled");
  await Promise.all(calls);
});
