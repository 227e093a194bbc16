/**
 * Connects to a server, wherever it is and whatever it speaks.
 *
 * @module
 */
import { toPrintable } from "../protocol/printable.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../protocol/types.ts";
import { type AnswerOptions, createRequestHandler, toCapabilities } from "./server_requests.ts";
import { type Client, toClient } from "./calls.ts";
import { detectEra, isModern, VERSIONS } from "./detect_era.ts";
import { LegacyCodec } from "./legacy.ts";
import type { Notification } from "./message.ts";
import { checkTimeout } from "./delay.ts";
import { createRpc } from "./rpc.ts";
import { findOther, type Open, openTarget, type Target, type TargetOptions, USUAL_MS } from "./target.ts";

/** Who connects, and how. Everything may be left out. */
export interface ConnectOptions extends AnswerOptions, TargetOptions {
  /** The client's name and version. */
  readonly info?: Implementation;
  /** What the client can do beside answering what it has functions for, such as extensions. */
  readonly capabilities?: ClientCapabilities;
  /** Told of every notification of the server. */
  readonly onNotification?: (notification: Notification) => void;
  /** Told of what goes wrong and is gone around, such as a tool that cannot be offered; `console.warn` if not given. */
  readonly onWarning?: (text: string) => void;
  /** Least severe log message that the server is to send. */
  readonly logLevel?: LogLevel;
  /** The one era to speak; the server's if nothing is said. */
  readonly era?: "modern" | "legacy";
  /** The revisions to speak, the best first; all there are if nothing is said. */
  readonly versions?: readonly string[];
  /** Milliseconds after which a silent child process is taken for an old server; 5000 if nothing is said. */
  readonly probeMs?: number;
}

/**
 * Connects to a server. Its era is found out: a modern question comes first, and whatever is no modern answer is
 * followed by a handshake, over HTTP at last in the form of the first revision.
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
 * @throws {TypeError} if the target is none.
 * @throws {RpcError} if the server refuses.
 * @throws {Error} if there is no server, or it speaks no revision that the client speaks.
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const versions = readVersions(options);
  const legacy = versions.filter((version) => !isModern(version));
  const known = options.era ? undefined : findKnown(target, options);
  if (known?.has() && legacy.length && legacy.length < versions.length) {
    try {
      return await connectAnew(target, { versions: legacy, legacy, options });
    } catch (error) {
      // What took too long would take as long again.
      if (options.signal?.aborted || error instanceof DOMException) throw error;
      // It may have been updated since: everything is tried again.
      known.forget();
    }
  }
  const client = await connectAnew(target, { versions, legacy, options });
  if (client.server.era === "legacy") known?.remember();
  return client;
}

interface Attempts {
  readonly versions: readonly string[];
  /** Those of them with a handshake. */
  readonly legacy: readonly string[];
  readonly options: ConnectOptions;
}

async function connectAnew(target: Target, { versions, legacy, options }: Attempts): Promise<Client> {
  try {
    return await attempt(openTarget(target, options), versions, options);
  } catch (error) {
    const wasOld = legacy.length === versions.length;
    const other = legacy.length ? await findOther(target, { ...options, error, wasOld }) : undefined;
    if (!other) throw error;
    return await attempt(other, legacy, options);
  }
}

const MOST_ORIGINS = 1000;
/** Origins at which servers shake hands, for each way to fetch: without the question before it, they answer sooner. */
const legacyOrigins = new WeakMap<object, Set<string>>();

/** What is known of the origin of a URL, so that a server is asked for its era only once. */
function findKnown(target: Target, { fetch = globalThis.fetch }: ConnectOptions) {
  if (typeof target !== "string" && !(target instanceof URL) || !URL.canParse(target)) return;
  const { origin } = new URL(target);
  const origins = legacyOrigins.get(fetch) ?? new Set();
  legacyOrigins.set(fetch, origins);
  return {
    has: () => origins.has(origin),
    forget: () => void origins.delete(origin),
    remember() {
      if (origins.size >= MOST_ORIGINS) origins.clear();
      origins.add(origin);
    },
  };
}

function readVersions({ versions = VERSIONS, era }: ConnectOptions): readonly string[] {
  const wanted = versions.filter((version) => !era || isModern(version) === (era === "modern"));
  if (wanted.length) return wanted;
  throw new TypeError(`Cannot connect: none of versions (${versions.join(", ")}) is ${era ?? "given"}`);
}

async function attempt(open: Open, versions: readonly string[], options: ConnectOptions): Promise<Client> {
  const { info = CLIENT, capabilities, logLevel, timeoutMs = USUAL_MS, probeMs = PROBE_MS, signal } = options;
  const { onNotification, onWarning = (text: string) => console.warn(toPrintable(text)) } = options;
  checkTimeout(timeoutMs, "timeoutMs");
  checkTimeout(probeMs, "probeMs");
  signal?.throwIfAborted();
  const answer = createRequestHandler(options);
  const onError = (error: unknown) => onWarning(error instanceof Error ? error.message : String(error));
  const rpc = createRpc({
    // Until it is known what is spoken.
    codec: new LegacyCodec(),
    answer,
    timeoutMs,
    onError,
    open: (onMessage) => open({ onMessage, onBroken: onError }),
  });
  if (onNotification) rpc.listeners.add(onNotification);
  const giveUp = () => rpc.abort(signal?.reason);
  signal?.addEventListener("abort", giveUp);
  const asked = toCapabilities(options);
  try {
    const protocol = await detectEra(rpc, {
      info,
      capabilities: { ...asked, ...capabilities },
      logLevel,
      answer,
      onWarning,
      recovers: true,
      versions,
      probeMs,
      listens: onNotification !== undefined || Object.keys(asked).length > 0,
    });
    return toClient(rpc, protocol);
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
