/**
 * Connects a test client to a server, in any era and over any transport.
 */
import { toState } from "../core/kit/error_state.ts";
import { isMcpError, McpError, METHOD_NOT_FOUND } from "../core/protocol/errors.ts";
import type { Params, Result } from "../core/protocol/jsonrpc.ts";
import { describeMisfits, fitParams } from "../core/protocol/wire.ts";
import type { CompiledSchema } from "../core/schema/schema.ts";
import type { Principal } from "../server/call/context.ts";
import type { FaultEvent } from "../server/call/observer.ts";
import { INTERNALS } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { enterServer, type Served } from "../server/transports/channel.ts";
import type { Fetch } from "../server/transports/http/fetch.ts";
import { PathTemplate } from "../server/transports/http/path_template.ts";
import { type Client, toClient } from "../client/calls.ts";
import { CONNECTION, type ConnectOptions as ClientOptions } from "../client/connect.ts";
import { isModern, VERSIONS } from "../client/detect_era.ts";
import { declareExtensions, toReceiver } from "../client/extension.ts";
import { LegacyCodec, legacyProtocol } from "../client/legacy.ts";
import type { Notification } from "../client/message.ts";
import { ModernCodec, ModernProtocol } from "../client/modern.ts";
import type { Protocol, ProtocolOptions } from "../client/protocol.ts";
import type { RequestHandler, ServerRequest } from "../client/answer_options.ts";
import { REQUEST, Rpc, type TestRequestOptions } from "../client/rpc.ts";
import { checkMaxAnswers, MAX_ANSWERS } from "../client/answer_budget.ts";
import { toCapabilities } from "../client/answer_options.ts";
import { createRequestHandler, type RequestHandlerOptions } from "../client/server_requests.ts";
import type { SubscriptionFilter } from "../client/subscription.ts";
import { readResult } from "../client/wire_checks.ts";
import { FaultLog, withFaults } from "./fault_log.ts";
import { createSubscription, type TestSubscription } from "./subscription.ts";
import { Transcript } from "../core/kit/transcript.ts";
import {
  type LocalServer,
  type OpenTransport,
  openTransport,
  startHost,
  type Transport,
  type TransportInfo,
} from "./transports.ts";

/**
 * Options of {@linkcode connectTest}: most options of `connect` from `@x/mcp/client`, and options for tests. By
 * default, the client uses revision 2026-07-28, connects in memory, and declares no capabilities.
 */
export interface ConnectTestOptions extends
  Pick<
    ClientOptions,
    | "capabilities"
    | "extensions"
    | "headers"
    | "info"
    | "logLevel"
    | "maxAnswers"
    | "onElicit"
    | "onElicitUrl"
    | "onNotification"
    | "onSample"
    | "onWarning"
    | "pathParams"
    | "roots"
    | "sampling"
    | "timeoutMs"
  > {
  /**
   * The client's era. A `modern` client sends its name and capabilities in every request. A `legacy` client sends its
   * name and capabilities only in a handshake. Defaults to the era of the first entry in `revisions`.
   */
  readonly era?: "modern" | "legacy";
  /** The revisions, of which only the first is used. Defaults to 2026-07-28, or in the legacy era to 2025-11-25. */
  readonly revisions?: readonly string[];
  /** The transport. Defaults to `memory`. */
  readonly transport?: Transport;
  /**
   * The caller's principal. The server treats the caller as already authenticated by code in front of the server. Not
   * supported for `stdio`.
   */
  readonly principal?: Principal;
  /** The path of the HTTP endpoint. Defaults to `/mcp`. */
  readonly path?: string;
  /**
   * Responds to all elicitation, sampling and roots requests. The client sends the returned result without validation,
   * so tests can send invalid responses. `signal` aborts when the server's request is cancelled. With this option, the
   * client declares all capabilities, unless `capabilities` is set.
   */
  readonly answer?: (request: ServerRequest, signal: AbortSignal) => unknown;
}

const OPTIONS: KnownOptions<keyof ConnectTestOptions> = {
  names: {
    ...CONNECTION,
    transport: true,
    principal: true,
    path: true,
    answer: "function",
  },
  hints: { params: "pathParams", version: "revisions", versions: "revisions" },
};

const REQUESTS: KnownOptions<keyof TestRequestOptions> = {
  names: { ...REQUEST.names, id: true },
};

/** A connected client of `@x/mcp/client`, with facts about the connection for tests. */
export interface Connection extends Client<TestRequestOptions>, TransportInfo {
  /** The era of the client. */
  readonly era: "modern" | "legacy";
  /** The transport of messages. */
  readonly transport: Transport;
  /** The path of the HTTP endpoint. */
  readonly path: string;
  /** The caller's principal. `undefined` if the option `principal` is not set. */
  readonly principal?: Principal;
  /** The result of `initialize`. `undefined` in the modern era. */
  readonly handshake?: Result;
  /** The session id. `undefined` in the modern era, and over transports other than HTTP. */
  readonly sessionId?: string;
  /** All notifications that the client has received so far. */
  readonly received: readonly Notification[];
  /**
   * All messages of the connection so far. Sent messages begin with `→`, and received messages begin with `←`. Over
   * HTTP, the request line or status line and the headers precede each message. Names such as `<session 1>` replace
   * values that differ from run to run, such as session ids and request states.
   */
  readonly transcript: readonly string[];
  /**
   * The server's unexpected errors since the client connected, with the thrown error objects. The list also contains
   * errors in calls from other clients. Empty over `stdio`, and for a server with `development: false`.
   */
  readonly faults: readonly FaultEvent[];
  /**
   * The server's warnings about mistakes in handlers, such as an elicitation without `await`. The server also prints
   * these warnings. Empty over `stdio`, and for a server with `development: false`.
   */
  readonly warnings: readonly string[];
  /** Subscribes to changes. The subscription also records all notifications that it receives. */
  subscribe(filter: SubscriptionFilter): Promise<TestSubscription>;
}

/**
 * Connects a client to a server. For `stdio`, `server` must be the path or URL of a file that serves over stdio. Turns
 * on the server's `development` option, unless the server was created with `development: false`.
 *
 * If a handler fails unexpectedly, the server sends only "Internal error" and an id. To show the reason in the test,
 * the client appends the error and its stack to the text of a tool result, and sets the error as the `cause` of a
 * rejection. `transcript` contains the messages without these additions. A server with `development: false` does not
 * expose the reason.
 *
 * The client is as strict as the strictest real clients: lists, results, notifications and questions with a member of a
 * wrong type are errors, and so is a result without the structured content that the tool's output schema requires.
 * `request` returns results without these checks.
 *
 * The client requests each list, even within `ttlMs`, so that a test sees changes that the server does not announce.
 *
 * The client does not recover from failures, so that the test notices each failure. The client never detects the era,
 * resumes a stream, renews a session or retries a request. Errors that belong to no request fail the running test.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { connectTest } from "@x/mcp/testing";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello] });
 *
 * for (const era of ["modern", "legacy"] as const) {
 *   await using client = await connectTest(server, { era, transport: "http" });
 *   const { content } = await client.callTool("hello");
 *   if (JSON.stringify(content) !== `[{"type":"text","text":"Hello!"}]`) throw new Error(era);
 * }
 * ```
 *
 * @throws {McpError} if the handshake fails.
 * @throws {TypeError} if `era` is `"modern"` and the first entry in `revisions` is a legacy revision.
 */
export async function connectTest(
  server: (Served & { readonly fetch: Fetch }) | string | URL,
  options: ConnectTestOptions = {},
): Promise<Connection> {
  checkOptions("connect a test", options, OPTIONS);
  const { transport = "memory", principal, pathParams, timeoutMs = 10_000, maxAnswers = MAX_ANSWERS } = options;
  checkMaxAnswers(maxAnswers);
  const path = options.path ?? toPath(server, pathParams);
  const { era, version } = readRevision(options);
  const protocolOptions = toProtocolOptions(options);
  const log = new FaultLog();
  let stop = () => {};
  if (typeof server === "object" && INTERNALS in server) {
    const { develop, load } = server[INTERNALS];
    // `develop` of a server from an older copy of the library returns nothing. Keep the empty function in this case.
    stop = develop?.(log) ?? stop;
    // Load the code for the first request in advance. Otherwise, a test that advances a clock could advance the clock
    // while the first call is still loading code.
    await load?.();
  }
  const isPipe = typeof server === "object" && INTERNALS in server && transport === "pipe";
  const opens = isPipe ? { ...server, ...await enterServer(server, pathParams) } : server;
  const host = await startHost(opens, options);
  const transcript = new Transcript();
  const received: Notification[] = [];
  const opened: { transport?: OpenTransport } = {};
  const modern = new ModernCodec(version, protocolOptions);
  const legacy = new LegacyCodec();
  const rpc = new Rpc({
    codec: era === "modern" ? modern : legacy,
    answer: protocolOptions.answer,
    timeoutMs,
    maxAnswers,
    onError: fail,
    // The transcript contains such a response, which is the result of the test itself.
    onUnidentified() {},
    open(onMessage) {
      opened.transport = openTransport(opens, { ...options, host, path, transcript, onMessage });
      return opened.transport.channel;
    },
  });
  rpc.listeners.add((notification) => void received.push(notification));
  rpc.listeners.add(checkNotification);
  if (options.onNotification) rpc.listeners.add(options.onNotification);
  if (options.extensions?.length) rpc.listeners.add(toReceiver(options.extensions, fail));
  try {
    const protocol: Protocol = era === "modern"
      ? new ModernProtocol(rpc, modern, {
        ...protocolOptions,
        server: { era, version, capabilities: {} },
        versions: [version],
      })
      : await legacyProtocol(rpc, legacy, { ...protocolOptions, versions: [version], listens: false });
    if (protocol.handshake) readResult("initialize", protocol.handshake, { what: "the handshake", onMisfit: refuse });
    const facts = {
      era,
      transport,
      path,
      principal,
      received,
      transcript: transcript.lines,
      faults: log.faults,
      warnings: log.warnings,
      ...opened.transport?.info,
    };
    const findOutput = (name: string) => findSchema(server, name, version);
    return toConnection({ rpc, protocol: withFaults(protocol, log, stop), answers: options, findOutput }, facts);
  } catch (error) {
    stop();
    rpc.abort();
    await rpc.channel.close();
    throw log.explainError(error);
  }
}

function toPath(server: LocalServer | string | URL, params: ConnectTestOptions["pathParams"]): string {
  if (!params) return "/mcp";
  const template = typeof server === "object" && INTERNALS in server ? server[INTERNALS].http?.path : undefined;
  if (template === undefined) return "/mcp";
  const values = Object.entries(params).map(([name, value]) => [name, String(value)]);
  return new PathTemplate(template).build(Object.fromEntries(values));
}

function readRevision(
  { revisions = [], era }: ConnectTestOptions,
): Required<Pick<ConnectTestOptions, "era">> & Revision {
  const [version = era === "legacy" ? "2025-11-25" : "2026-07-28"] = revisions;
  const isOld = VERSIONS.includes(version) && !isModern(version);
  // A test can send a handshake with a modern revision. A legacy revision without a handshake is rejected, because no
  // server supports this combination.
  if (isOld && era === "modern") {
    throw new TypeError(
      `Cannot connect with ${version}: the revision belongs to the legacy era; remove the option era, or use another revision`,
    );
  }
  return { era: era ?? (isOld ? "legacy" : "modern"), version };
}

interface Revision {
  readonly version: string;
}

// Fails the running test by throwing an uncaught error.
function fail(error: unknown): never {
  throw error;
}

type ConnectionFields =
  & Pick<Connection, "era" | "transport" | "path" | "principal" | "received" | "transcript" | "faults" | "warnings">
  & TransportInfo;

interface Connected {
  readonly rpc: Rpc;
  readonly protocol: Protocol;
  readonly answers: RequestHandlerOptions;
  readonly findOutput: (name: string) => Params | undefined;
}

/** Refuses a member of a wrong type, because strict clients refuse the whole list or result. */
function refuse(text: string): never {
  throw new McpError(0, text, undefined, {});
}

/** Fails the running test if a notification has a member of a wrong type, because strict clients drop it. */
function checkNotification({ method, params }: Notification): void {
  const { misfits } = fitParams(method, params, { isReceived: true });
  if (misfits.length) fail(new TypeError(`Cannot use the notification ${method}: ${describeMisfits(misfits)}`));
}

/**
 * Returns the output schema of a tool as clients see it. Other clients list the tools before the first call, so they
 * check the first result too.
 */
function findSchema(server: LocalServer | string | URL, name: string, version: string): Params | undefined {
  if (!(typeof server === "object" && INTERNALS in server) || version < FIRST_WITH_OUTPUT) return;
  const { engine } = server[INTERNALS].served ?? {};
  // A published schema may differ from the schema of the tool.
  if (!engine || engine.core.publishSchema) return;
  const { definition } = engine.registry.find("tool", name)?.[INTERNALS] ?? {};
  const { output }: { readonly output?: Pick<CompiledSchema, "json"> } = Object(definition);
  const schema = output?.json();
  return isModern(version) || schema?.type === "object" ? schema : undefined;
}

/** The first revision with output schemas. Before revision 2026-07-28, a listed output schema describes an object. */
const FIRST_WITH_OUTPUT = "2025-06-18";

function toConnection({ rpc, protocol, answers, findOutput }: Connected, info: ConnectionFields): Connection {
  // Assign to the client instead of copying the client, because `server` of the client is a getter.
  return Object.assign(toClient(rpc, protocol, { known: REQUESTS, answers, onMisfit: refuse, findOutput }), {
    ...info,
    handshake: protocol.handshake,
    sessionId: protocol.sessionId,
    subscribe: (filter: SubscriptionFilter) => createSubscription((onChange) => protocol.watch(filter, onChange)),
  });
}

const ALL_CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: { context: {}, tools: {} }, roots: {} };

function toProtocolOptions(options: ConnectTestOptions): ProtocolOptions & { readonly answer: RequestHandler } {
  const { answer, info = { name: "test", version: "1.0.0" }, logLevel, onWarning } = options;
  const capabilities = answer
    ? options.capabilities ?? ALL_CAPABILITIES
    : { ...toCapabilities(options), ...options.capabilities };
  const handle = createRequestHandler(options);
  return {
    info,
    capabilities: declareExtensions(capabilities, options.extensions),
    extensions: options.extensions,
    logLevel,
    answer: answer ?? (async (request, signal) => {
      const { misfits } = fitParams(request.method, request.params, { isReceived: true });
      if (misfits.length) {
        throw McpError.invalidParams(`Cannot answer ${request.method}: ${describeMisfits(misfits)}`);
      }
      try {
        return await handle(request, signal);
      } catch (error) {
        // Name the options that would handle the request.
        if (!isMcpError(error) || error.code !== METHOD_NOT_FOUND) throw error;
        throw new McpError(
          METHOD_NOT_FOUND,
          `${toState(error)}; pass onElicit, onElicitUrl, onSample or roots to connectTest`,
        );
      }
    }),
    onWarning: onWarning ?? ((text) => fail(new Error(text))),
    // Do not recover, because a test must notice lost messages.
    recovers: false,
  };
}
