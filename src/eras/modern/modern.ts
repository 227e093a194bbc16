/**
 * The modern era, in which every request is independent.
 *
 * @see specification/2026-07-28/basic/versioning
 * @module
 */
import { INTERNAL_ERROR, INVALID_REQUEST, isMcpError, type McpError, METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import {
  type Id,
  type Incoming,
  readResultType,
  type Request,
  type Result,
  toFailure,
  toNotification,
  toSuccess,
} from "../../protocol/jsonrpc.ts";
import { isWithin } from "../../protocol/weight.ts";
import { isScopeError, requireScopes } from "../../core/scopes.ts";
import { Call, type Carrier, toTooLong } from "../../core/call.ts";
import type { Engine, Era } from "../../core/era.ts";
import type { Method, Outcome, Runner } from "../../core/feature.ts";
import { SHUTDOWN } from "../../core/in_flight.ts";
import { type HeaderReader, type Link, type Reply, toHints } from "../../core/link.ts";
import type { RefusalReason, RequestReport } from "../../core/observer.ts";
import { requireCapabilities } from "../../core/question.ts";
import { toUnknownMethod } from "../../core/registry.ts";
import { createSessionReader, readSessionData } from "../../core/session_data.ts";
import { discover } from "./discover.ts";
import type { HeaderParam } from "../../schema/header_params.ts";
import { readEnvelope } from "./envelope.ts";
import type { InputRequests } from "./input_requests.ts";
import { META_CAPABILITIES, META_SERVER, VERSION } from "./meta_keys.ts";

/** Creates the era of revision 2026-07-28, with its code. */
export function loadedEra(engine: Engine): Era {
  return new ModernEra(engine);
}

/** A request that gets a reply. */
interface Answered {
  readonly id: Id;
  readonly method: string;
  readonly observed?: RequestReport;
}

/** A message that gets no call. */
interface Refused {
  readonly id?: Id;
  readonly code: number;
  readonly message: string;
  readonly reason: RefusalReason;
}

/** A call with its runner. */
interface Found {
  readonly call: Call;
  readonly method: Method;
  readonly runner: Runner;
}

/** The code for questions. */
type Asking = typeof import("./input_requests.ts");

class ModernEra implements Era {
  readonly #engine: Engine;
  readonly #own: ReadonlyMap<string, Method>;
  readonly #inputs = new WeakMap<Call, InputRequests>();
  #asking?: Asking;
  /** Cached JSON of results that stay the same object, for callers with and without a principal. */
  readonly #texts = [new WeakMap<Result, string>(), new WeakMap<Result, string>()] as const;
  /** Beginning of every result, with the fields that are always the same. */
  readonly #head: string;
  readonly #carrier: Carrier;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#carrier = {
      host: engine.host,
      hasResultTypes: true,
      notify: ({ link }, method, params) => link.send(toNotification(method, params)),
      loadAsk: () => this.#asking ? undefined : this.#loadAsking(),
      // Synchronous, so that the question is open before the handler can go on.
      ask: (call, key, question) =>
        this.#asking
          ? this.#inputsOf(call, this.#asking).ask(key, question)
          : this.#openInputs(call).then((inputs) => inputs.ask(key, question)),
      once: async (call, key, make) => await (await this.#openInputs(call)).once(key, make),
      isAsking: (call) => !!this.#inputs.get(call)?.isOpen,
      session: createSessionReader(engine.core, once((call) => readSessionData(engine.core, call))),
      subject: (call) => engine.registry.findSubject(call),
    };
    this.#own = new Map([["server/discover", discover(engine)]]);
    this.#head = `{"resultType":"complete","_meta":${JSON.stringify({ [META_SERVER]: engine.core.info })}`;
  }

  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    if (message.kind === "request") return this.#answer(message, link);
    if (message.kind === "broken") return this.#refuse(link, { ...message, reason: "message" });
    if (message.kind === "notification") {
      const { core, registry, scheduler } = this.#engine;
      core.observing?.notify(message.method, link, { version: VERSION });
      link.inFlight.notify(message);
      const { [META_CAPABILITIES]: capabilities } = Object(message.params?._meta);
      const source = { link, carrier: this.#carrier, client: { version: VERSION, capabilities }, executor: scheduler };
      return registry.compiled("extensions")?.notify?.(message, source) ?? {};
    }
    const state = `Cannot accept a ${message.kind}: send one request or notification`;
    return this.#refuse(link, { reason: "message", code: INVALID_REQUEST, message: state });
  }

  #refuse(link: Link, { id, code, message, reason }: Refused): Reply {
    this.#engine.core.observing?.refuse(link, { status: 400, reason, code, message });
    return { text: toFailure(id, { code, message }), status: 400 };
  }

  #answer(message: Request, link: Link): Reply | Promise<Reply> {
    const { id, method } = message;
    const observed = this.#engine.core.observing?.observe(message, link);
    try {
      const reply = this.#find(message, link, observed);
      // The closure holds nothing else of the message, because a subscription may last for days.
      return reply instanceof Promise ? reply.catch((error) => this.#toFailed({ id, method, observed }, error)) : reply;
    } catch (error) {
      return this.#toFailed({ id, method, observed }, error);
    }
  }

  #toFailed({ id, method, observed }: Answered, error: unknown): Reply | Promise<Reply> {
    const { core } = this.#engine;
    const known = isMcpError(error) ? error : core.report(error, { method });
    const reply = toErrorReply(id, known);
    observed?.fail(known, isScopeError(known) ? 403 : reply.status);
    return isScopeError(known)
      ? import("../../core/auth.ts").then(({ toScopeReply }) => toScopeReply(core, known, reply))
      : reply;
  }

  #find(message: Request, link: Link, observed?: RequestReport, admitted?: Call): Reply | Promise<Reply> {
    const { core, registry } = this.#engine;
    const method = this.#own.get(message.method) ?? registry.methods.get(message.method);
    let call = admitted;
    if (!call) {
      const facts = readEnvelope(message, link, { method, core });
      const entering = call = new Call(this.#carrier, link, message, facts);
      if (observed) {
        observed.identify(facts, method?.subject && call.params[method.subject]);
        call.observed = observed;
      }
      if (core.admit) {
        const admitting = this.#engine.scheduler.prepare(call, core.admit(call));
        return admitting.then(() => this.#find(message, link, observed, entering));
      }
    }
    if (message.method === "subscriptions/listen") return this.#listen(call);
    if (!method) throw toUnknownMethod(message.method);
    const { scheduler } = this.#engine;
    // Fast path: as long as no lookup of a runner is asynchronous, the next one rarely is.
    const isSlow = scheduler.preparing > 0;
    const runner = isSlow ? scheduler.find(call, method) : method.find(call);
    if (!(runner instanceof Promise)) return this.#prepare({ call, method, runner });
    const finding = isSlow ? runner : scheduler.prepare(call, runner);
    return finding.then((runner) => this.#prepare({ call, method, runner }));
  }

  // Loaded on demand, because most servers and clients never subscribe.
  async #listen(call: Call): Promise<Reply> {
    const { listen } = await import("./listen.ts");
    const reply = await listen(this.#engine, call);
    if (call.reason === undefined || call.reason === SHUTDOWN) call.observed?.succeed({});
    else call.observed?.cancel();
    return reply;
  }

  // Until here, each error has its own HTTP status. From here on, the response may be a stream.
  #prepare(found: Found, isChecked = false): Reply | Promise<Reply> {
    const { call: { client, link }, method, runner } = found;
    if (!isChecked && runner.headers && link.headers) return this.#checkParams(found, runner.headers, link.headers);
    if (runner.scopes) requireScopes(this.#engine.core, found.call, runner.scopes);
    if (runner.needs) requireCapabilities(client.capabilities, runner.needs, "run the call");
    runner.check?.(found.call);
    return !method.asks || isPlain(found.call) ? this.#run(found) : this.#restore(found);
  }

  async #checkParams(found: Found, wanted: readonly HeaderParam[], headers: HeaderReader): Promise<Reply> {
    const { checkParamHeaders } = await import("./param_headers.ts");
    checkParamHeaders(wanted, headers, found.call.params.arguments);
    return await this.#prepare(found, true);
  }

  #run(found: Found): Reply | Promise<Reply> {
    const { call, method, runner } = found;
    call.asks = !!method.asks;
    const outcome = this.#engine.scheduler.run(call, runner);
    if (!(outcome instanceof Promise)) return this.#toReply(found, outcome);
    call.link.wait();
    return outcome.then((outcome) => this.#toReply(found, outcome));
  }

  async #restore(found: Found): Promise<Reply> {
    const inputs = await this.#openInputs(found.call);
    await inputs.restore();
    // With a slot, so that a busy server does not use up an answer.
    if (inputs.isSingleUse) await this.#engine.scheduler.prepareWith(found.call, () => inputs.spend());
    return await this.#run(found);
  }

  // Loaded on demand, because most servers never ask.
  async #loadAsking(): Promise<Asking> {
    return this.#asking = await import("./input_requests.ts");
  }

  async #openInputs(call: Call): Promise<InputRequests> {
    return this.#inputsOf(call, this.#asking ?? await this.#loadAsking());
  }

  #inputsOf(call: Call, { InputRequests }: Asking): InputRequests {
    let inputs = this.#inputs.get(call);
    if (!inputs) this.#inputs.set(call, inputs = new InputRequests(this.#engine, call));
    return inputs;
  }

  // An open question takes precedence over the outcome of a handler that unwinds without its answer.
  #toReply(found: Found, outcome: Outcome): Reply | Promise<Reply> {
    const { call, method } = found;
    if (!outcome) {
      call.observed?.cancel();
      return {};
    }
    const inputs = method.asks ? this.#inputs.get(call) : undefined;
    if (inputs?.isOpen) {
      return inputs.toResult().then((result) => {
        const text = this.#stamp(found, result);
        call.observed?.succeed(result);
        return { text: toSuccess(call.id, text) };
      });
    }
    const { result, error } = outcome;
    if (error) throw error;
    // Not shared if middleware may change the result, or if the call brings answers, which affect its hints.
    const isShared = method.stable && !this.#engine.core.hasMiddleware && isPlain(call);
    const texts = isShared ? this.#texts[call.link.principal ? 1 : 0] : undefined;
    let text = texts?.get(result);
    if (text === undefined) {
      text = this.#stamp(found, result);
      texts?.set(result, text);
    }
    call.observed?.succeed(result);
    return { text: toSuccess(call.id, text) };
  }

  // The common fields are spliced into the JSON text, so that no call copies its result.
  #stamp({ call, runner: { cache } }: Found, result: Result): string {
    const { link: { principal } } = call;
    const { core } = this.#engine;
    const { resultBytes } = core.limits.calls;
    let text = JSON.stringify(result);
    if (text.length * 3 > resultBytes && !isWithin(text, resultBytes)) {
      throw toTooLong(call, resultBytes);
    }
    let hints = "";
    if (cache) {
      // Results that depend on answers must not be cached, because answers are not part of the cache key.
      const isKept = isPlain(call);
      const isPublic = cache.scope === "public" || cache.scope === "anonymous" && !principal;
      hints = `,"ttlMs":${isKept ? cache.ttlMs : 0},"cacheScope":"${isKept && isPublic ? "public" : "private"}"`;
    }
    const { _meta: meta } = result;
    if (meta === undefined && result.resultType === undefined) {
      return text === "{}" ? `${this.#head}${hints}}` : `${this.#head}${hints},${text.slice(1)}`;
    }
    // A handler cannot choose the type, only the library and extensions can.
    const resultType = readResultType(result);
    const { resultType: _, ...fields } = result;
    text = JSON.stringify({
      resultType: resultType ?? "complete",
      ...fields,
      _meta: { [META_SERVER]: core.info, ...meta ?? {} },
    });
    return `${text.slice(0, -1)}${resultType === undefined ? hints : ""}}`;
  }
}

/** Tests whether a call brings no answers to questions. */
function isPlain({ params }: Call): boolean {
  return params.requestState === undefined && params.inputResponses === undefined;
}

/** Computes a value for each call once. */
function once(compute: (call: Call) => unknown): (call: Call) => unknown {
  const known = new WeakMap<Call, readonly [unknown]>();
  return (call) => {
    let found = known.get(call);
    if (!found) known.set(call, found = [compute(call)]);
    return found[0];
  };
}

function toErrorReply(id: Id, error: McpError): Reply {
  const text = toFailure(id, error);
  const hints = toHints(error);
  if (hints) return { text, ...hints };
  return { text, status: error.code === METHOD_NOT_FOUND ? 404 : error.code === INTERNAL_ERROR ? 200 : 400 };
}
