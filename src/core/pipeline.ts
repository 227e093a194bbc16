/**
 * Serves a request. The order of the steps is the same in every era: observe the request, read the client's facts,
 * admit, find the handler (with `allow`), check header parameters, scopes, required capabilities and limits, restore
 * answers, schedule, and reply.
 *
 * @module
 */
import { toScopeReply } from "./auth.ts";
import { isMcpError, type McpError } from "../protocol/errors.ts";
import { type Id, type Request, type Result, toSuccess } from "../protocol/jsonrpc.ts";
import { isWithin } from "../protocol/weight.ts";
import type { HeaderParam } from "../schema/header_params.ts";
import { type Call, toTooLong } from "./call/call.ts";
import type { ClientFacts, Principal } from "./call/context.ts";
import type { Engine } from "./era.ts";
import type { Method, Outcome, Runner } from "./visibility/feature.ts";
import type { HeaderReader, Link, Reply } from "./call/link.ts";
import type { RequestReport } from "./call/observer.ts";
import { requireCapabilities } from "./call/question.ts";
import { toUnknownMethod } from "./visibility/registry.ts";
import { isScopeError, requireScopes } from "./call/scopes.ts";

/** A call with its runner. */
export interface Found {
  readonly call: Call;
  readonly method: Method;
  readonly runner: Runner;
}

/** A request that requires a reply. */
export interface Answered {
  readonly id: Id;
  readonly method: string;
  readonly subject?: string;
  readonly observed?: RequestReport;
  readonly principal?: Principal;
}

/** The parts of serving a request that differ between the eras. */
export interface Dialect {
  /** Finds the runner of a method that handlers serve. */
  find(name: string): Method | undefined;
  /** Reads the facts about the client. Throws the error for the client. */
  read(message: Request, link: Link, method: Method | undefined): ClientFacts;
  /** Creates the call of a request. */
  open(message: Request, link: Link, client: ClientFacts): Call;
  /**
   * Serves a method without handlers, such as a subscription. Returns `undefined` if the dialect does not have the
   * method.
   */
  serve(call: Call): Reply | Promise<Reply> | undefined;
  /** Checks the parameters that clients repeat in HTTP headers. */
  checkParams?(call: Call, wanted: readonly HeaderParam[], headers: HeaderReader): void;
  /**
   * Returns the cache key for the text of the result. Calls with the same result text have the same key. Returns
   * `undefined` if the text cannot be shared.
   */
  toTextName(call: Call): string | undefined;
  /** Converts a result to the client's revision. */
  translate?(call: Call, result: Result): unknown;
  /** Adds the fields that every result of the revision has to the JSON text of a result. */
  stamp?(found: Found, result: Result, text: string): string;
  /** Writes an error, and reports it. */
  writeError(request: Answered, error: McpError): Reply;
}

/** Serves the requests of one era. */
export class Pipeline {
  readonly #engine: Engine;
  /** Cached JSON text of results, by the cache key that the dialect returns. */
  readonly #texts = new Map<string, WeakMap<Result, string>>();

  /** Creates the pipeline of an era. */
  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Serves a request. */
  answer(dialect: Dialect, message: Request, link: Link): Reply | Promise<Reply> {
    const { core } = this.#engine;
    const observed = core.observing?.observe(message, link);
    const method = dialect.find(message.method);
    let call: Call | undefined;
    try {
      const client = dialect.read(message, link, method);
      call = dialect.open(message, link, client);
      if (observed) call.observe(observed, method?.subject);
      const reply = core.admit ? this.#admit(dialect, call, core.admit(call)) : this.#find(dialect, call, method);
      return reply instanceof Promise ? this.#guard(dialect, call, reply) : reply;
    } catch (error) {
      return this.#fail(dialect, call ?? { id: message.id, method: message.method, observed }, error);
    }
  }

  /** Runs a call whose runner was found. */
  run(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, runner } = found;
    if (runner.headers && call.link.headers) dialect.checkParams?.(call, runner.headers, call.link.headers);
    return this.#check(dialect, found);
  }

  // A separate method, because a closure keeps all variables of its method in memory: here the message would stay in
  // memory as long as its subscription.
  #guard(dialect: Dialect, call: Call, reply: Promise<Reply>): Promise<Reply> {
    return reply.catch((error) => this.#fail(dialect, call, error));
  }

  #admit(dialect: Dialect, call: Call, admitted: Promise<void>): Promise<Reply> {
    // Find the method again, because handlers may have changed in the meantime.
    const find = () => this.#find(dialect, call, dialect.find(call.method));
    return this.#engine.scheduler.prepare(call, admitted).then(find);
  }

  #find(dialect: Dialect, call: Call, method: Method | undefined): Reply | Promise<Reply> {
    const opening = this.#engine.core.shared?.rules?.open(call.method);
    if (opening) return this.#admit(dialect, call, opening);
    if (!method) {
      const reply = dialect.serve(call);
      if (reply) return reply;
      throw toUnknownMethod(call.method);
    }
    const { scheduler } = this.#engine;
    // Fast path: if no asynchronous lookup of a runner is in progress, expect this lookup to be synchronous.
    const isSlow = scheduler.preparing > 0;
    const runner = isSlow ? scheduler.find(call, method) : method.find(call);
    if (!(runner instanceof Promise)) return this.run(dialect, { call, method, runner });
    const finding = isSlow ? runner : scheduler.prepare(call, runner);
    return finding.then((runner) => this.run(dialect, { call, method, runner }));
  }

  // Errors before this point set the HTTP status. From here on, the response may be a stream, which always has status
  // 200.
  #check(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, method, runner } = found;
    if (runner.scopes) requireScopes(this.#engine.core, call, runner.scopes);
    if (runner.requires) requireCapabilities(call.client.capabilities, runner.requires, "run the call");
    runner.check?.(call);
    const restoring = method.asks ? call.restore() : undefined;
    return restoring ? restoring.then(() => this.#schedule(dialect, found)) : this.#schedule(dialect, found);
  }

  #schedule(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, method, runner } = found;
    if (method.asks) call.allowQuestions();
    const outcome = this.#engine.scheduler.run(call, runner);
    if (!(outcome instanceof Promise)) return this.#reply(dialect, found, outcome);
    call.link.wait();
    return outcome.then((outcome) => this.#reply(dialect, found, outcome));
  }

  // Send open questions first, because a handler that has no answer yet ends with an outcome that must not be sent.
  #reply(dialect: Dialect, found: Found, outcome: Outcome): Reply | Promise<Reply> {
    const { call, method } = found;
    if (!outcome) {
      call.observed?.cancel();
      return {};
    }
    const asking = call.toQuestions();
    if (asking) return asking.then((result) => this.#succeed(call, result, this.#write(dialect, found, result)));
    const { result, error } = outcome;
    if (error) throw error;
    // A result can be shared only if no middleware can change it.
    const isShared = method.stable && !this.#engine.core.hasMiddleware;
    const name = isShared ? dialect.toTextName(call) : undefined;
    return this.#succeed(
      call,
      result,
      name ? this.#share(dialect, found, result, name) : this.#write(dialect, found, result),
    );
  }

  #succeed(call: Call, result: Result, text: string): Reply {
    call.observed?.succeed(result);
    return { text: toSuccess(call.id, text) };
  }

  #share(dialect: Dialect, found: Found, result: Result, name: string): string {
    let texts = this.#texts.get(name);
    if (!texts) this.#texts.set(name, texts = new WeakMap());
    let text = texts.get(result);
    if (text === undefined) texts.set(result, text = this.#write(dialect, found, result));
    return text;
  }

  #write(dialect: Dialect, found: Found, result: Result): string {
    const { resultBytes } = this.#engine.core.limits.calls;
    const text = JSON.stringify(dialect.translate ? dialect.translate(found.call, result) : result);
    if (text.length * 3 > resultBytes && !isWithin(text, resultBytes)) throw toTooLong(found.call, resultBytes);
    return dialect.stamp ? dialect.stamp(found, result, text) : text;
  }

  #fail(dialect: Dialect, request: Answered, error: unknown): Reply {
    const { core } = this.#engine;
    const known = isMcpError(error) ? error : core.report(error, request);
    const reply = dialect.writeError(request, known);
    return isScopeError(known) ? toScopeReply({ ...core, principal: request.principal }, known, reply) : reply;
  }
}
