/**
 * A client that shakes hands first and keeps a session.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @see specification/2025-11-25/basic/transports
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { ClientFacts } from "../core/context.ts";
import type { Visit } from "./channel.ts";
import type { Client, Outcome, Peer, RequestOptions, Speech } from "./peer.ts";
import { createFeed, type Filter, type Notification, type Subscription } from "./subscription.ts";

/** What a legacy client adds to messages: over HTTP, which session they belong to. */
export class LegacySpeech implements Speech {
  readonly saysCancelled = true;
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

/** Shakes hands; a legacy client at the end of a connection. */
export async function legacyClient(peer: Peer, speech: LegacySpeech, facts: ClientFacts): Promise<Client> {
  const { channel } = peer;
  const { version: protocolVersion, capabilities, info: clientInfo, logLevel } = facts;
  const { result: handshake, headers } = await request("initialize", { protocolVersion, capabilities, clientInfo });
  speech.version = String(handshake.protocolVersion);
  speech.sessionId = headers?.get("mcp-session-id") ?? undefined;
  await peer.notify("notifications/initialized");
  if (logLevel) await request("logging/setLevel", { level: logLevel });
  const stop = new AbortController();
  let visit: Promise<Visit> | undefined;

  function request(method: string, params: Params, options?: RequestOptions): Promise<Outcome> {
    return peer.request(method, params, options);
  }

  // One stream serves all subscriptions: a server tells each thing on only one.
  async function subscribe(filter: Filter): Promise<Subscription> {
    const feed = createFeed();
    const uris = filter.resourceSubscriptions ?? [];
    const listener = (notification: Notification) => {
      if (isWanted(notification, filter)) feed.push(notification);
    };
    peer.listeners.add(listener);
    const end = (result?: Result) => {
      peer.listeners.delete(listener);
      feed.end(result);
    };
    try {
      visit ??= channel.visit?.({ headers: speech.toHeaders(), signal: stop.signal, hear: peer.hear });
      (await visit)?.ended.then(() => end());
      for (const uri of uris) await request("resources/subscribe", { uri });
    } catch (error) {
      end();
      throw error;
    }
    return feed.toSubscription(filter, async () => {
      end();
      for (const uri of uris) await request("resources/unsubscribe", { uri });
    });
  }

  async function close(): Promise<void> {
    stop.abort(new DOMException("The connection was closed", "AbortError"));
    await (await visit?.catch(() => undefined))?.ended;
    if (speech.sessionId !== undefined) await channel.leave?.({ headers: speech.toHeaders() });
  }

  return { handshake, sessionId: speech.sessionId, request, subscribe, close };
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
