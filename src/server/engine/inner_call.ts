/**
 * Makes inner calls: calls of one handler by another handler, for the same caller. Loaded when a handler first makes such
 * a call.
 */
import { toCanonical } from "../../core/protocol/canonical.ts";
import { INTERNAL_ERROR, isMcpError, McpError, quote, toBusy, withLimits } from "../../core/protocol/errors.ts";
import { type Params, readResultType, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Meta } from "../../core/protocol/types.ts";
import { Call, type CallHome, type Deferred, deriveHome, isProgressToken } from "../call/call.ts";
import type { OnceOptions } from "../call/context.ts";
import { runLimited } from "../call/deadline.ts";
import { InFlight } from "../call/in_flight.ts";
import { type InnerCalls, openInner } from "../call/inner_calls.ts";
import type { HandlerCall } from "../call/handler_call.ts";
import { type Question, QuestionError } from "../call/question.ts";
import { addTo, noteCaller, noteQuestion, noteRead } from "../call/reads.ts";
import { isProgram, isRelay, passesOn } from "../call/relays.ts";
import type { Runner } from "../visibility/feature.ts";
import type { Engine } from "./era.ts";
import { grant } from "./grant.ts";

export type InnerParts = Pick<Engine, "core" | "registry" | "scheduler">;

export interface InnerRequest {
  /** What the call does, for error messages, such as `call tool "add"`. */
  readonly action: string;
  /** Method of the context, such as `callTool`. */
  readonly by: string;
  readonly method: string;
  readonly params: Params;
  /** Name or URI of the called handler. `undefined` for a method that belongs to no single handler. */
  readonly name?: string;
  /** Begins the keys of all questions and values of the inner call, instead of a key from its parameters. */
  readonly key?: string;
}

/** Maximum depth of inner calls. Without this limit, handlers that call each other would never return. */
const MAX_DEPTH = 8;

/**
 * Makes an inner call for the handler of `outer`. The call passes the same steps as a call of the client, from the lookup
 * of the handler on. It runs in the place of `outer`: it counts towards neither `calls.running` nor the concurrency of a
 * quota, and ends with `outer`. If a layer of the called handler has a `timeoutMs`, this timeout applies in addition to
 * the timeout of `outer`.
 */
export async function makeInnerCall(outer: Call, request: InnerRequest, parts: InnerParts): Promise<Result> {
  const { core, registry, scheduler } = parts;
  requireWaiting(outer, request);
  const inner = openInner(outer);
  const { tree } = inner;
  admit(outer, request, { tree, core });
  const call = new InnerCall(outer, copy(request));
  const { account } = outer.link;
  if (!account.hold(call.weigh())) {
    throw toBusy(`${request.action}: too much memory is used`, "memory.bytesPerClient, memory.bytes");
  }
  tree.running.add(call);
  call.observePart(outer);
  const run = async () => {
    const runner = await grant(call, parts, "inner");
    requireWaiting(outer, request);
    await noteCalled(outer, call, runner);
    if (outer.asks && registry.methods.get(call.method)?.asks) call.allowQuestions();
    const returned = await runLimited(call, core.ticker, () => scheduler.runWithin(call, runner));
    if (call.questions) scheduler.checkQuestions(call, returned);
    const type = readResultType(returned);
    if (type === undefined || call.home.hasResultTypes) return returned;
    throw new TypeError(
      `Cannot ${request.action}: its result has the type ${quote(type)}, which only a client can finish`,
    );
  };
  try {
    const running = run();
    // Quotas of the outer calls keep their places until the called handler has ended, also if it ignores a cancellation.
    for (const { passed } of listOuters(outer)) passed?.push(running);
    const result = await call.untilCancelled(running);
    call.observed?.succeed(result);
    return result;
  } catch (error) {
    // Do not report the error here. The handler of the outer call receives the error, and the server reports the error
    // if the handler rethrows the error.
    call.observed?.fail(isMcpError(error) ? error : new McpError(INTERNAL_ERROR, "Internal error"));
    throw error;
  } finally {
    tree.running.delete(call);
    if (outer.isSubscription && !tree.running.size) inner.forget();
    account.free(call.weight);
    call.deadline?.stop();
    call.end();
  }
}

/** Records the called handler, because other callers who use the results of the outer call need the rights to it too. */
async function noteCalled(outer: Call, call: Call, runner: Runner): Promise<void> {
  if (call.subject === undefined) {
    if (runner.cache?.scope !== "public") await noteCaller(outer);
  } else if (runner.scopes || runner.isRestricted || runner.allow) await noteRead(outer, toHandler(call));
}

/** Throws if the call makes too many inner calls, or if they are nested too deeply. */
function admit(
  outer: Call,
  { action, name, method }: InnerRequest,
  { tree, core }: Pick<InnerCalls, "tree"> & Pick<InnerParts, "core">,
): void {
  const outers = listOuters(outer);
  const toChain = () =>
    [...outers, { subject: name, method }].map(({ subject, method }) => quote(subject ?? method)).join(" > ");
  if (outers.length > MAX_DEPTH) {
    throw new Error(`Cannot ${action}: inner calls are more than ${MAX_DEPTH} levels deep: ${toChain()}`);
  }
  const { inner } = core.limits.calls;
  if (tree.made >= inner) {
    const limit = "calls.inner";
    const error = new Error(
      `Cannot ${action}: the call has made ${inner} inner calls (${limit}): ${toChain()}; make fewer inner calls, or set ` +
        "the limit higher",
    );
    throw withLimits(error, limit);
  }
  tree.made++;
}

/** Returns a call and its outer calls, the outermost first. */
function listOuters(call: Call): Call[] {
  const { outer } = call.host;
  return outer ? [...listOuters(outer), call] : [call];
}

/** Returns a request with a copy of its parameters, because the called handler may change its input. */
function copy(request: InnerRequest): CopiedRequest {
  const { action, params } = request;
  let text;
  try {
    text = JSON.stringify(params);
  } catch (cause) {
    throw new TypeError(`Cannot ${action}: the arguments are not JSON; pass plain data`, { cause });
  }
  return { ...request, params: JSON.parse(text), text };
}

interface CopiedRequest extends InnerRequest {
  readonly text: string;
}

/** A call that a handler makes. What it sends goes to the client of the outer call. */
class InnerCall extends Call {
  readonly #outer: Call;
  readonly #request: InnerRequest;
  readonly #toKey: () => Promise<string>;
  /** Sends a notification for the outer call. Set when this call first sends one. */
  #notify?: Call["notify"];

  constructor(outer: Call, request: CopiedRequest) {
    const { client, id, link, params: { _meta } } = outer;
    const { method, text } = request;
    const wantsProgress = outer.reportsAllProgress || isProgressToken(Object(_meta).progressToken);
    const meta: Meta = {
      // A client that calls a tool through a search means this tool with its metadata, such as an idempotency key.
      ...isRelay(outer) && !isProgram(outer) ? outer.meta : undefined,
      // The token only shows that progress is wanted. The outer call sends the progress with its own token.
      ...wantsProgress ? { progressToken: 0 } : undefined,
    };
    const params = Object.keys(meta).length ? { ...request.params, _meta: meta } : request.params;
    const toKey = createKey(openInner(outer), request);
    super(
      toHome(outer, request, toKey),
      link,
      { kind: "request", id, method, params, weight: 0, text },
      client,
      new InFlight(),
    );
    this.#outer = outer;
    this.outer = passesOn(outer) ? undefined : toHandler(outer);
    this.#request = request;
    this.#toKey = toKey;
    // The outer handler gets what the output guards of the called handler have left for its caller.
    this.onRead = ({ uri, caller }) => addTo(outer, { uri, caller });
    this.inherit(outer);
    // As in a call of the client, the steps before the handler cannot ask.
    this.asks = false;
  }

  override get isAsking(): boolean {
    return this.#outer.isAsking;
  }

  override startHandler<T>(run: () => T): T {
    requireWaiting(this.#outer, this.#request);
    return super.startHandler(run);
  }

  override release(retryMs: number | undefined): void {
    this.#outer.release(retryMs);
  }

  notify(method: string, params: Params): Promise<void> | undefined {
    const outer = this.#outer;
    if (hasEnded(outer)) return;
    this.#notify ??= openInner(outer).toNotify(outer, true);
    return this.#notify(method, params);
  }

  async askClient(key: string, question: Question): Promise<unknown> {
    const outerKey = await this.#toOuterKey(key);
    noteQuestion(this.#outer, outerKey, question);
    return await this.#outer.askClient(outerKey, question);
  }

  async makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    const outerKey = await this.#toOuterKey(key);
    // The result of the outer handler depends on the value too.
    noteQuestion(this.#outer, `once ${outerKey}`, { method: "once", params: {} });
    return await this.#outer.makeOnce(outerKey, make, options);
  }

  /**
   * Adds the inner call to a key, because several inner calls may use the same key. A single tab separates the two. Every
   * other tab is followed by a second tab, so no other key equals the returned key.
   */
  async #toOuterKey(key: string): Promise<string> {
    const innerKey = await this.#toKey();
    requireWaiting(this.#outer, this.#request);
    return `${innerKey.replaceAll("\t", "\t\t")}\t ${key}`;
  }
}

/** Throws if the handler of `outer`, or of an outer call of it, has returned before the inner call. */
function requireWaiting(outer: Call, { action, by }: InnerRequest): void {
  if (!hasEnded(outer)) return;
  if (outer.reason) throw outer.reason;
  // The response contains a question. The next run of the handler makes the inner call again.
  if (outer.isAsking) throw new QuestionError();
  throw new Error(`Cannot ${action}: the call already has its response; await ctx.${by}() in the handler`);
}

/** Whether a call, or an outer call of it, has its response. */
function hasEnded({ ended, host: { outer } }: Call): boolean {
  return ended || !!outer && hasEnded(outer);
}

/** Returns the function that returns the beginning of the keys of an inner call. */
function createKey(inner: InnerCalls, { action, name, method, params, key }: InnerRequest): () => Promise<string> {
  const text = key === undefined ? JSON.stringify([method, toCanonical(params)]) : `key ${key}`;
  const count = inner.count(text);
  // A part of the name suffices, because the name is mainly for people who read the key.
  const label = (name ?? method).slice(0, 128);
  if (key !== undefined) {
    // Another run may use the key for another handler, which must not get the answers to the first handler.
    if (count === 1) return () => Promise.resolve(`${label} ${JSON.stringify(key)}`);
    throw new TypeError(
      `Cannot ${action}: another inner call has the key ${quote(key)}; give each inner call its own key`,
    );
  }
  let made: Promise<string> | undefined;
  const make = async () => {
    const digest = await inner.digest(text);
    return [label, digest, ...count > 1 ? [count] : []].join(" ");
  };
  return () => made ??= make();
}

function toHome(outer: Call, { method }: InnerRequest, toInnerKey: () => Promise<string>): CallHome {
  const home = deriveHome(outer, {
    // Defer functions to the end of the outer call, because the scheduler runs only the outer call, and therefore only
    // its deferred functions.
    defer: (_inner: Call, run: Deferred) => outer.host.defer(outer, run),
    outer,
    outermost: outer.host.outermost ?? outer.host,
    toInnerKey,
  });
  // The client can finish the result of a call that is passed on, such as a task, unless the method is another one.
  const hasResultTypes = method === outer.method && passesOn(outer) && !isProgram(outer) && outer.home.hasResultTypes;
  return { ...home, hasResultTypes };
}

function toHandler({ method, params }: Call): HandlerCall {
  const names: Record<string, unknown> = {};
  for (const name of NAMES) if (Object.hasOwn(params, name)) names[name] = params[name];
  return Object.freeze({ method, params: Object.freeze(names) });
}

const NAMES = ["name", "uri", "ref"];
