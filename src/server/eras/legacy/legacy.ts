/**
 * The legacy era, which serves the revisions with a handshake and sessions.
 *
 * @see specification/2025-11-25/basic/lifecycle
 */
import { type Incoming, toFailure, toNotification } from "../../../core/protocol/jsonrpc.ts";
import type { Change } from "../../visibility/changes.ts";
import type { Engine, Era } from "../../engine/era.ts";
import type { Link, Reply } from "../../call/link.ts";
import { wantsLevel } from "../../call/log.ts";
import { Pipeline } from "../../engine/pipeline.ts";
import { mayNotify } from "../../engine/watching.ts";
import { refuse, toErrorInfo } from "./error_replies.ts";
import { HttpSessions } from "./http_sessions.ts";
import { MessageServer } from "./message_server.ts";
import { PipedSessions } from "./piped_sessions.ts";
import type { DialectParts } from "./legacy_call.ts";
import { announce, endSubscriptions, type Session } from "./session_state.ts";
import { isVersion, toNoId, type Version, VERSIONS } from "./versions.ts";

/** `revisions` lists the revisions to serve; later revisions are ignored. */
export function legacyEra(engine: Engine, revisions: readonly string[] = VERSIONS): Era {
  return new LegacyEra(engine, VERSIONS.filter((each) => revisions.includes(each)));
}

class LegacyEra implements Era {
  readonly #engine: Engine;
  readonly #versions: readonly Version[];
  readonly #server: MessageServer;
  readonly #web: HttpSessions;
  readonly #piped: PipedSessions;
  readonly #onChange = (change: Change): void => this.#announce(change);

  constructor(engine: Engine, versions: readonly Version[]) {
    this.#engine = engine;
    this.#versions = versions;
    const parts: DialectParts = {
      engine,
      pipeline: new Pipeline(engine),
      versions,
      release: (call, retryMs) => this.#web.release(call, retryMs),
    };
    this.#server = new MessageServer(parts);
    this.#web = new HttpSessions(parts, this.#server, () => this.#watch());
    this.#piped = new PipedSessions(parts, this.#server);
  }

  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    const { http, headers, version } = link;
    const later = http ? undefined : this.#piped.serveAfter(message, link, () => this.accept(message, link));
    if (later) return later;
    if (message.kind === "broken") {
      this.#engine.core.observing?.refuse(link, { ...toErrorInfo(message), status: 400, reason: "message" });
      const session = http ? this.#web.find(link) : this.#piped.find(link);
      const stated = session ? session.client.version : version;
      return { text: toFailure(message.id ?? toNoId(stated), message), status: 400 };
    }
    if (typeof version === "string" && !isVersion(version, this.#versions)) {
      const supported = this.#versions.join(", ");
      const state = `the MCP-Protocol-Version header must be one of ${supported}`;
      return refuse(this.#engine.core, link, { message, version, status: 400, state, reason: "revision" });
    }
    const isFirst = message.kind === "request" && message.method === "initialize";
    if (http) {
      const id = headers?.get("mcp-session-id");
      return isFirst ? this.#web.initialize(message, link, id) : this.#web.accept(id, message, link);
    }
    if (!isFirst) return this.#piped.accept(message, link);
    this.#watch();
    return this.#piped.initialize(message, link);
  }

  attach(link: Link): Promise<Reply> {
    return this.#web.attach(link);
  }

  detach(link: Link): Promise<Reply> {
    return this.#web.detach(link);
  }

  evictIdle(): void {
    this.#web.evictIdle();
  }

  // Subscribe to changes only when the first client connects. Otherwise each earlier change would start a timer,
  // although no client could be notified.
  #watch(): void {
    this.#engine.changes.listeners.add(this.#onChange);
  }

  #announce(change: Change): void {
    const text = toAnnouncement(change);
    for (const session of [...this.#web.known, ...this.#piped.known]) {
      const isUnread = session.streams && !session.streams.listener;
      if (isUnread && change.kind !== "close") continue;
      if (change.kind === "log") {
        const { client } = session;
        const { principal } = this.#server.callOf(session);
        if (wantsLevel(client, change.level) && change.to({ client, principal })) session.notify(text, "log");
        continue;
      }
      // Close only the standalone stream. Running calls respond on their own streams.
      if (change.kind === "close") this.#endWith(session);
      else if (change.kind === "list" || session.watched.has(change.uri)) this.#notify(session, change, text);
    }
  }

  #endWith(session: Session): void {
    session.streams?.disconnect();
    announce(this.#engine.core, session, "ended", "closing");
    endSubscriptions(session);
  }

  #notify(session: Session, change: Change, text: string): void {
    const call = this.#server.callOf(session);
    const seen = mayNotify(this.#engine, change, call);
    if (typeof seen === "boolean") return void (seen && session.notify(text));
    seen.then((seen) => {
      // Decide again if another caller reads the notifications now.
      if (this.#server.callOf(session) !== call) this.#notify(session, change, text);
      else if (seen) session.notify(text);
    });
  }
}

function toAnnouncement(change: Change): string {
  if (change.kind === "close") return "";
  if (change.kind === "log") return change.text;
  return change.kind === "list"
    ? toNotification(`notifications/${change.feature}/list_changed`)
    : toNotification("notifications/resources/updated", { uri: change.uri });
}
