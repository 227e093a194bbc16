/**
 * What the calls of one session have in common, in all revisions with sessions.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject, type Params, type Request, type Result, toNotification, toSuccess } from "../../protocol/jsonrpc.ts";
import type { Call, CallHost, Carrier } from "../../core/call/call.ts";
import type { ClientFacts, ReadSession } from "../../core/call/context.ts";
import type { Engine } from "../../core/era.ts";
import { type Method, toMethod } from "../../core/visibility/feature.ts";
import type { InFlight } from "../../core/call/in_flight.ts";
import type { Reply } from "../../core/call/link.ts";
import type { Answered, Dialect, Pipeline } from "../../core/pipeline.ts";
import type { Question } from "../../core/call/question.ts";
import { createSessionReader, readSessionData } from "../../core/call/session_data.ts";
import { downgradeResult } from "./downgrade.ts";
import { toErrorReply } from "./error_replies.ts";
import { SessionInputs } from "./session_inputs.ts";
import { findSessionMethod } from "./session_methods.ts";
import type { Session } from "./session_state.ts";

/** The parts of the era that its dialects share. */
export interface DialectParts {
  readonly engine: Engine;
  readonly pipeline: Pipeline;
  /** Closes the connection but not the call, if the client can resume the stream. */
  release(call: Call, retryMs: number | undefined): void;
}

/** Sends what the calls of a client send. Its data are computed once. */
export class SessionCarrier implements Carrier {
  readonly host: CallHost;
  readonly session: (call: Call) => ReadSession;
  readonly #home: Partial<Pick<Session, "requests" | "data">>;
  readonly #parts: DialectParts;

  /** Creates the carrier of a session, or of a client that has none yet. */
  constructor(parts: DialectParts, home: Partial<Pick<Session, "requests" | "data">>) {
    const { core, host } = parts.engine;
    this.#parts = parts;
    this.#home = home;
    this.host = host;
    this.session = createSessionReader(core, (call) => (home.data ??= [readSessionData(core, call)])[0]);
  }

  notify({ link }: Call, method: string, params: Params): Promise<void> | undefined {
    return link.send(toNotification(method, params));
  }

  ask(call: Call, key: string, question: Question): Promise<unknown> {
    return this.#inputsOf(call).ask(key, () => this.#home.requests?.ask(call, question));
  }

  once(call: Call, key: string, make: () => unknown): Promise<unknown> {
    return this.#inputsOf(call).once(key, make);
  }

  release(call: Call, retryMs: number | undefined): void {
    this.#parts.release(call, retryMs);
  }

  subject(call: Call): string | undefined {
    return this.#parts.engine.registry.findSubject(call);
  }

  #inputsOf(call: Call): SessionInputs {
    if (call.inputs instanceof SessionInputs) return call.inputs;
    const inputs = new SessionInputs(this.#parts.engine.core);
    call.inputs = inputs;
    return inputs;
  }
}

/** The dialect of one session. */
export class SessionDialect implements Dialect {
  readonly carrier: Carrier;
  readonly inFlight: InFlight;
  readonly #session: Session;
  readonly #parts: DialectParts;

  /** Creates the dialect of a session. */
  constructor(parts: DialectParts, session: Session) {
    this.#parts = parts;
    this.#session = session;
    this.carrier = new SessionCarrier(parts, session);
    this.inFlight = session.inFlight;
  }

  find(name: string): Method | undefined {
    const method = this.#parts.engine.registry.methods.get(name);
    // Methods of extensions exist only in revisions without sessions.
    return method?.extension === undefined ? method : undefined;
  }

  read({ params }: Request): ClientFacts {
    const meta = params?._meta;
    const progressToken = isObject(meta) ? meta.progressToken : undefined;
    const { idCharacters } = this.#parts.engine.core.limits.request;
    // The token is repeated in every progress notification.
    if (typeof progressToken === "string" && progressToken.length > idCharacters) {
      const state = `Cannot serve the request: progressToken is longer than ${idCharacters} (request.idCharacters)`;
      throw new McpError(INVALID_PARAMS, state);
    }
    return this.#session.client;
  }

  // Without middleware these methods take no slot, so the server responds to a ping even at its limits.
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
    return downgradeResult(method, result, this.#session.client.version);
  }

  writeError(request: Answered, error: McpError): Reply {
    return toErrorReply(request, error, request.observed);
  }
}
