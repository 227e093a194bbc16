/**
 * Connects to a server with any protocol revision, over any transport.
 */
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { INTERNALS } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { enterServer } from "../server/transports/channel.ts";
import { toPrintable } from "../core/kit/printable.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../core/protocol/types.ts";
import { checkMaxAnswers, MAX_ANSWERS } from "./answer_budget.ts";
import { ANSWER, type AnswerOptions, toCapabilities } from "./answer_options.ts";
import { AUTH } from "./client_auth.ts";
import type { ClientMiddleware } from "./request_middleware.ts";
import { createRequestHandler } from "./server_requests.ts";
import { type Client, toClient } from "./calls.ts";
import { detectEra, isModern, VERSIONS } from "./detect_era.ts";
import { LegacyCodec } from "./legacy.ts";
import { type ClientExtension, declareExtensions, toReceiver } from "./extension.ts";
import { ListCache, NO_TOKENS } from "./list_cache.ts";
import { notifyLocks } from "./lock.ts";
import type { Notification } from "./message.ts";
import { checkTimeout } from "./deadline.ts";
import { Rpc } from "./rpc.ts";
import type { TypedClient } from "./typed_client.ts";
import type { Typed } from "../core/typed.ts";
import {
  checkTarget,
  DEFAULT_TIMEOUT_MS,
  findOther,
  type Open,
  openTarget,
  type Target,
  type TargetOptions,
} from "./target.ts";

/** Options of {@linkcode connect}. */
export interface ConnectOptions extends AnswerOptions, TargetOptions {
  /** The client's name and version, as servers see them. */
  readonly info?: Implementation;
  /** Capabilities to declare in addition to the capabilities of the callbacks, such as `onElicit`. */
  readonly capabilities?: ClientCapabilities;
  /** Extensions that the client declares and implements, created by `clientExtension`. */
  readonly extensions?: readonly ClientExtension[];
  /**
   * Middleware that wraps each request to the server. The first function is the outermost. The middleware also wraps
   * the requests of the handshake, of subscriptions and of extensions, and each retry that contains answers to the
   * server's input requests.
   */
  readonly use?: readonly ClientMiddleware[];
  /** Called with each notification from the server. */
  readonly onNotification?: (notification: Notification) => void;
  /**
   * Called with the description of each problem that does not fail a request, such as an unusable tool. Defaults to
   * `console.warn`.
   */
  readonly onWarning?: (text: string) => void;
  /**
   * Maximum number of elicitation, sampling and roots requests that the client answers for one request of the program,
   * over all rounds, pages and tasks. A request that needs more answers fails; in a session, the client rejects further
   * requests of the server. Requests that a server in a session sends while the program waits for nothing count from
   * the program's last request. Defaults to 32.
   */
  readonly maxAnswers?: number;
  /**
   * The least severe level of log messages that the server should send.
   *
   * @deprecated by the protocol. Read the server's standard error, or its telemetry, instead.
   */
  readonly logLevel?: LogLevel;
  /** The era to use. By default, the client detects the server's era. */
  readonly era?: "modern" | "legacy";
  /** The protocol revisions to support, in order of preference. Defaults to all revisions, newest first. */
  readonly revisions?: readonly string[];
  /**
   * Milliseconds to wait for the first response from a child process. A process that does not respond in this time is
   * treated as a legacy server. Defaults to 5000.
   */
  readonly probeMs?: number;
}

/** Options for a part of this library that keeps questions open for a long time, and has its own limits. */
export interface OwnConnectOptions extends ConnectOptions {
  readonly [INTERNALS]?: {
    /** Maximum number of server requests that are answered at the same time. */
    readonly answering: number;
    /** Whether the requests belong to different users. */
    readonly isShared: boolean;
  };
}

/** The options that `connectTest` has too. */
export const CONNECTION = {
  ...ANSWER,
  capabilities: true,
  extensions: "list",
  headers: true,
  info: true,
  logLevel: true,
  maxAnswers: true,
  onNotification: "function",
  onWarning: "function",
  pathParams: true,
  timeoutMs: true,
  era: ["modern", "legacy"],
  revisions: "texts",
} as const;

const OPTIONS: KnownOptions<keyof ConnectOptions> = {
  names: {
    ...CONNECTION,
    use: "functions",
    auth: AUTH,
    fetch: "function",
    onStderr: "function",
    signal: true,
    trace: {
      findProblem: (value) =>
        typeof value === "object" ? undefined : "must be an object with methods, such as { received: console.error }",
    },
    probeMs: true,
  },
  hints: { params: "pathParams", name: "info", version: "revisions", versions: "revisions" },
};

/**
 * Connects to a server and detects the server's era. The client first sends a modern request. If the server does not
 * respond like a modern server, the client sends `initialize`. Over HTTP, the client finally tries the transport of
 * revision 2024-11-05.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { connect } from "@x/mcp/client";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello] });
 *
 * await using client = await connect(server);
 * const { content } = await client.callTool("hello");
 * if (JSON.stringify(content) !== `[{"type":"text","text":"Hello!"}]`) throw new Error("no greeting");
 * ```
 *
 * @throws {TypeError} if the target is invalid.
 * @throws {McpError} if the server responds with an error.
 * @throws {Error} if there is no server, or if the client and the server have no protocol revision in common.
 */
export function connect(target: Target, options?: ConnectOptions): Promise<Client>;
/**
 * Connects to a server whose type is known. With `connect<typeof server>(url)`, the compiler checks the names and
 * arguments of calls, and infers the types of structured results. At runtime, the client does not check that the server
 * at the URL has these handlers.
 */
export function connect<S extends Typed<unknown>>(target: Target, options?: ConnectOptions): Promise<TypedClient<S>>;
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  return await connectTo(target, options);
}

async function connectTo(target: Target, options: ConnectOptions): Promise<Client> {
  checkOptions("connect", options, OPTIONS);
  checkTarget(target);
  if (typeof target === "object" && INTERNALS in target && (options.pathParams || target[INTERNALS].enter)) {
    const { pathParams, ...rest } = options;
    return await connectTo(await enterServer(target, pathParams), rest);
  }
  const versions = readRevisions(options);
  const legacy = versions.filter((version) => !isModern(version));
  const known = options.era ? undefined : findKnown(target, options);
  if (known?.has() && legacy.length && legacy.length < versions.length) {
    try {
      return await connectAnew(target, { versions: legacy, legacy, options });
    } catch (error) {
      // Do not try again after a timeout, because a second attempt would probably time out too.
      if (options.signal?.aborted || error instanceof DOMException) throw error;
      // Forget the known era, because the server may have been updated.
      known.forget();
    }
  }
  const client = await connectAnew(target, { versions, legacy, options });
  if (client.server.era === "legacy") known?.remember();
  return client;
}

interface Attempts {
  readonly versions: readonly string[];
  /** The revisions in `versions` that have a handshake. */
  readonly legacy: readonly string[];
  readonly options: ConnectOptions;
}

async function connectAnew(target: Target, { versions, legacy, options }: Attempts): Promise<Client> {
  try {
    return await attempt(openTarget(target, options), versions, options);
  } catch (error) {
    const wasLegacy = legacy.length === versions.length;
    const other = legacy.length ? await findOther(target, { ...options, error, wasLegacy }) : undefined;
    if (!other) throw error;
    return await attempt(other, legacy, options);
  }
}

const MAX_ORIGINS = 1000;
/** Origins of legacy servers, by `fetch` function, for which the client skips the modern request. */
const legacyOrigins = new WeakMap<object, BoundedMap<string, void>>();

/**
 * Remembers that the server at the target's origin is a legacy server, so that the client detects the era only once.
 */
function findKnown(target: Target, { fetch = globalThis.fetch }: ConnectOptions) {
  if (typeof target !== "string" && !(target instanceof URL) || !URL.canParse(target)) return;
  const { origin } = new URL(target);
  const origins = legacyOrigins.get(fetch) ?? new BoundedMap({ full: "evict", max: MAX_ORIGINS });
  legacyOrigins.set(fetch, origins);
  return {
    has: () => origins.has(origin),
    forget: () => void origins.delete(origin),
    remember: () => void origins.set(origin),
  };
}

function readRevisions({ revisions = VERSIONS, era }: ConnectOptions): readonly string[] {
  const wanted = revisions.filter((version) => !era || isModern(version) === (era === "modern"));
  if (wanted.length) return wanted;
  throw new TypeError(
    `Cannot connect: revisions (${revisions.join(", ")}) contains no ${
      era ?? "supported"
    } revision; add a revision, or change era`,
  );
}

async function attempt(open: Open, versions: readonly string[], options: OwnConnectOptions): Promise<Client> {
  const { info = CLIENT, capabilities, logLevel, timeoutMs = DEFAULT_TIMEOUT_MS, probeMs = PROBE_MS, signal } = options;
  const {
    extensions,
    maxAnswers = MAX_ANSWERS,
    onNotification,
    onWarning = (text: string) => console.warn(toPrintable(text)),
  } = options;
  checkTimeout(timeoutMs, "timeoutMs");
  checkTimeout(probeMs, "probeMs");
  checkMaxAnswers(maxAnswers);
  signal?.throwIfAborted();
  const answer = createRequestHandler(options);
  const onError = (error: unknown) => onWarning(error instanceof Error ? error.message : String(error));
  const rpc = new Rpc({
    // Used only until the era is detected.
    codec: new LegacyCodec(),
    answer,
    timeoutMs,
    maxAnswers,
    answering: options[INTERNALS]?.answering,
    use: options.use,
    onError,
    open: (onMessage) => open({ onMessage, onBroken: onError }),
    repeatsAnswers: true,
  });
  if (options[INTERNALS]?.isShared) rpc.share();
  // Requests can have other credentials, if functions of the program can change their headers.
  const isFixed = !options.use?.length && !options.fetch;
  const lists = new ListCache(isFixed ? rpc.channel.tokens ?? NO_TOKENS : undefined);
  // Add this listener first, because a callback of the program may list again.
  rpc.listeners.add(lists.receive);
  rpc.listeners.add((notification) => notifyLocks(options.use, notification));
  if (onNotification) rpc.listeners.add(onNotification);
  if (extensions?.length) rpc.listeners.add(toReceiver(extensions, onError));
  const giveUp = () => rpc.abort(signal?.reason);
  signal?.addEventListener("abort", giveUp);
  const asked = toCapabilities(options);
  try {
    const protocol = await detectEra(rpc, {
      info,
      capabilities: declareExtensions({ ...asked, ...capabilities }, extensions),
      extensions,
      logLevel,
      onWarning,
      recovers: true,
      versions,
      probeMs,
      listens: onNotification !== undefined || Object.keys(asked).length > 0,
    });
    return toClient(rpc, protocol, { answers: options, lists, onMisfit: onWarning, extensions });
  } catch (error) {
    rpc.abort();
    await rpc.channel.close();
    throw error;
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

const CLIENT: Implementation = { name: "@x/mcp", version: "0.1.0" };
const PROBE_MS = 5000;
