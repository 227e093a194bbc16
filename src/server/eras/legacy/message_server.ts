/**
 * Serves the messages of a session, in all revisions with sessions.
 *
 * @see specification/2025-11-25/basic/lifecycle
 */
import { INVALID_PARAMS, McpError, MISSING_CAPABILITY, toBusy, withLimits } from "../../../core/protocol/errors.ts";
import {
  type Batch,
  type Broken,
  type Incoming,
  isObject,
  type Notification,
  type Request,
  type Response,
  type Result,
  toSuccess,
} from "../../../core/protocol/jsonrpc.ts";
import type { Call } from "../../call/call.ts";
import type { ClientInfo, Principal } from "../../call/context.ts";
import { type Link, type Reply, toSilent } from "../../call/link.ts";
import type { HandlerCall } from "../../call/handler_call.ts";
import { type Method, toMethod } from "../../visibility/feature.ts";
import type { Answered, Dialect } from "../../engine/pipeline.ts";
import { serveBatch } from "./batch.ts";
import { mayCall } from "./call_access.ts";
import { findQuirk } from "../client_quirks.ts";
import { downgradeResult } from "./downgrade.ts";
import { refuseAccess, refuseBusy, toErrorInfo, toErrorReply } from "./error_replies.ts";
import { type DialectParts, LegacyCall, SessionHome } from "./legacy_call.ts";
import { findSessionMethod } from "./session_methods.ts";
import type { Asking } from "./server_requests.ts";
import { createSession, type Session, toShortId } from "./session_state.ts";
import { isVersion, UNSTATED_VERSION } from "./versions.ts";

export type Readable = Exclude<Incoming, Broken>;

interface Relayed {
  readonly message: Response | Notification;
  readonly link: Link;
  readonly mayAnswer?: (call: HandlerCall) => Promise<boolean>;
}

const ACCEPTED = 202;

export class MessageServer {
  readonly #parts: DialectParts;

  constructor(parts: DialectParts) {
    this.#parts = parts;
  }

  serve(session: Session, message: Readable, link: Link): Reply | Promise<Reply> {
    session.watch?.receive(message);
    switch (message.kind) {
      case "request":
        return this.#parts.pipeline.answer(this.#dialectOf(session), message, link);
      case "batch":
        return this.#serveBatch(session, message, link);
      case "response":
        return this.#receiveResponse(session, message, link);
      case "notification":
        this.observe(message, link, session);
        if (!session.inFlight.notify(message)) {
          // A cancellation does not show to which era its call belongs.
          if (!link.inFlight.notify(message)) session.watch?.findLostCancellation();
          return session.shared ? this.#relay(session, { message, link }) : {};
        }
        return this.#notifyExtension(session, message, link) ?? {};
    }
  }

  #notifyExtension(session: Session, message: Notification, link: Link): Promise<Reply> | undefined {
    const { registry, scheduler } = this.#parts.engine;
    const { client } = session;
    return registry.compiled("extensions")?.notify?.(message, {
      hasSession: true,
      open: (request, client) => this.#dialectOf(session).open(request, link, client),
      client,
      executor: scheduler,
    });
  }

  // Passes a response to the call that waits for it. The requests of a session can have tokens with different rights, so
  // the sender needs the rights to this call.
  #receiveResponse(session: Session, message: Response, link: Link): Reply | Promise<Reply> {
    const asking = session.requests.find(message);
    if (!asking && !session.shared) return session.watch?.findLostAnswer(message.id).then(() => ({})) ?? {};
    const isSameCaller = asking && isFromSameCaller(asking, link);
    if (!isSameCaller || this.#parts.engine.core.admit) return this.#checkResponse(session, message, link);
    session.requests.answer(message);
    return {};
  }

  async #checkResponse(session: Session, message: Response, link: Link): Promise<Reply> {
    const { client, requests } = session;
    const { core } = this.#parts.engine;
    const mayAnswer = (call: HandlerCall) =>
      mayCall(this.#parts, { session, link }, [call], (error) => {
        // The client gets the same reply as for an unknown id.
        core.observing?.refuse(link, {
          ...toErrorInfo(error),
          status: ACCEPTED,
          reason: "params",
          method: call.method,
        });
      });
    requests.checking++;
    try {
      if (requests.checking > core.limits.calls.answersChecked) {
        throw toBusy("take the answer: too many answers are being checked", "calls.answersChecked");
      }
      await core.admit?.({ method: "response", link, client, pathParams: core.pathParams });
      const asking = requests.find(message);
      if (!asking) return await this.#relay(session, { message, link, mayAnswer });
      if (isFromSameCaller(asking, link) || await mayAnswer(asking.call)) requests.answer(message);
      return {};
    } catch (error) {
      return refuseAccess(core, link, client, error);
    } finally {
      requests.checking--;
    }
  }

  // Forward the message, because the call to which the message refers may run on another instance.
  async #relay({ client, shared }: Session, { message, link, mayAnswer }: Relayed): Promise<Reply> {
    if (!shared || await shared.relay(message, mayAnswer)) return {};
    const busy = toBusy("forward the message: the store does not respond, or the client has sent too many messages");
    return refuseBusy(this.#parts.engine.core, link, client, busy);
  }

  observe({ method }: Notification, link: Link, session?: Session): void {
    const { id, client } = session ?? {};
    this.#parts.engine.core.observing?.notify(method, link, { ...client, session: id && toShortId(id) });
  }

  #dialectOf(session: Session): Dialect {
    return session.dialect ??= new SessionDialect(this.#parts, session);
  }

  #serveBatch(session: Session, batch: Batch, link: Link): Promise<Reply> {
    const serve = (message: Readable) => this.serve(session, message, link);
    return serveBatch({ core: this.#parts.engine.core, session, link, batch, serve });
  }

  /**
   * Returns the call that represents the session's client between requests. `allow` receives this call when it decides
   * which notifications the client gets. Its principal is the caller that reads the notifications: over HTTP, the caller
   * that has opened the standalone stream, because the requests of a session can have tokens with different rights.
   */
  callOf(session: Session): Call {
    const { caller, streams } = session;
    const listener = streams?.listener;
    const principal = listener ? listener.principal : caller;
    const known = session.sessionCall;
    return known && known.principal === principal
      ? known
      : session.sessionCall = this.#toSessionCall(session, principal);
  }

  #toSessionCall(session: Session, principal: Principal | undefined): Call {
    const { client, inFlight, account, transport } = session;
    const link = toSilent({ inFlight, account, principal, transport });
    const message: Request = { kind: "request", id: 0, method: "notifications", weight: 0 };
    const call = this.#dialectOf(session).open(message, link, client);
    // The call lasts as long as the session.
    call.subscribe();
    return call;
  }

  /** Creates a session for a single request without a session id. */
  toBare({ inFlight, account, principal, version, transport }: Link): Session {
    const { versions } = this.#parts;
    const assumed = versions.includes(UNSTATED_VERSION) ? UNSTATED_VERSION : versions[0];
    const client = { version: isVersion(version, versions) ? version : assumed, capabilities: {} };
    return createSession(this.#parts.engine.core, client, {
      account,
      notify: () => {},
      caller: principal,
      inFlight,
      transport,
    });
  }
}

class SessionDialect implements Dialect {
  readonly #home: SessionHome;
  readonly #session: Session;
  readonly #parts: DialectParts;

  constructor(parts: DialectParts, session: Session) {
    this.#parts = parts;
    this.#session = session;
    this.#home = new SessionHome(parts, session);
  }

  find(name: string): Method | undefined {
    const method = this.#parts.engine.registry.methods.get(name);
    // An extension's method exists in revisions with sessions only if `inSessions` is set.
    return method?.extension === undefined || method.inSessions ? method : undefined;
  }

  read({ params }: Request): ClientInfo {
    const meta = params?._meta;
    const progressToken = isObject(meta) ? meta.progressToken : undefined;
    const { idCharacters } = this.#parts.engine.core.limits.request;
    // Limit the length of the token, because every progress notification repeats the token.
    if (typeof progressToken === "string" && progressToken.length > idCharacters) {
      const limit = "request.idCharacters";
      const text = `Cannot serve the request: progressToken is longer than ${idCharacters} characters (${limit})`;
      throw withLimits(new McpError(INVALID_PARAMS, text), limit);
    }
    return this.#session.client;
  }

  open(message: Request, link: Link, client: ClientInfo): LegacyCall {
    return new LegacyCall(this.#home, link, message, client, this.#session.inFlight);
  }

  // Without middleware, methods such as `ping` take no slot, so that the server responds even when all slots are taken.
  serve(call: Call): Reply | Promise<Reply> | undefined {
    const { engine, pipeline } = this.#parts;
    const runner = findSessionMethod(engine, this.#session, call);
    if (!runner) return;
    if (engine.core.hasMiddleware) return pipeline.run(this, { call, method: toMethod(runner), runner });
    call.observed?.start();
    const done = runner.run(call);
    const finish = () => {
      call.observed?.succeed({});
      return { text: toSuccess(call.id, "{}") };
    };
    return done instanceof Promise ? done.then(finish) : finish();
  }

  toTextName({ client }: Call): string {
    return client.version;
  }

  translate({ method }: Call, result: Result): Result {
    const { client } = this.#session;
    const translated = downgradeResult(method, result, client.version);
    return method === "tools/call" ? findQuirk(client)?.toolResult?.(translated) ?? translated : translated;
  }

  writeError(request: Answered, error: McpError): Reply {
    if (error.code === MISSING_CAPABILITY && hasRunTool(request)) return toErrorResult(request, error);
    return toErrorReply(request, error, request.observed);
  }
}

// Without HTTP, the same principal object means that the call came over the same connection with the same credentials.
function isFromSameCaller({ principal }: Asking, link: Link): boolean {
  return !link.http && principal === link.principal;
}

/** Tests whether a request has run a tool. A request that the server refuses before the tool runs has not ended. */
function hasRunTool(request: Answered): boolean {
  return request instanceof LegacyCall && request.ended && request.method === "tools/call";
}

// Return a result instead of an error, so that the model learns what is missing. Some clients take an error for a lost
// connection, and then run the tool again in a new session.
function toErrorResult({ id, observed }: Answered, { message }: McpError): Reply {
  const result = { content: [{ type: "text", text: message }], isError: true };
  observed?.succeed(result);
  return { text: toSuccess(id, JSON.stringify(result)) };
}
