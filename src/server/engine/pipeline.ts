/**
 * Serves a request. Every era performs the steps in this order: observe the request, read the facts about the client,
 * run `admit`, look up the handler (and run `allow`), check header parameters, scopes, required capabilities and rate
 * limits, restore the client's answers, schedule the call, and reply.
 */
import { CancelError } from "../call/cancel_error.ts";
import { toScopeReply } from "./auth.ts";
import { isMcpError, type McpError } from "../../core/protocol/errors.ts";
import { type Id, type Request, type Result, toSuccess } from "../../core/protocol/jsonrpc.ts";
import { isWithin } from "../../core/protocol/weight.ts";
import type { HeaderParam } from "../../core/schema/header_params.ts";
import { type Call, toTooLong } from "../call/call.ts";
import type { ClientInfo, Principal } from "../call/context.ts";
import type { Engine } from "./era.ts";
import { observeRequest } from "./observed_call.ts";
import { MAX_REFUSED } from "./scheduler.ts";
import type { Method, Outcome, Runner } from "../visibility/feature.ts";
import type { HeaderReader, Link, Reply } from "../call/link.ts";
import type { RequestReport } from "../call/observer.ts";
import { requireCapabilities } from "../call/question.ts";
import { toUnknownMethod } from "../visibility/registry.ts";
import { isScopeError, requireScopes } from "../call/scopes.ts";

export interface Found {
  readonly call: Call;
  readonly method: Method;
  readonly runner: Runner;
}

/** A call has these properties too. */
export interface Answered {
  readonly id: Id;
  readonly method: string;
  readonly subject?: string;
  readonly observed?: RequestReport;
  readonly principal?: Principal;
  end?(): void;
}

/** The steps of serving a request that differ between the eras. */
export interface Dialect {
  /** Finds the implementation of a method. Returns `undefined` for a method without handlers. */
  find(name: string): Method | undefined;
  /** Reads the facts about the client. Throws the error that the client receives if a fact is missing or invalid. */
  read(message: Request, link: Link, method: Method | undefined): ClientInfo;
  open(message: Request, link: Link, client: ClientInfo): Call;
  /** Serves a method without handlers, such as `ping`. Returns `undefined` if the method does not exist in the era. */
  serve(call: Call): Reply | Promise<Reply> | undefined;
  /** Checks parameters that the client must repeat in HTTP headers. Throws if a header does not match. */
  checkParams?(call: Call, wanted: readonly HeaderParam[], headers: HeaderReader): void;
  /** Returns the key under which calls share the text of the same result, or `undefined` if they cannot share it. */
  toTextName(call: Call): string | undefined;
  translate?(call: Call, result: Result): unknown;
  /** Adds the fields that the protocol revision requires in every result to the JSON text of a result. */
  stamp?(found: Found, result: Result, text: string): string;
  /** Converts an error to a reply, and reports the error to the observer. */
  writeError(request: Answered, error: McpError): Reply;
}

export class Pipeline {
  readonly #engine: Engine;
  /** Cached JSON texts of pages, of their lists and of the entries, by the cache key that the dialect returns. */
  // Bound: one per protocol revision.
  readonly #texts = new Map<string, Texts>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Never throws. */
  answer(dialect: Dialect, message: Request, link: Link): Reply | Promise<Reply> {
    const { core } = this.#engine;
    const observed = observeRequest(core, message, link);
    const method = dialect.find(message.method);
    let call: Call | undefined;
    try {
      const client = dialect.read(message, link, method);
      call = dialect.open(message, link, client);
      if (observed) call.observe(observed, method?.subject);
      const admitting = core.admit && this.#begin(call, core.admit);
      const reply = admitting ? this.#admit(dialect, call, admitting) : this.#find(dialect, call, method);
      return reply instanceof Promise ? this.#guard(dialect, call, reply) : reply;
    } catch (error) {
      return this.#fail(dialect, call ?? { id: message.id, method: message.method, observed }, error);
    }
  }

  run(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, runner } = found;
    if (runner.headers && call.link.headers) dialect.checkParams?.(call, runner.headers, call.link.headers);
    return this.#check(dialect, found);
  }

  // This is a separate method, because a closure in `answer` would keep all variables of `answer` in memory, such as
  // the message of a subscription until the subscription ends.
  #guard(dialect: Dialect, call: Call, reply: Promise<Reply>): Promise<Reply> {
    const { signal } = call.link;
    const replied = signal ? cancelOnAbort(call, signal, reply) : reply;
    return replied.catch((error) => isUnanswered(call) ? this.#cancel(call) : this.#fail(dialect, call, error));
  }

  #admit(dialect: Dialect, call: Call, admitted: Promise<void>): Promise<Reply> {
    // Look up the method again, because handlers may have changed while `admit` ran.
    return admitted.then(() => this.#find(dialect, call, dialect.find(call.method)));
  }

  /**
   * Runs a step that may be asynchronous. A synchronous step needs no slot, so that a call that has to wait for a slot
   * is not refused. An asynchronous step is refused only after it has started, so each client may have one such step.
   */
  #begin<T>(call: Call, step: (call: Call) => T | Promise<T>): T | Promise<T> {
    const { scheduler } = this.#engine;
    const { refused } = scheduler;
    if (refused.size && (refused.size > MAX_REFUSED || refused.has(call.link.account.turnKey))) {
      return scheduler.start(call, () => step(call));
    }
    const begun = step(call);
    return begun instanceof Promise ? scheduler.prepare(call, begun) : begun;
  }

  #find(dialect: Dialect, call: Call, method: Method | undefined): Reply | Promise<Reply> {
    const opening = this.#engine.core.shared?.rules?.open(call.method, method?.isBrought);
    if (opening) return this.#admit(dialect, call, this.#engine.scheduler.prepare(call, opening));
    if (!method) {
      const reply = dialect.serve(call);
      if (reply) return reply;
      throw toUnknownMethod(call.method);
    }
    const runner = this.#begin(call, method.find);
    if (!(runner instanceof Promise)) return this.run(dialect, { call, method, runner });
    return runner.then((runner) => this.run(dialect, { call, method, runner }));
  }

  // An error in this method can still set the HTTP status. Once the call is scheduled, the response may become a
  // stream, which has status 200.
  #check(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, runner } = found;
    if (runner.scopes) requireScopes(this.#engine.core, call, runner.scopes);
    if (runner.requires) requireCapabilities(call.client.capabilities, runner.requires, "run the call");
    const limiting = runner.check && this.#begin(call, runner.check);
    return limiting ? limiting.then(() => this.#restore(dialect, found)) : this.#restore(dialect, found);
  }

  #restore(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, method } = found;
    const restoring = method.asks ? call.restore() : undefined;
    if (!restoring) return this.#schedule(dialect, found);
    return this.#engine.scheduler.waitFor(call, restoring).then(() => this.#schedule(dialect, found));
  }

  #schedule(dialect: Dialect, found: Found): Reply | Promise<Reply> {
    const { call, method, runner } = found;
    if (method.asks) call.allowQuestions();
    const outcome = this.#engine.scheduler.run(call, runner);
    if (!(outcome instanceof Promise)) return this.#reply(dialect, found, outcome);
    call.link.wait();
    return outcome.then((outcome) => this.#reply(dialect, found, outcome));
  }

  // If there are open questions, send the questions instead of the outcome, because the handler ended only to wait for
  // the answers.
  #reply(dialect: Dialect, found: Found, outcome: Outcome): Reply | Promise<Reply> {
    const { call, method } = found;
    if (!outcome) return this.#cancel(call);
    const asking = call.toQuestions();
    if (asking) return asking.then((result) => this.#succeed(call, result, this.#write(dialect, found, result)));
    const { result, error } = outcome;
    if (error) throw error;
    // Share texts only if no middleware can change the result.
    const isShared = method.list && !this.#engine.core.hasMiddleware;
    const name = isShared ? dialect.toTextName(call) : undefined;
    return this.#succeed(
      call,
      result,
      name ? this.#writePage(dialect, found, result, name) : this.#write(dialect, found, result),
    );
  }

  #cancel({ observed }: Call): Reply {
    observed?.cancel();
    return {};
  }

  #succeed(call: Call, result: Result, text: string): Reply {
    call.observed?.succeed(result);
    return { text: toSuccess(call.id, text) };
  }

  /** Writes a page of a list, from texts that other pages and other callers share. */
  #writePage(dialect: Dialect, found: Found, page: Result, name: string): string {
    let texts = this.#texts.get(name);
    if (!texts) this.#texts.set(name, texts = new WeakMap());
    if (!Object.isFrozen(page)) return this.#finish(dialect, found, page, joinPage(dialect, found, page, texts));
    // All callers get this page.
    let text = texts.get(page);
    if (text === undefined) texts.set(page, text = this.#write(dialect, found, page));
    return text;
  }

  #write(dialect: Dialect, found: Found, result: Result): string {
    const text = JSON.stringify(dialect.translate ? dialect.translate(found.call, result) : result);
    return this.#finish(dialect, found, result, text);
  }

  #finish(dialect: Dialect, found: Found, result: Result, text: string): string {
    const { resultBytes } = this.#engine.core.limits.calls;
    if (text.length * 3 > resultBytes && !isWithin(text, resultBytes)) throw toTooLong(found.call, resultBytes);
    return dialect.stamp ? dialect.stamp(found, result, text) : text;
  }

  #fail(dialect: Dialect, request: Answered, error: unknown): Reply {
    const { core } = this.#engine;
    const known = isMcpError(error) ? error : core.report(error, request);
    const reply = dialect.writeError(request, known);
    // A step that refuses the call, such as `allow`, may not have awaited its inner calls. The dialect must know whether
    // the call was refused before its handler.
    request.end?.();
    return isScopeError(known) ? toScopeReply({ ...core, principal: request.principal }, known, reply) : reply;
  }
}

type Texts = WeakMap<object, string>;

/** Returns the JSON text of a page. Translates and writes each entry only once, because many pages have the same entries. */
function joinPage(dialect: Dialect, { call, method: { list = "" } }: Found, page: Result, texts: Texts): string {
  const { [list]: entries, ...others } = page;
  if (!Array.isArray(entries)) return JSON.stringify(page);
  const toText = (entry: object) => {
    let text = texts.get(entry);
    if (text === undefined) {
      const alone = { [list]: [entry] };
      const { [list]: [written] } = Object(dialect.translate ? dialect.translate(call, alone) : alone);
      texts.set(entry, text = JSON.stringify(written));
    }
    return text;
  };
  let joined = texts.get(entries);
  if (joined === undefined) {
    joined = `{${JSON.stringify(list)}:[${entries.map(toText).join()}]`;
    if (Object.isFrozen(entries)) texts.set(entries, joined);
  }
  const rest = JSON.stringify(others);
  return `${joined}${rest === "{}" ? "" : ","}${rest.slice(1)}`;
}

/** Cancels a call if the signal aborts before its reply. Also in a session, where a lost connection cancels no call. */
async function cancelOnAbort(call: Call, signal: AbortSignal, reply: Promise<Reply>): Promise<Reply> {
  const onAbort = () => call.cancel(new CancelError("disconnected"));
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await reply;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Whether the call was cancelled, and its client no longer waits for a response. */
function isUnanswered({ reason }: Call): boolean {
  return !!reason && !reason.response;
}
