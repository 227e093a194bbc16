/**
 * Serves sessions over HTTP.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 */
import { toBusy } from "../../../core/protocol/errors.ts";
import { type Batch, type Id, isId, isObject, type Request } from "../../../core/protocol/jsonrpc.ts";
import { LazyModule } from "../../../core/protocol/lazy_module.ts";
import type { Call } from "../../call/call.ts";
import type { Link, Reply } from "../../call/link.ts";
import { countSubscriber } from "../../engine/watching.ts";
import { refuse, refuseBusy, UNKNOWN_SESSION } from "./error_replies.ts";
import { initialize } from "./initialize.ts";
import type { MessageServer, Readable } from "./message_server.ts";
import type { HttpSession, Sessions } from "./session.ts";
import type { DialectParts } from "./legacy_call.ts";
import type { Session } from "./session_state.ts";

interface Received {
  readonly message: Readable;
  readonly link: Link;
}

type FoundSession =
  | { readonly session: HttpSession; readonly refusal?: undefined }
  | { readonly session?: undefined; readonly refusal: Reply };

export class HttpSessions {
  readonly #parts: DialectParts;
  readonly #server: MessageServer;
  /** Subscribes the legacy era to changes of the server's lists and resources. */
  readonly #watch: () => void;
  /** Loaded with the first HTTP request, because this code would make the startup of a stdio server 50 % longer. */
  readonly #sessions: LazyModule<Sessions>;

  /** `watch` is called before each `initialize`. */
  constructor(parts: DialectParts, server: MessageServer, watch: () => void) {
    this.#parts = parts;
    this.#server = server;
    this.#watch = watch;
    const count = (session: Session, uri: string) => countSubscriber(parts.engine, uri, server.callOf(session));
    this.#sessions = new LazyModule(async () => new (await import("./session.ts")).Sessions({ parts, count }));
  }

  get known(): Iterable<Session> {
    return this.#sessions.loaded?.known ?? [];
  }

  /** Returns the session of a request if the session is in memory. */
  find(link: Link): Session | undefined {
    const id = link.headers?.get("mcp-session-id");
    return id ? this.#sessions.loaded?.find(id, link) : undefined;
  }

  /** The ids of evicted sessions stay valid. */
  evictIdle(): void {
    this.#sessions.loaded?.evictIdle();
  }

  release({ link }: Call, retryMs: number | undefined): void {
    if (this.#sessions.loaded?.isWrapped(link)) link.release(retryMs === undefined ? undefined : { retry: retryMs });
  }

  /** Serves a GET request, which opens the standalone stream or resumes a stream. */
  async attach(link: Link): Promise<Reply> {
    const { session, refusal } = await this.#find(link);
    if (!session) return refusal;
    const { account } = link;
    // The account can close this stream without losing events, because the client can reconnect and resume after the
    // last event that it received.
    const stream = account.openStream(() => {
      link.release();
      return true;
    });
    if (!stream) {
      const limits = "connections.streams, connections.streamsPerClient";
      const error = toBusy("open the stream: too many streams are open", limits);
      return refuseBusy(this.#parts.engine.core, link, session.client, error);
    }
    const { principal, http } = link;
    const caller = { principal, checks: http?.toChecks?.(principal) };
    const stopExpiry = this.#parts.engine.core.callers.watch(caller, () => link.release());
    try {
      return await session.home.attach(session, link);
    } finally {
      stream.end();
      stopExpiry();
    }
  }

  async detach(link: Link): Promise<Reply> {
    const { headers, version } = link;
    const id = headers?.get("mcp-session-id");
    if (typeof id !== "string") return this.#refuseBare(link);
    const { core } = this.#parts.engine;
    try {
      switch (await (await this.#sessions.load()).close(id, link)) {
        case "ended":
          return { status: 204 };
        case "waiting":
          throw toBusy("end the session on all instances: the store does not respond, so the end is still pending");
        case "full":
          throw toBusy("end the session: too many ended sessions are not stored yet, so this session stays open");
        case "unknown":
          return refuse(core, link, { ...UNKNOWN_SESSION, version });
      }
    } catch (error) {
      return refuseBusy(core, link, { version }, error);
    }
  }

  initialize(message: Request, link: Link, id: string | null | undefined): Promise<Reply> {
    this.#watch();
    return initialize(this.#parts, { message, link }, {
      prepare: async () => typeof id === "string" && !!await (await this.#sessions.load()).open(id, link),
      open: async (client, { data }) => {
        const sessions = await this.#sessions.load();
        return { "mcp-session-id": await sessions.create(client, link, data?.[0]) };
      },
    });
  }

  /** `id` is the session id in the request, if any. */
  accept(id: string | null | undefined, message: Readable, link: Link): Reply | Promise<Reply> {
    if (typeof id !== "string") return this.#acceptBare(message, link);
    const { loaded } = this.#sessions;
    const session = loaded?.find(id, link);
    return loaded && session
      ? this.#serveReplayed(loaded, session, { message, link })
      : this.#openAndServe(id, message, link);
  }

  async #find(link: Link): Promise<FoundSession> {
    const { headers, version } = link;
    const id = headers?.get("mcp-session-id");
    if (typeof id !== "string") return { refusal: this.#refuseBare(link) };
    this.#watch();
    const sessions = await this.#sessions.load();
    try {
      const session = await sessions.open(id, link);
      return session
        ? { session }
        : { refusal: refuse(this.#parts.engine.core, link, { ...UNKNOWN_SESSION, version }) };
    } catch (error) {
      return { refusal: refuseBusy(this.#parts.engine.core, link, { version }, error) };
    }
  }

  async #openAndServe(id: string, message: Readable, link: Link): Promise<Reply> {
    const { version } = link;
    let session;
    this.#watch();
    const sessions = await this.#sessions.load();
    try {
      session = await sessions.open(id, link);
    } catch (error) {
      return refuseBusy(this.#parts.engine.core, link, { message, version }, error);
    }
    return session
      ? await this.#serveReplayed(sessions, session, { message, link })
      : refuse(this.#parts.engine.core, link, { ...UNKNOWN_SESSION, message, version });
  }

  // Some clients lose their session id. Serve the requests of such a client without a session, as if the client had
  // declared no capabilities.
  #acceptBare(message: Readable, link: Link): Reply | Promise<Reply> {
    if (this.#parts.engine.core.requiresSession) return this.#refuseBare(link, message);
    return this.#server.serve(this.#server.toBare(link), message, link);
  }

  #refuseBare(link: Link, message?: Readable): Reply {
    const rejected = { message, version: link.version, reason: "session" } as const;
    if (this.#parts.engine.core.requiresSession) {
      return refuse(this.#parts.engine.core, link, {
        ...rejected,
        status: 400,
        state: "the Mcp-Session-Id header is missing; initialize first",
      });
    }
    const state = "the Mcp-Session-Id header is missing; use POST";
    return {
      ...refuse(this.#parts.engine.core, link, { ...rejected, status: 405, state }),
      headers: { allow: "POST" },
    };
  }

  // If the server sends a stream, the client can resume the stream over another connection. The responses to a batch
  // share one stream.
  #serveReplayed(sessions: Sessions, session: HttpSession, { message, link }: Received): Reply | Promise<Reply> {
    if (message.kind !== "request" && message.kind !== "batch") return this.#server.serve(session, message, link);
    const replayed = sessions.wrap(session, { message, link });
    const reply = this.#server.serve(session, message, replayed);
    const id = message.kind === "request" ? message.id : findId(message);
    return reply instanceof Promise ? reply.then((reply) => replayed.finish(reply, id)) : replayed.finish(reply, id);
  }
}

function findId({ items }: Batch): Id | undefined {
  for (const item of items) if (isObject(item) && "method" in item && isId(item.id)) return item.id;
}
