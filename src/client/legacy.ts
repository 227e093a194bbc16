/**
 * The protocol of revisions that have a handshake and a session.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @see specification/2025-11-25/basic/transports
 */
import { INTERNALS } from "../core/internals.ts";
import { isRemoteError, METHOD_NOT_FOUND } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { LogLevel } from "../core/protocol/types.ts";
import type { ServerStream } from "./channel.ts";
import type { Notification } from "./message.ts";
import type { Codec, Outcome, Rpc, SentRequestOptions } from "./rpc.ts";
import { deadline } from "../core/kit/deadline.ts";
import { startResponseTimer } from "../core/kit/timer.ts";
import { type Protocol, type ProtocolOptions, type ServerInfo, toServerInfo } from "./protocol.ts";
import type { OwnWatch, SubscriptionFilter } from "./subscription.ts";
import { explain, toShown } from "./shown.ts";

/** Adds the session id and the protocol revision to the HTTP headers of messages. */
export class LegacyCodec implements Codec {
  readonly hasSession = true;
  /** The negotiated protocol revision. `undefined` before the handshake. */
  version?: string;
  sessionId?: string;

  toParams(params: Params): Params {
    return params;
  }

  toHeaders(): Readonly<Record<string, string>> {
    return {
      ...this.sessionId === undefined ? {} : { "mcp-session-id": this.sessionId },
      // Revisions before 2025-06-18 do not have this header.
      ...this.version !== undefined && this.version >= "2025-06-18" ? { "mcp-protocol-version": this.version } : {},
    };
  }
}

export interface LegacyOptions extends ProtocolOptions {
  /** The client's protocol revisions, in order of preference. The client proposes the first revision. */
  readonly versions: readonly string[];
  /** Whether to open the standalone stream immediately after the handshake. */
  readonly listens: boolean;
}

/** Removes the headers of the old session from the request of a new handshake. */
const NO_SESSION = { "mcp-session-id": null, "mcp-protocol-version": null };
/**
 * Milliseconds to wait for a stream's response headers. After this time, the stream counts as open, because some
 * servers do not send headers before the first message.
 */
const OPEN_STREAM_MS = 1000;
const END_SESSION_MS = 2000;

/**
 * Performs the handshake, and returns the protocol of the connection.
 *
 * @throws {McpError} if the server responds with an error.
 * @throws {Error} if the server responds with a protocol revision that the client does not support.
 */
export async function legacyProtocol(rpc: Rpc, codec: LegacyCodec, options: LegacyOptions): Promise<Protocol> {
  const protocol = new LegacyProtocol(rpc, codec, options);
  await protocol.begin();
  return protocol;
}

class LegacyProtocol implements Protocol {
  readonly #rpc: Rpc;
  readonly #codec: LegacyCodec;
  readonly #options: LegacyOptions;
  readonly #stop = new AbortController();
  /** Number of open subscriptions, by resource URI. */
  readonly #watched = new Map<string, number>();
  #handshake: Result = {};
  #logLevel: LogLevel | undefined;
  #stream: Promise<ServerStream | undefined> | undefined;
  #renewing: Promise<void> | undefined;

  constructor(rpc: Rpc, codec: LegacyCodec, options: LegacyOptions) {
    this.#rpc = rpc;
    this.#codec = codec;
    this.#options = options;
    this.#logLevel = options.logLevel;
  }

  get server(): ServerInfo {
    const { protocolVersion, serverInfo: info } = this.#handshake;
    return toServerInfo({ era: "legacy", version: String(protocolVersion), info }, this.#handshake);
  }

  get handshake(): Result {
    return this.#handshake;
  }

  get sessionId(): string | undefined {
    return this.#codec.sessionId;
  }

  async begin(): Promise<void> {
    await this.#shakeHands();
    // Open the stream before the first request, because messages that the server sends before the stream is open are
    // lost.
    if (this.#options.listens) await this.#listen().catch(() => {});
  }

  async request(method: string, params: Params, given?: SentRequestOptions): Promise<Outcome> {
    const { sessionId } = this.#codec;
    if (given?.resume) {
      throw new TypeError(
        `Cannot resume ${method}: results in a session cannot be resumed; connect with revision 2026-07-28`,
      );
    }
    // Renew the budget only for requests of the program, because a server can make the client send other requests.
    this.#rpc.budget.renew();
    const options = { asked: { count: 0 }, ...given };
    try {
      return await this.#rpc.request(method, params, options);
    } catch (error) {
      const isLost = this.#options.recovers && sessionId !== undefined && isSessionLost(error);
      if (!isLost || this.#stop.signal.aborted) throw error;
      // Sending the request again is safe, because a server that does not know the session has not processed the
      // request.
      await this.#renew(sessionId);
      return await this.#rpc.request(method, params, options);
    }
  }

  async watch(filter: SubscriptionFilter, onChange: (notification: Notification) => void): Promise<OwnWatch> {
    const { signal } = this.#stop;
    const { listeners, channel } = this.#rpc;
    const granted = this.#options.recovers ? toGranted(filter, this.#handshake.capabilities) : filter;
    const uris = granted.resourceSubscriptions ?? [];
    const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
    const listener = (notification: Notification) => {
      if (isWanted(notification, filter)) onChange(notification);
    };
    const finish = () => {
      listeners.delete(listener);
      end(undefined);
    };
    const close = async () => {
      finish();
      signal.removeEventListener("abort", finish);
      // Unsubscribe only if the session continues, because ending a session also ends its subscriptions.
      if (!signal.aborted) await this.#unsubscribe(uris);
    };
    listeners.add(listener);
    signal.addEventListener("abort", finish);
    channel.ended?.then(finish);
    try {
      const hasStream = await this.#openForChanges(finish);
      await this.#subscribe(uris);
      return { granted, ended, close, [INTERNALS]: { hasStream } };
    } catch (error) {
      await close().catch(() => {});
      throw error;
    }
  }

  async setLogLevel(level: LogLevel): Promise<void> {
    this.#logLevel = level;
    await this.request("logging/setLevel", { level });
  }

  notify(method: string, params?: Params): Promise<void> {
    this.#rpc.budget.renew();
    return this.#rpc.notify(method, params);
  }

  async close(): Promise<void> {
    this.#stop.abort(new DOMException("The connection was closed", "AbortError"));
    await (await this.#stream?.catch(() => undefined))?.ended;
    const { channel } = this.#rpc;
    if (this.#codec.sessionId === undefined || !channel.endSession) return;
    const late = new AbortController();
    const stopTimer = startResponseTimer(END_SESSION_MS, () => late.abort());
    const ending = channel.endSession({ headers: this.#codec.toHeaders(), signal: late.signal }).finally(stopTimer);
    // Ignore an error, because the server ends an idle session itself.
    if (this.#options.recovers) await ending.catch(() => {});
    else await ending;
  }

  async #shakeHands(): Promise<void> {
    const { capabilities, info: clientInfo, recovers, versions } = this.#options;
    const offer = { protocolVersion: versions[0], capabilities, clientInfo };
    const { result, headers } = await this.#rpc.request("initialize", offer, { ...this.#own, headers: NO_SESSION });
    const { protocolVersion: version } = result;
    if (typeof version !== "string" || (recovers && !versions.includes(version))) {
      throw new Error(
        `Cannot connect: the server supports ${toShown(version ?? "no revision")}, but this client supports ${
          versions.join(", ")
        }`,
      );
    }
    this.#codec.version = version;
    this.#codec.sessionId = headers?.get("mcp-session-id") ?? undefined;
    await this.#rpc.notify("notifications/initialized");
    const canLog = isObject(result.capabilities) && "logging" in result.capabilities;
    if (this.#logLevel && (canLog || !recovers)) {
      await this.#rpc.request("logging/setLevel", { level: this.#logLevel }, this.#own);
    }
    this.#handshake = result;
  }

  /** Replaces a lost session. Requests that notice the loss at the same time share one new session. */
  async #renew(sessionId: string): Promise<void> {
    if (this.#codec.sessionId === sessionId) {
      this.#renewing ??= this.#beginAgain().finally(() => this.#renewing = undefined);
    }
    await this.#renewing;
  }

  async #beginAgain(): Promise<void> {
    await this.#shakeHands();
    if (this.#stream) {
      this.#stream = undefined;
      await this.#listen();
    }
    for (const uri of this.#watched.keys()) await this.#rpc.request("resources/subscribe", { uri }, this.#own);
  }

  /** Options of requests that the client sends on its own. They never give the server a new budget for questions. */
  get #own(): SentRequestOptions {
    return { asked: this.#rpc.budget.outside };
  }

  /**
   * Opens the standalone stream, unless it is already open. Returns `false` if the server has no such stream. All
   * subscriptions share the stream, because a server sends each message on only one stream.
   */
  async #listen(): Promise<boolean> {
    this.#stream ??= this.#openStream().catch((error) => {
      this.#stream = undefined;
      throw error;
    });
    const opening = this.#stream.then((opened) => opened !== undefined);
    return await deadline(opening, { ms: OPEN_STREAM_MS, onTimeout: () => true });
  }

  async #openStream(): Promise<ServerStream | undefined> {
    const { recovers, onWarning } = this.#options;
    const { sessionId } = this.#codec;
    try {
      const opened = await this.#rpc.channel.openStream?.({
        headers: this.#codec.toHeaders(),
        signal: this.#stop.signal,
        onMessage: (message) => this.#rpc.receive(message),
        resumes: () => recovers && this.#codec.sessionId === sessionId,
      });
      opened?.ended.then((status) => {
        const isLost = recovers && status === 404 && sessionId !== undefined;
        if (isLost && !this.#stop.signal.aborted) return this.#renew(sessionId);
      }).catch((error) => onWarning(explain("Cannot begin a new session", error)));
      return opened;
    } catch (error) {
      if (!recovers || !isRemoteError(error) || error.status !== 405) throw error;
      // Status 405 means that the server has no standalone stream.
    }
  }

  /**
   * Opens the standalone stream to receive changes. Returns `false` if the server has no such stream. If `recovers` is
   * `false`, calls `onEnd` when the stream has ended.
   */
  async #openForChanges(onEnd: () => void): Promise<boolean> {
    const hasStream = !this.#rpc.channel.openStream || await this.#listen();
    if (!hasStream) {
      this.#options.onWarning(
        "Cannot receive notifications of changes outside of requests: the server has no standalone stream",
      );
    }
    if (!this.#options.recovers) (await this.#stream)?.ended.then(onEnd);
    return hasStream;
  }

  async #subscribe(uris: readonly string[]): Promise<void> {
    for (const uri of uris) {
      this.#watched.set(uri, (this.#watched.get(uri) ?? 0) + 1);
      await this.request("resources/subscribe", { uri });
    }
  }

  async #unsubscribe(uris: readonly string[]): Promise<void> {
    for (const uri of uris) {
      const count = (this.#watched.get(uri) ?? 1) - 1;
      if (count) this.#watched.set(uri, count);
      else if (this.#watched.delete(uri)) await this.request("resources/unsubscribe", { uri });
    }
  }
}

function isSessionLost(error: unknown): boolean {
  return isRemoteError(error) && error.status === 404 && error.code !== METHOD_NOT_FOUND;
}

// Returns the part of a filter for which the server declares the capabilities.
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
