/**
 * The protocol of revisions with a handshake and a session.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @see specification/2025-11-25/basic/transports
 * @module
 */
import { METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { ServerStream } from "./channel.ts";
import type { Notification } from "./message.ts";
import type { Codec, Outcome, Rpc, TestRequestOptions } from "./rpc.ts";
import { delay, startTimer } from "./delay.ts";
import { RpcError } from "./rpc_error.ts";
import { type Protocol, type ProtocolOptions, type ServerFacts, toImplementation } from "./protocol.ts";
import type { SubscriptionFilter, Watch } from "./subscription.ts";

/** Adds the session id and the protocol revision to HTTP messages. */
export class LegacyCodec implements Codec {
  readonly hasSession = true;
  /** The agreed protocol revision; `undefined` before the handshake. */
  version?: string;
  sessionId?: string;

  toParams(params: Params): Params {
    return params;
  }

  toHeaders(): Readonly<Record<string, string>> {
    return {
      ...this.sessionId === undefined ? {} : { "mcp-session-id": this.sessionId },
      // Revisions before 2025-06-18 have no such header.
      ...this.version !== undefined && this.version >= "2025-06-18" ? { "mcp-protocol-version": this.version } : {},
    };
  }
}

/** The options of {@linkcode legacyProtocol}. */
export interface LegacyOptions extends ProtocolOptions {
  /** The protocol revisions of the client, best first. The first is proposed. */
  readonly versions: readonly string[];
  /** Whether to open the stream for messages that belong to no request at once. */
  readonly listens: boolean;
}

/** Removes the headers of an earlier session from a handshake. */
const NO_SESSION = { "mcp-session-id": null, "mcp-protocol-version": null };
/** Milliseconds to wait for a stream to open. Some servers respond only with the first message. */
const OPEN_STREAM_MS = 1000;
/** Milliseconds to wait for the end of a session. */
const END_SESSION_MS = 2000;

/**
 * Shakes hands, and returns the protocol of the connection.
 *
 * @throws {RpcError} if the server refuses.
 * @throws {Error} if the server responds with a protocol revision that the client does not support.
 */
export async function legacyProtocol(rpc: Rpc, codec: LegacyCodec, options: LegacyOptions): Promise<Protocol> {
  const { channel } = rpc;
  const { recovers, versions } = options;
  const stop = new AbortController();
  const watched = new Map<string, number>();
  let { logLevel } = options;
  let stream: Promise<ServerStream | undefined> | undefined;
  let renewing: Promise<void> | undefined;
  let handshake = await shakeHands();
  // Messages before the stream is open are lost.
  if (options.listens) await listen().catch(() => {});

  async function shakeHands(): Promise<Result> {
    const { capabilities, info: clientInfo } = options;
    const offer = { protocolVersion: versions[0], capabilities, clientInfo };
    const { result, headers } = await rpc.request("initialize", offer, { headers: NO_SESSION });
    const { protocolVersion: version } = result;
    if (typeof version !== "string" || (recovers && !versions.includes(version))) {
      throw new Error(
        `Cannot connect: the server speaks ${version ?? "no revision"}, this client ${versions.join(", ")}`,
      );
    }
    codec.version = version;
    codec.sessionId = headers?.get("mcp-session-id") ?? undefined;
    await rpc.notify("notifications/initialized");
    const canLog = isObject(result.capabilities) && "logging" in result.capabilities;
    if (logLevel && (canLog || !recovers)) await rpc.request("logging/setLevel", { level: logLevel });
    return result;
  }

  async function request(method: string, params: Params, given?: TestRequestOptions): Promise<Outcome> {
    const { sessionId } = codec;
    try {
      return await rpc.request(method, params, given);
    } catch (error) {
      if (!recovers || sessionId === undefined || !isSessionLost(error) || stop.signal.aborted) throw error;
      // A server that does not know the session has not processed the request.
      await renew(sessionId);
      return await rpc.request(method, params, given);
    }
  }

  // Replaces an ended session once, even if several requests notice it.
  async function renew(sessionId: string): Promise<void> {
    if (codec.sessionId === sessionId) renewing ??= begin().finally(() => renewing = undefined);
    await renewing;
  }

  async function begin(): Promise<void> {
    handshake = await shakeHands();
    if (stream) {
      stream = undefined;
      await listen();
    }
    for (const uri of watched.keys()) await rpc.request("resources/subscribe", { uri });
  }

  // Returns whether there is a stream. One serves all subscriptions, because a server sends each message on only one.
  async function listen(): Promise<boolean> {
    stream ??= open().catch((error) => {
      stream = undefined;
      throw error;
    });
    const late = new AbortController();
    const waited = delay(OPEN_STREAM_MS, late.signal).then(() => true, () => true);
    return await Promise.race([stream.then((opened) => opened !== undefined), waited]).finally(() => late.abort());
  }

  async function open(): Promise<ServerStream | undefined> {
    const { sessionId } = codec;
    try {
      const opened = await channel.openStream?.({
        headers: codec.toHeaders(),
        signal: stop.signal,
        onMessage: rpc.receive,
        resumes: () => recovers && codec.sessionId === sessionId,
      });
      opened?.ended.then((status) => {
        if (recovers && status === 404 && sessionId !== undefined && !stop.signal.aborted) return renew(sessionId);
      }).catch((error) => options.onWarning(`Cannot begin a new session: ${error.message}`));
      return opened;
    } catch (error) {
      if (!recovers || !(error instanceof RpcError) || error.status !== 405) throw error;
      // The server has no such stream.
    }
  }

  async function watch(filter: SubscriptionFilter, onChange: (notification: Notification) => void): Promise<Watch> {
    const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
    const granted = recovers ? toGranted(filter, handshake.capabilities) : filter;
    const uris = granted.resourceSubscriptions ?? [];
    const listener = (notification: Notification) => {
      if (isWanted(notification, filter)) onChange(notification);
    };
    const finish = () => {
      rpc.listeners.delete(listener);
      end(undefined);
    };
    rpc.listeners.add(listener);
    stop.signal.addEventListener("abort", finish);
    channel.ended?.then(finish);
    try {
      if (!await listen() && channel.openStream) {
        options.onWarning("Cannot receive changes outside of calls: the server has no stream for them");
      }
      if (!recovers) (await stream)?.ended.then(finish);
      for (const uri of uris) {
        watched.set(uri, (watched.get(uri) ?? 0) + 1);
        await request("resources/subscribe", { uri });
      }
    } catch (error) {
      await close().catch(() => {});
      throw error;
    }

    async function close(): Promise<void> {
      finish();
      stop.signal.removeEventListener("abort", finish);
      // The server drops the subscriptions when the session ends.
      for (const uri of stop.signal.aborted ? [] : uris) {
        const count = (watched.get(uri) ?? 1) - 1;
        if (count) watched.set(uri, count);
        else if (watched.delete(uri)) await request("resources/unsubscribe", { uri });
      }
    }

    return { granted, ended, close };
  }

  async function close(): Promise<void> {
    stop.abort(new DOMException("The connection was closed", "AbortError"));
    await (await stream?.catch(() => undefined))?.ended;
    if (codec.sessionId === undefined || !channel.endSession) return;
    const late = new AbortController();
    const stopTimer = startTimer(END_SESSION_MS, () => late.abort());
    const ending = channel.endSession({ headers: codec.toHeaders(), signal: late.signal }).finally(stopTimer);
    // If the server refuses this, the session expires.
    if (recovers) await ending.catch(() => {});
    else await ending;
  }

  return {
    get server() {
      return toFacts(handshake);
    },
    get handshake() {
      return handshake;
    },
    get sessionId() {
      return codec.sessionId;
    },
    request,
    watch,
    async setLogLevel(level) {
      logLevel = level;
      await request("logging/setLevel", { level });
    },
    notify: (method, params) => rpc.notify(method, params),
    close,
  };
}

function isSessionLost(error: unknown): boolean {
  return error instanceof RpcError && error.status === 404 && error.code !== METHOD_NOT_FOUND;
}

function toFacts({ protocolVersion, serverInfo, capabilities, instructions }: Result): ServerFacts {
  return {
    era: "legacy",
    version: String(protocolVersion),
    info: toImplementation(serverInfo),
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}

// The part of a filter that the server declares.
function toGranted(filter: SubscriptionFilter, capabilities: unknown): SubscriptionFilter {
  const can = (feature: string, what: string) => {
    const settings = isObject(capabilities) ? capabilities[feature] : undefined;
    return isObject(settings) && settings[what] === true;
  };
  const { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions } = filter;
  return {
    ...toolsListChanged && can("tools", "listChanged") && { toolsListChanged },
    ...promptsListChanged && can("prompts", "listChanged") && { promptsListChanged },
    ...resourcesListChanged && can("resources", "listChanged") && { resourcesListChanged },
    ...resourceSubscriptions && can("resources", "subscribe") && { resourceSubscriptions },
  };
}

function isWanted({ method, params }: Notification, filter: SubscriptionFilter): boolean {
  switch (method) {
    case "notifications/tools/list_changed":
      return filter.toolsListChanged ?? false;
    case "notifications/prompts/list_changed":
      return filter.promptsListChanged ?? false;
    case "notifications/resources/list_changed":
      return filter.resourcesListChanged ?? false;
    default:
      return method === "notifications/resources/updated" &&
        (filter.resourceSubscriptions?.some((uri) => uri === params.uri) ?? false);
  }
}
