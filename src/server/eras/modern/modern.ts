/**
 * The modern era, in which requests do not depend on earlier requests.
 *
 * @see specification/2026-07-28/basic/versioning
 */
import {
  INTERNAL_ERROR,
  INVALID_REQUEST,
  type Limited,
  type McpError,
  METHOD_NOT_FOUND,
} from "../../../core/protocol/errors.ts";
import {
  type Id,
  type Incoming,
  readResultType,
  type Request,
  type Result,
  toFailure,
} from "../../../core/protocol/jsonrpc.ts";
import { narrowHints } from "../../../core/protocol/cache_hints.ts";
import { isScopeError } from "../../call/scopes.ts";
import type { Call } from "../../call/call.ts";
import type { Engine, Era } from "../../engine/era.ts";
import type { ClientInfo } from "../../call/context.ts";
import type { Method } from "../../visibility/feature.ts";
import { type HeaderReader, type Link, type Reply, toHints } from "../../call/link.ts";
import type { RefusalReason } from "../../call/observer.ts";
import { type Answered, type Dialect, type Found, Pipeline } from "../../engine/pipeline.ts";
import { createSessionReader } from "../../call/session_data.ts";
import { discover } from "./discover.ts";
import type { HeaderParam } from "../../../core/schema/header_params.ts";
import { readEnvelope } from "./envelope.ts";
import { endsWithResult, listen } from "./listen.ts";
import { checkParamHeaders } from "./param_headers.ts";
import { META_CAPABILITIES, META_SERVER, VERSION } from "./meta_keys.ts";
import { isPlain, ModernCall, type ModernHome } from "./modern_call.ts";

/** Creates the era of revision 2026-07-28. `revisions` are all revisions that the server serves. */
export function loadedEra(engine: Engine, revisions: readonly string[]): Era {
  return new ModernEra(engine, revisions);
}

/** The error for a message that is rejected before it becomes a call. */
interface Refused extends Limited {
  readonly id?: Id;
  readonly code: number;
  readonly message: string;
  readonly reason: RefusalReason;
}

class ModernEra implements Era, Dialect {
  readonly #home: ModernHome;
  readonly #engine: Engine;
  readonly #pipeline: Pipeline;
  readonly #own: ReadonlyMap<string, Method>;
  /** The start of every result's JSON text: the fields that are the same in all results. */
  readonly #head: string;
  readonly #revisions: readonly string[];

  constructor(engine: Engine, revisions: readonly string[]) {
    this.#engine = engine;
    this.#revisions = revisions;
    this.#pipeline = new Pipeline(engine);
    this.#home = {
      engine,
      host: engine.host,
      hasResultTypes: true,
      session: createSessionReader(engine.core),
      subject: (call) => engine.registry.findSubject(call),
    };
    this.#own = new Map([["server/discover", discover(engine)]]);
    this.#head = `{"resultType":"complete","_meta":${JSON.stringify({ [META_SERVER]: engine.core.info })}`;
  }

  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    if (message.kind === "request") return this.#pipeline.answer(this, message, link);
    if (message.kind === "broken") return this.#refuse(link, { ...message, reason: "message" });
    if (message.kind === "notification") {
      const { core, registry, scheduler } = this.#engine;
      core.observing?.notify(message.method, link, { version: VERSION });
      link.inFlight.notify(message);
      const { [META_CAPABILITIES]: capabilities } = Object(message.params?._meta);
      return registry.compiled("extensions")?.notify?.(message, {
        open: (request, client) => this.open(request, link, client),
        client: { version: VERSION, capabilities },
        executor: scheduler,
      }) ?? {};
    }
    const state = `Cannot accept a ${message.kind}: send one request or notification`;
    return this.#refuse(link, { reason: "message", code: INVALID_REQUEST, message: state });
  }

  #refuse(link: Link, refused: Refused): Reply {
    this.#engine.core.observing?.refuse(link, { ...refused, status: 400 });
    return { text: toFailure(refused.id, refused), status: 400 };
  }

  find(name: string): Method | undefined {
    return this.#own.get(name) ?? this.#engine.registry.methods.get(name);
  }

  read(message: Request, link: Link, method: Method | undefined): ClientInfo {
    return readEnvelope(message, link, { method, core: this.#engine.core, revisions: this.#revisions });
  }

  open(message: Request, link: Link, client: ClientInfo): Call {
    return new ModernCall(this.#home, link, message, client);
  }

  serve(call: Call): Promise<Reply> | undefined {
    if (call.method === "subscriptions/listen") return this.#listen(call);
  }

  async #listen(call: Call): Promise<Reply> {
    const reply = await listen(this.#engine, call);
    if (endsWithResult(call)) call.observed?.succeed({});
    else call.observed?.cancel();
    return reply;
  }

  checkParams({ params }: Call, wanted: readonly HeaderParam[], headers: HeaderReader): void {
    checkParamHeaders(wanted, headers, params.arguments);
  }

  // Reuse the text of a result only for calls without answers, because answers change the cache hints.
  toTextName(call: Call): string | undefined {
    if (isPlain(call)) return call.link.principal ? "principal" : "anonymous";
  }

  // Insert the common fields into the JSON text, because copying each result would cost more.
  stamp({ call, runner }: Found, result: Result, text: string): string {
    const { link: { principal } } = call;
    let hints = "";
    if (runner.cache) {
      const cache = narrowHints(runner.cache, result);
      // Results that depend on answers must not be cached, because answers are not part of the cache key.
      const isKept = isPlain(call);
      const isPublic = cache.scope === "public" || cache.scope === "anonymous" && !principal;
      hints = `,"ttlMs":${isKept ? cache.ttlMs : 0},"cacheScope":"${isKept && isPublic ? "public" : "private"}"`;
    }
    const { _meta: meta } = result;
    if (meta === undefined && result.resultType === undefined) {
      return text === "{}" ? `${this.#head}${hints}}` : `${this.#head}${hints},${text.slice(1)}`;
    }
    // Only the library and extensions can set `resultType`, so remove a `resultType` that a handler has returned.
    const resultType = readResultType(result);
    const { resultType: _, ...fields } = result;
    const typed = JSON.stringify({
      resultType: resultType ?? "complete",
      ...fields,
      _meta: { [META_SERVER]: this.#engine.core.info, ...meta ?? {} },
    });
    return `${typed.slice(0, -1)}${resultType === undefined ? hints : ""}}`;
  }

  writeError({ id, observed }: Answered, error: McpError): Reply {
    const reply = toErrorReply(id, error);
    observed?.fail(error, isScopeError(error) ? 403 : reply.status);
    return reply;
  }
}

function toErrorReply(id: Id, error: McpError): Reply {
  const text = toFailure(id, error);
  const hints = toHints(error);
  if (hints) return { text, ...hints };
  return { text, status: error.code === METHOD_NOT_FOUND ? 404 : error.code === INTERNAL_ERROR ? 200 : 400 };
}
