/**
 * Connects a test to a server, in every era and over every transport.
 *
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation, LogLevel, PromptMessage } from "../protocol/types.ts";
import type { ResourceContents, ToolResult } from "../protocol/types.ts";
import type { ClientFacts, Principal } from "../core/context.ts";
import type { AnswerServer, Client, RequestOptions } from "./peer.ts";
import { createPeer, type Peer } from "./peer.ts";
import { legacyClient, LegacySpeech } from "./legacy.ts";
import { modernClient, ModernSpeech } from "./modern.ts";
import { openRoute, type Route, type RouteFacts, type TestServer, type Transport } from "./route.ts";
import type { Filter, Notification, Subscription } from "./subscription.ts";
import { Transcript } from "./transcript.ts";

/** Who connects, and how. Everything may be left out: a modern client, in memory, that can do nothing. */
export interface ConnectOptions {
  /** `modern` says in every request who it is; `legacy` shakes hands first. */
  readonly era?: "modern" | "legacy";
  /** The revision to speak; 2026-07-28 or, in the legacy era, 2025-11-25 if nothing is said. */
  readonly version?: string;
  /** `memory` if nothing is said. */
  readonly transport?: Transport;
  /** What the client says it can do; with `answer` everything, else nothing. */
  readonly capabilities?: ClientCapabilities;
  /** The client's name and version; `test` 1.0.0 if nothing is said. */
  readonly clientInfo?: Implementation;
  /** Answers elicitation, sampling and roots with the client's result. */
  readonly answer?: AnswerServer;
  /** Least severe log message the client wants. */
  readonly logLevel?: LogLevel;
  /** Who the client is, as if code in front of the server had found that out. Not for `stdio`. */
  readonly principal?: Principal;
  /** The path of the HTTP endpoint; `/mcp` if nothing is said. */
  readonly path?: string;
}

/** A tool as a client sees it. */
export interface ListedTool {
  /** Unique in the server. */
  readonly name: string;
  /** The name for people. */
  readonly title?: string;
  /** What the tool does, for a model. */
  readonly description?: string;
  /** A JSON Schema. */
  readonly inputSchema: Params;
  /** A JSON Schema. */
  readonly outputSchema?: Params;
  /** Whatever else the server told of it. */
  readonly [key: string]: unknown;
}

/** A client that is connected to a server. */
export interface Connection extends AsyncDisposable, RouteFacts {
  /** As it was asked for. */
  readonly era: "modern" | "legacy";
  /** The revision that is spoken. */
  readonly version: string;
  /** The result of `initialize`, in the legacy era. */
  readonly handshake?: Result;
  /** The session, in the legacy era over HTTP. */
  readonly sessionId?: string;
  /** All notifications so far. */
  readonly received: readonly Notification[];
  /**
   * The wire so far: `→` is what was sent, `←` what came; over HTTP the head of a message comes before it. Session ids,
   * states of questions and the like have names such as `<session 1>`, so that the lines are the same on every run.
   */
  readonly transcript: readonly string[];
  /**
   * Sends a request and waits for its result. In the modern era, questions that come in place of a result are answered
   * by `answer` and the request is sent again.
   *
   * @throws {RpcError} if the answer is an error, or no answer at all.
   */
  request(method: string, params?: Params, options?: RequestOptions): Promise<Result>;
  /** Sends a notification. @throws {RpcError} if it is not accepted. */
  notify(method: string, params?: Params): Promise<void>;
  /** The tools of all pages. */
  listTools(): Promise<readonly ListedTool[]>;
  /** `tools/call`; throws like `request`. */
  callTool(name: string, args?: Params, options?: RequestOptions): Promise<ToolResult & Result>;
  /** `resources/read`; throws like `request`. */
  readResource(
    uri: string,
    options?: RequestOptions,
  ): Promise<{ readonly contents: readonly ResourceContents[] } & Result>;
  /** `prompts/get`; throws like `request`. */
  getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions,
  ): Promise<{ readonly messages: readonly PromptMessage[] } & Result>;
  /** Hears of changes from now on: by `subscriptions/listen`, or by a stream and `resources/subscribe`. */
  subscribe(filter: Filter): Promise<Subscription>;
  /** Ends subscriptions, the session, the socket, the process. The server object stays as it is. */
  close(): Promise<void>;
}

/**
 * Connects to a server; to a file that serves over standard streams, for `stdio`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { connect } from "@x/mcp/testing";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello] });
 *
 * for (const era of ["modern", "legacy"] as const) {
 *   await using client = await connect(server, { era, transport: "http" });
 *   const { content } = await client.callTool("hello");
 *   if (JSON.stringify(content) !== `[{"type":"text","text":"Hello!"}]`) throw new Error(era);
 * }
 * ```
 *
 * @throws {RpcError} if the handshake fails.
 */
export async function connect(server: TestServer | string | URL, options: ConnectOptions = {}): Promise<Connection> {
  const { era = "modern", answer } = options;
  const facts = toFacts(options);
  const transcript = new Transcript();
  const speech = era === "modern" ? new ModernSpeech(facts) : new LegacySpeech();
  const opened: { route?: Route } = {};
  const peer = createPeer(speech, {
    answer,
    open(hear) {
      opened.route = openRoute(server, { ...options, transcript, hear });
      return opened.route.channel;
    },
  });
  try {
    const client = speech instanceof ModernSpeech
      ? modernClient(peer, speech, answer)
      : await legacyClient(peer, speech, facts);
    const version = speech instanceof LegacySpeech ? speech.version ?? facts.version : facts.version;
    return toConnection(client, peer, { era, version, transcript: transcript.lines, ...opened.route?.facts });
  } catch (error) {
    peer.abort();
    await peer.channel.close();
    throw error;
  }
}

function toConnection(
  client: Client,
  peer: Peer,
  facts: Pick<Connection, "era" | "version" | "transcript"> & RouteFacts,
): Connection {
  let closed: Promise<void> | undefined;

  async function request(method: string, params: Params = {}, options?: RequestOptions): Promise<Result> {
    return (await client.request(method, params, options)).result;
  }

  async function listTools(): Promise<readonly ListedTool[]> {
    const tools: ListedTool[] = [];
    let cursor: unknown;
    do {
      const page = await request("tools/list", cursor === undefined ? {} : { cursor });
      // Shapes are not checked here: that is for tests to do.
      tools.push(...page.tools as readonly ListedTool[]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  async function end(): Promise<void> {
    // Streams that wait for news are closed; what runs in a session is left to the end of the session.
    if (facts.era === "modern") peer.abort();
    await client.close();
    peer.abort();
    await peer.channel.close();
  }

  const close = () => closed ??= end();
  return {
    ...facts,
    handshake: client.handshake,
    sessionId: client.sessionId,
    received: peer.received,
    request,
    notify: peer.notify,
    listTools,
    // The shapes of the next three are not checked here: that is for tests to do.
    callTool: (name, args = {}, options) =>
      request("tools/call", { name, arguments: args }, options) as ReturnType<Connection["callTool"]>, // As above.
    readResource: (uri, options) =>
      request("resources/read", { uri }, options) as ReturnType<Connection["readResource"]>, // As above.
    getPrompt: (name, args = {}, options) =>
      request("prompts/get", { name, arguments: args }, options) as ReturnType<Connection["getPrompt"]>, // As above.
    subscribe: client.subscribe,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function toFacts({ era, version, capabilities, clientInfo, answer, logLevel }: ConnectOptions): ClientFacts {
  const everything = { elicitation: { form: {}, url: {} }, sampling: { context: {}, tools: {} }, roots: {} };
  return {
    version: version ?? (era === "legacy" ? "2025-11-25" : "2026-07-28"),
    info: clientInfo ?? { name: "test", version: "1.0.0" },
    capabilities: capabilities ?? (answer ? everything : {}),
    logLevel,
  };
}
