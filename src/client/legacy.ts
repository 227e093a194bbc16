/**
 * A client that shakes hands first and keeps a session.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @see specification/2025-11-25/basic/transports
 * @module
 */
import { METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { Visit } from "./channel.ts";
import type { Notification } from "./message.ts";
import type { Outcome, Peer, Speech, WireOptions } from "./peer.ts";
import { pause, startTimer } from "./pause.ts";
import { RpcError } from "./rpc_error.ts";
import { type ServerFacts, type Speaker, type SpeakerOptions, toImplementation } from "./speaker.ts";
import type { Filter, Watch } from "./subscription.ts";

/** What a legacy client adds to messages: over HTTP, which session they belong to. */
export class LegacySpeech implements Speech {
  readonly hasSession = true;
  /** What was agreed; nothing before the handshake. */
  version?: string;
  sessionId?: string;

  toParams(params: Params): Params {
    return params;
  }

  toHeaders(): Readonly<Record<string, string>> {
    return {
      ...this.sessionId === undefined ? {} : { "mcp-session-id": this.sessionId },
      // Older revisions have no such header.
      ...this.version !== undefined && this.version >= "2025-06-18" ? { "mcp-protocol-version": this.version } : {},
    };
  }
}

/** How a legacy client begins. */
export interface LegacyOptions extends SpeakerOptions {
  /** The revisions that the client speaks, the best first; that one is proposed. */
  readonly versions: readonly string[];
  /** Whether the stream for what belongs to no request is opened at once: the server may ask or tell something on it. */
  readonly listens: boolean;
}

/** A handshake belongs to no session, even if there was one before. */
const NO_SESSION = { "mcp-session-id": null, "mcp-protocol-version": null };
/** Milliseconds for a stream to be answered; some servers say nothing on it before there is something to say. */
const VISIT_MS = 1000;
/** Milliseconds for a session to be ended. */
const LEAVE_MS = 2000;

/**
 * Shakes hands; a legacy client at the end of a connection.
 *
 * @throws {RpcError} if the server refuses.
 * @throws {Error} if the server answers with a revision that the client does not speak.
 */
export async function legacySpeaker(peer: Peer, speech: LegacySpeech, options: LegacyOptions): Promise<Speaker> {
  const { channel } = peer;
  const { recovers, versions } = options;
  const stop = new AbortController();
  const watched = new Map<string, number>();
  let { logLevel } = options;
  let visit: Promise<Visit | undefined> | undefined;
  let renewing: Promise<void> | undefined;
  let handshake = await shakeHands();
  // What is told or asked before the stream is open is lost.
  if (options.listens) await listen().catch(() => {});

  async function shakeHands(): Promise<Result> {
    const { capabilities, info: clientInfo } = options;
    const offer = { protocolVersion: versions[0], capabilities, clientInfo };
    const { result, headers } = await peer.request("initialize", offer, { headers: NO_SESSION });
    const { protocolVersion: version } = result;
    if (typeof version !== "string" || (recovers && !versions.includes(version))) {
      throw new Error(`Cannot connect: the server speaks ${version}, this client ${versions.join(", ")}`);
    }
    speech.version = version;
    speech.sessionId = headers?.get("mcp-session-id") ?? undefined;
    await peer.notify("notifications/initialized");
    const canLog = isObject(result.capabilities) && "logging" in result.capabilities;
    if (logLevel && (canLog || !recovers)) await peer.request("logging/setLevel", { level: logLevel });
    return result;
  }

  async function request(method: string, params: Params, given?: WireOptions): Promise<Outcome> {
    const { sessionId } = speech;
    try {
      return await peer.request(method, params, given);
    } catch (error) {
      if (!recovers || sessionId === undefined || !isSessionLost(error) || stop.signal.aborted) throw error;
      // A server that does not know the session has not looked at the request.
      await renew(sessionId);
      return await peer.request(method, params, given);
    }
  }

  // Begins a new session in place of one that has ended, whoever notices it first.
  async function renew(sessionId: string): Promise<void> {
    if (speech.sessionId === sessionId) renewing ??= begin().finally(() => renewing = undefined);
    await renewing;
  }

  async function begin(): Promise<void> {
    handshake = await shakeHands();
    if (visit) {
      visit = undefined;
      await listen();
    }
    for (const uri of watched.keys()) await peer.request("resources/subscribe", { uri });
  }

  // One stream serves all subscriptions: a server tells each thing on only one. Whether there is such a stream.
  async function listen(): Promise<boolean> {
    visit ??= open().catch((error) => {
      visit = undefined;
      throw error;
    });
    const late = new AbortController();
    const waited = pause(VISIT_MS, late.signal).then(() => true, () => true);
    return await Promise.race([visit.then((opened) => opened !== undefined), waited]).finally(() => late.abort());
  }

  async function open(): Promise<Visit | undefined> {
    const { sessionId } = speech;
    try {
      const opened = await channel.visit?.({
        headers: speech.toHeaders(),
        signal: stop.signal,
        hear: peer.hear,
        resumes: () => recovers && speech.sessionId === sessionId,
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

  async function watch(filter: Filter, tell: (notification: Notification) => void): Promise<Watch> {
    const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
    const granted = recovers ? toGranted(filter, handshake.capabilities) : filter;
    const uris = granted.resourceSubscriptions ?? [];
    const listener = (notification: Notification) => {
      if (isWanted(notification, filter)) tell(notification);
    };
    const finish = () => {
      peer.listeners.delete(listener);
      end(undefined);
    };
    peer.listeners.add(listener);
    stop.signal.addEventListener("abort", finish);
    channel.ended?.then(finish);
    try {
      if (!await listen() && channel.visit) {
        options.onWarning("Cannot hear of changes outside of calls: the server has no stream for them");
      }
      if (!recovers) (await visit)?.ended.then(finish);
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
      // What the server holds for this client ends with the connection.
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
    await (await visit?.catch(() => undefined))?.ended;
    if (speech.sessionId === undefined || !channel.leave) return;
    const late = new AbortController();
    const stopTimer = startTimer(LEAVE_MS, () => late.abort());
    const left = channel.leave({ headers: speech.toHeaders(), signal: late.signal }).finally(stopTimer);
    // A server that does not let its sessions be ended lets them expire.
    if (recovers) await left.catch(() => {});
    else await left;
  }

  return {
    get server() {
      return toFacts(handshake);
    },
    get handshake() {
      return handshake;
    },
    get sessionId() {
      return speech.sessionId;
    },
    request,
    watch,
    async setLogLevel(level) {
      logLevel = level;
      await request("logging/setLevel", { level });
    },
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

// What the server says it can tell of.
function toGranted(filter: Filter, capabilities: unknown): Filter {
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

function isWanted({ method, params }: Notification, filter: Filter): boolean {
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
