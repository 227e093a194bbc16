/**
 * One call in a session, with the state that its requests to the client need.
 */
import { type Params, toNotification } from "../../../core/protocol/jsonrpc.ts";
import { Call, type CallHome, type CallHost } from "../../call/call.ts";
import type { OnceOptions, ReadSession } from "../../call/context.ts";
import type { Link } from "../../call/link.ts";
import type { Engine } from "../../engine/era.ts";
import type { Pipeline } from "../../engine/pipeline.ts";
import type { Question } from "../../call/question.ts";
import { createSessionReader, readSessionData } from "../../call/session_data.ts";
import { SessionInputs } from "./session_inputs.ts";
import { type Session, toShortId } from "./session_state.ts";
import type { Version } from "./versions.ts";

export interface DialectParts {
  readonly engine: Engine;
  readonly pipeline: Pipeline;
  /** The served revisions, newest first. The first revision is offered if a client requests another revision. */
  readonly versions: readonly Version[];
  /** Closes the connection of a call if the client can resume the stream. The call continues. */
  release(call: Call, retryMs: number | undefined): void;
}

export class SessionHome implements CallHome {
  readonly host: CallHost;
  readonly session: (call: Call) => ReadSession;
  readonly parts: DialectParts;
  readonly requests?: Session["requests"];
  readonly opened: object;
  /** The part of the session id that observers receive. */
  readonly sessionId?: string;

  constructor(parts: DialectParts, session: Partial<Pick<Session, "requests" | "data" | "id">>) {
    const { core, host } = parts.engine;
    this.parts = parts;
    this.requests = session.requests;
    this.opened = session;
    this.sessionId = session.id && toShortId(session.id);
    this.host = host;
    this.session = createSessionReader(core, (call) => (session.data ??= [readSessionData(core, call)])[0]);
  }

  subject(call: Call): string | undefined {
    return this.parts.engine.registry.findSubject(call);
  }
}

export class LegacyCall extends Call {
  static readonly #model: LegacyCall = new LegacyCall(
    { host: {} } as SessionHome, // The cast is safe, because the constructor reads only the host.
    {} as Link, // The cast is safe, because the constructor does not read the link.
    { kind: "request", id: 0, method: "", weight: 0 },
    { version: "", capabilities: {} },
  );
  declare readonly home: SessionHome;
  /** Declared without a value, because most calls send no request to the client. */
  declare inputs?: SessionInputs;

  notify(method: string, params: Params): Promise<void> | undefined {
    return this.link.send(toNotification(method, params));
  }

  askClient(key: string, question: Question): Promise<unknown> {
    return this.#toInputs().ask(key, async () => await this.home.requests?.ask(this, question));
  }

  makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#toInputs().once(key, make, options);
  }

  override release(retryMs: number | undefined): void {
    this.home.parts.release(this, retryMs);
  }

  #toInputs(): SessionInputs {
    return this.inputs ??= new SessionInputs(this.home.parts.engine.core, this);
  }
}
