/**
 * Connects a test to a server, in every era and over every transport.
 *
 * @module
 */
import { METHOD_NOT_FOUND } from "../protocol/errors.ts";
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation, LogLevel, PromptMessage } from "../protocol/types.ts";
import type { ResourceContents, ToolResult } from "../protocol/types.ts";
import type { Principal } from "../core/context.ts";
import { legacySpeaker, LegacySpeech } from "../client/legacy.ts";
import type { ListedTool } from "../client/listed.ts";
import type { Notification } from "../client/message.ts";
import { modernSpeaker, ModernSpeech } from "../client/modern.ts";
import { type AnswerServer, createPeer, type Peer, type WireOptions as RequestOptions } from "../client/peer.ts";
import { RpcError } from "../client/rpc_error.ts";
import type { Speaker, SpeakerOptions } from "../client/speaker.ts";
import type { Filter } from "../client/subscription.ts";
import { INTERNALS } from "../core/internals.ts";
import { openRoute, type Route, type RouteFacts, type TestServer, type Transport } from "./route.ts";
import { createFeed, type Subscription } from "./subscription.ts";
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
  const { era = "modern", version = era === "legacy" ? "2025-11-25" : "2026-07-28" } = options;
  const facts = toSpeakerOptions(options);
  if (typeof server === "object" && INTERNALS in server) await server[INTERNALS].develop?.();
  const transcript = new Transcript();
  const received: Notification[] = [];
  const opened: { route?: Route } = {};
  const modern = new ModernSpeech(version, facts);
  const legacy = new LegacySpeech();
  const peer = createPeer({
    speech: era === "modern" ? modern : legacy,
    answer: facts.answer,
    timeoutMs: 10_000,
    onError: fail,
    open(hear) {
      opened.route = openRoute(server, { ...options, transcript, hear });
      return opened.route.channel;
    },
  });
  peer.listeners.add((notification) => void received.push(notification));
  try {
    const speaker = era === "modern"
      ? modernSpeaker(peer, modern, { ...facts, server: { era, version, capabilities: {} }, versions: [version] })
      : await legacySpeaker(peer, legacy, { ...facts, versions: [version], listens: false });
    const spoken = { era, version: speaker.server.version };
    return toConnection(speaker, peer, { ...spoken, received, transcript: transcript.lines, ...opened.route?.facts });
  } catch (error) {
    peer.abort();
    await peer.channel.close();
    throw error;
  }
}

// What goes wrong where nobody waits for it fails the test that runs.
function fail(error: unknown): never {
  throw error;
}

function toConnection(
  speaker: Speaker,
  peer: Peer,
  facts: Pick<Connection, "era" | "version" | "received" | "transcript"> & RouteFacts,
): Connection {
  let closed: Promise<void> | undefined;

  async function request(method: string, params: Params = {}, options?: RequestOptions): Promise<Result> {
    return (await speaker.request(method, params, options)).result;
  }

  async function listTools(): Promise<readonly ListedTool[]> {
    const tools: ListedTool[] = [];
    let cursor: unknown;
    do {
      const page = await request("tools/list", cursor === undefined ? {} : { cursor });
      // Shapes are not checked here: that is for tests to do.
      for (const tool of page.tools as readonly ListedTool[]) tools.push(tool); // As above.
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  async function subscribe(filter: Filter): Promise<Subscription> {
    const feed = createFeed();
    const watch = await speaker.watch(filter, feed.push);
    watch.ended.then(feed.end);
    return feed.toSubscription(watch);
  }

  async function end(): Promise<void> {
    // Streams that wait for news are closed; what runs in a session is left to the end of the session.
    if (facts.era === "modern") peer.abort();
    await speaker.close();
    peer.abort();
    await peer.channel.close();
  }

  const close = () => closed ??= end();
  return {
    ...facts,
    handshake: speaker.handshake,
    sessionId: speaker.sessionId,
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
    subscribe,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function toSpeakerOptions({ capabilities, clientInfo, answer, logLevel }: ConnectOptions): SpeakerOptions {
  const everything = { elicitation: { form: {}, url: {} }, sampling: { context: {}, tools: {} }, roots: {} };
  return {
    info: clientInfo ?? { name: "test", version: "1.0.0" },
    capabilities: capabilities ?? (answer ? everything : {}),
    logLevel,
    answer: answer ?? (({ method }) => {
      throw new RpcError(METHOD_NOT_FOUND, `Cannot answer ${method}: connect was given no \`answer\``);
    }),
    onWarning: (text) => fail(new Error(text)),
    // What is lost is to be seen.
    recovers: false,
  };
}
