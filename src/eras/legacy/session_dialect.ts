/**
 * What the calls of one session have in common, in all revisions with sessions.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject, type Request, type Result, toSuccess } from "../../protocol/jsonrpc.ts";
import type { Call } from "../../core/call/call.ts";
import type { ClientFacts } from "../../core/call/context.ts";
import { type Method, toMethod } from "../../core/visibility/feature.ts";
import type { Link, Reply } from "../../core/call/link.ts";
import type { Answered, Dialect } from "../../core/pipeline.ts";
import { downgradeResult } from "./downgrade.ts";
import { toErrorReply } from "./error_replies.ts";
import { type DialectParts, LegacyCall, SessionHome } from "./legacy_call.ts";
import { findSessionMethod } from "./session_methods.ts";
import type { Session } from "./session_state.ts";

/** The dialect of one session. */
export class SessionDialect implements Dialect {
  readonly #home: SessionHome;
  readonly #session: Session;
  readonly #parts: DialectParts;

  /** Creates the dialect of a session. */
  constructor(parts: DialectParts, session: Session) {
    this.#parts = parts;
    this.#session = session;
    this.#home = new SessionHome(parts, session);
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

  open(message: Request, link: Link, client: ClientFacts): LegacyCall {
    return new LegacyCall(this.#home, link, message, client, this.#session.inFlight);
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
