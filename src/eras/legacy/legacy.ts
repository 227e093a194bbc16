/**
 * The legacy era: revisions that begin with a handshake and keep a session, translated to calls.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { INVALID_REQUEST, isMcpError, McpError } from "../../protocol/errors.ts";
import {
  type Batch,
  type Id,
  type Incoming,
  type Notification,
  type Request,
  type Result,
  toFailure,
  toMessage,
  toNotification,
  toSuccess,
} from "../../protocol/jsonrpc.ts";
import { Call, type Carrier, LATER, type Link, type Reply, type Scope } from "../../core/call.ts";
import type { Change, Core, Era, Outcome } from "../../core/core.ts";
import { BUSY } from "../../core/scheduler.ts";
import { newsTeller } from "../../core/changes.ts";
import type { Method, Runner } from "../../core/feature.ts";
import { toUnknownMethod } from "../../core/registry.ts";
import { readOffer, toAgreement } from "./handshake.ts";
import { lowerError, lowerResult } from "./downgrade.ts";
import { runSessionMethod } from "./session_methods.ts";
import { createSession, type Session, Sessions } from "./session.ts";
import { hasBatches, isVersion, type Version, VERSIONS } from "./versions.ts";

/** Serves revisions up to 2025-11-25. */
export function legacyEra(core: Core): Era {
  const sessions = new Sessions(core);
  // Over a pipe there is one session, as long as the pipe.
  const piped = new Map<Scope, Session>();
  // By scope and not by call: a weak map that every call enters makes each collection of garbage slower.
  const sessionOf = new WeakMap<Scope, Session>();
  const made = new WeakMap<Call, Map<string, Promise<unknown>>>();
  // Streams that no request asked for.
  let visits = 0;
  const texts = new Map<Version, WeakMap<Result, string>>(VERSIONS.map((version) => [version, new WeakMap()]));

  const carrier: Carrier = {
    notify: ({ link }, method, params) => link.send(toNotification(method, params)),
    ask: async (call, _key, question) => await sessionOf.get(call.scope)?.peer.ask(call, question),
    once(call, key, make) {
      const values = made.get(call) ?? new Map<string, Promise<unknown>>();
      made.set(call, values);
      const value = values.get(key) ?? Promise.resolve().then(make);
      values.set(key, value);
      return value;
    },
  };

  // Listens from the first client on: what changes before, while a server is being made, sets no timer.
  function hear(change: Change): void {
    const text = toNews(change);
    for (const session of [...sessions.known, ...piped.values()]) {
      // Answers of calls that still run have their own streams.
      if (change.kind === "close") session.streams.leave();
      else if (change.kind === "list" || session.watched.has(change.uri)) tellIfSeen(session, change, text);
    }
  }

  function tellIfSeen(session: Session, change: Change, text: string): void {
    const seen = core.registry.sees(change, session.watcher ??= toWatcher(session));
    if (seen === true) session.tell(text);
    else if (seen) seen.then((seen) => seen && session.tell(text));
  }

  /** A call that stands for a session's client where no request of it runs: `allow` is asked about it. */
  function toWatcher({ client, caller: principal, scope }: Session): Call {
    const link: Link = { scope, principal, streams: false, send: () => undefined, open() {}, release() {} };
    return new Call(carrier, link, { kind: "request", id: 0, method: "notifications" }, client, scope);
  }

  function accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    if (message.kind === "broken") return { text: toFailure(message.id ?? null, message), status: 400 };
    const { http, headers, version } = link;
    if (typeof version === "string" && !isVersion(version)) {
      const supported = VERSIONS.join(", ");
      return refuse(message, 400, `MCP-Protocol-Version must be one of ${supported}`);
    }
    const id = headers?.get("mcp-session-id");
    if (message.kind === "request" && message.method === "initialize") return initialize(message, link, id);
    if (!http) return acceptPiped(message, link);
    if (typeof id !== "string") {
      return refuse(message, 400, "it has no Mcp-Session-Id; initialize first");
    }
    const session = sessions.find(id, link.principal);
    return session ? serve(session, message, link) : openAndServe(id, message, link);
  }

  async function openAndServe(id: string, message: Exclude<Incoming, { kind: "broken" }>, link: Link): Promise<Reply> {
    let session;
    // No stream yet, however long it takes: a stream has status 200 for good, and a session that is unknown has 404.
    link.quick = true;
    core.listeners.add(hear);
    try {
      session = await sessions.open(id, link.principal);
    } catch (error) {
      return toBusyReply(message, error);
    }
    link.quick = false;
    return session ? await serve(session, message, link) : refuse(message, 404, UNKNOWN_SESSION);
  }

  function acceptPiped(message: Exclude<Incoming, { kind: "broken" }>, link: Link): Reply | Promise<Reply> {
    const session = piped.get(link.scope);
    if (session) return serve(session, message, link);
    // On a pipe a cancellation does not say which era it is of.
    if (message.kind === "notification") return takeNote(link.scope, message);
    if (message.kind === "request" && message.method === "ping") return { text: toSuccess(message.id, "{}") };
    return refuse(message, 400, "initialize first");
  }

  async function initialize(message: Request, link: Link, id: string | null | undefined): Promise<Reply> {
    link.quick = true;
    core.listeners.add(hear);
    try {
      const isKnown = link.http
        ? typeof id === "string" && await sessions.open(id, link.principal)
        : piped.has(link.scope);
      if (isKnown) throw new McpError(INVALID_REQUEST, "Cannot initialize: this session is initialized already");
      const client = readOffer(message.params);
      const text = toSuccess(message.id, JSON.stringify(toAgreement(core, client)));
      if (link.http) return { text, headers: { "mcp-session-id": await sessions.create(client, link.principal) } };
      const session = createSession(core, client, { caller: link.principal });
      piped.set(link.scope, { ...session, scope: link.scope, tell: newsTeller((text) => link.send(text)) });
      link.onClose = () => piped.delete(link.scope);
      return { text };
    } catch (error) {
      const known = isMcpError(error) ? error : core.report(error);
      return { text: toFailure(message.id, known), status: 400 };
    }
  }

  function serve(
    session: Session,
    message: Exclude<Incoming, { kind: "broken" }>,
    link: Link,
  ): Reply | Promise<Reply> {
    switch (message.kind) {
      case "request":
        return answer(session, message, link);
      case "batch":
        return serveBatch(session, message, link);
      case "response":
        session.peer.answer(message);
        return {};
      case "notification":
        return takeNote(session.scope, message);
    }
  }

  function answer(session: Session, message: Request, link: Link): Reply | Promise<Reply> {
    const method = core.registry.methods.get(message.method);
    const call = new Call(carrier, link, message, session.client, session.scope);
    try {
      const reply = method ? answerCall(session, call, method) : answerSession(session, call);
      return reply instanceof Promise ? reply.catch((error) => toFailed(call, error)) : reply;
    } catch (error) {
      return toFailed(call, error);
    }
  }

  function toFailed(call: Call, error: unknown): Reply {
    return toErrorReply(call, isMcpError(error) ? error : core.report(error, call));
  }

  function answerSession(session: Session, call: Call): Reply {
    if (!runSessionMethod(core, session, call)) throw toUnknownMethod(call.method);
    return { text: toSuccess(call.id, "{}") };
  }

  function answerCall(session: Session, call: Call, method: Method): Reply | Promise<Reply> {
    const { link } = call;
    // The answers of a batch travel together.
    if (link.http) link.journal ??= session.streams.create();
    if (method.asks && !sessionOf.has(call.scope)) sessionOf.set(call.scope, session);
    const runner = method.find(call);
    return runner instanceof Promise
      ? runner.then((runner) => run(session, call, method, runner))
      : run(session, call, method, runner);
  }

  function run(session: Session, call: Call, method: Method, runner: Runner): Reply | Promise<Reply> {
    const outcome = core.run(call, runner);
    return outcome instanceof Promise
      ? outcome.then((outcome) => toReply(session, call, method, outcome))
      : toReply(session, call, method, outcome);
  }

  function toReply(session: Session, call: Call, method: Method, outcome: Outcome | undefined): Reply {
    if (!outcome) return {};
    const { result, error } = outcome;
    if (error) return toErrorReply(call, error);
    const { version } = session.client;
    try {
      const kept = method.stable ? texts.get(version) : undefined;
      let text = kept?.get(result);
      if (!text) {
        text = JSON.stringify(lowerResult(call.method, result, version));
        if (text.length > core.limits.resultBytes) {
          throw new Error(`Cannot send the result: it is longer than ${core.limits.resultBytes} (resultBytes)`);
        }
        kept?.set(result, text);
      }
      return { text: toSuccess(call.id, text) };
    } catch (error) {
      return toErrorReply(call, core.report(error, call));
    }
  }

  // One revision lets several messages come in one array, and has the answers go back in one.
  async function serveBatch(session: Session, { items }: Batch, link: Link): Promise<Reply> {
    const messages = items.map((item) => toMessage(item, core.limits));
    const ids = messages.flatMap((message) => message.kind === "request" ? [`${typeof message.id} ${message.id}`] : []);
    const problem = !hasBatches(session.client.version)
      ? "send one message at a time"
      : !items.length
      ? "the batch is empty"
      : items.length > core.limits.batch
      ? `the batch has more than ${core.limits.batch} messages (batch)`
      : new Set(ids).size < ids.length
      ? "two requests of the batch have the same id"
      : messages.some((message) => message.kind === "request" && message.method === "initialize")
      ? "initialize cannot be part of a batch"
      : undefined;
    if (problem) return refuse({ kind: "batch", items }, 400, problem);
    const replies = await Promise.all(
      messages.map((message) =>
        message.kind === "broken" ? { text: toFailure(message.id ?? null, message) } : serve(session, message, link)
      ),
    );
    const answers = replies.flatMap(({ text }) => text ?? []);
    return answers.length ? { text: `[${answers.join(",")}]` } : {};
  }

  async function find(link: Link): Promise<Session | Reply> {
    const id = link.headers?.get("mcp-session-id");
    if (typeof id !== "string") return refuse(undefined, 400, "it has no Mcp-Session-Id");
    core.listeners.add(hear);
    try {
      return await sessions.open(id, link.principal) ?? refuse(undefined, 404, UNKNOWN_SESSION);
    } catch (error) {
      return toBusyReply(undefined, error);
    }
  }

  async function attach(link: Link): Promise<Reply> {
    const session = await find(link);
    if (!("scope" in session)) return session;
    const { streams } = core.limits;
    if (visits >= streams) {
      return toBusyReply(undefined, new McpError(BUSY, `Cannot open the stream: ${streams} are open (streams)`));
    }
    const place = link.headers?.get("last-event-id") ?? null;
    visits++;
    try {
      await session.streams.attach(link, place);
      return {};
    } catch (error) {
      if (!isMcpError(error)) throw error;
      return { text: toFailure(null, error), status: place === null ? 409 : 400 };
    } finally {
      visits--;
    }
  }

  async function detach(link: Link): Promise<Reply> {
    const session = await find(link);
    if (!("scope" in session)) return session;
    sessions.end(session);
    return { status: 204 };
  }

  return { accept, attach, detach };
}

const UNKNOWN_SESSION = "the session is unknown or has ended; initialize again";

function takeNote(scope: Scope, note: Notification): Reply {
  scope.note(note);
  return {};
}

function refuse(message: Incoming | undefined, status: number, state: string): Reply {
  const id = message?.kind === "request" ? message.id : null;
  return { text: toFailure(id, new McpError(INVALID_REQUEST, `Cannot serve the request: ${state}`)), status };
}

// For what has nothing to do with the client that hears of it: it may come back as it is.
function toBusyReply(message: Incoming | undefined, error: unknown): Reply {
  if (!isMcpError(error)) throw error;
  const text = toFailure(message?.kind === "request" ? message.id : null, error);
  return { text, status: 503, headers: LATER };
}

function toErrorReply({ id, method }: { readonly id: Id; readonly method: string }, error: McpError): Reply {
  const text = toFailure(id, lowerError(method, error));
  return error.code === BUSY ? { text, status: 429, headers: LATER } : { text };
}

function toNews(change: Change): string {
  if (change.kind === "close") return "";
  return change.kind === "list"
    ? toNotification(`notifications/${change.feature}/list_changed`)
    : toNotification("notifications/resources/updated", { uri: change.uri });
}
