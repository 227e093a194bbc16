/**
 * Implements `ctx.readResource`. Loaded when a handler first reads a resource.
 */
import { INTERNAL_ERROR, isMcpError, McpError, quote } from "../../core/protocol/errors.ts";
import type { Params } from "../../core/protocol/jsonrpc.ts";
import type { ResourceContents } from "../../core/protocol/types.ts";
import { Call, type CallHome, type CallHost, type Deferred } from "../call/call.ts";
import type { Registry } from "../visibility/registry.ts";
import { checkReads } from "./handler_check.ts";
import type { Core } from "./core.ts";
import { startDeadline } from "../call/deadline.ts";
import type { Method } from "../visibility/feature.ts";
import { InFlight } from "../call/in_flight.ts";
import { type Question, requireCapabilities } from "../call/question.ts";
import type { EarlierReads } from "../call/lives.ts";
import { addTo, noteQuestion, noteRead, setReads } from "../call/reads.ts";
import type { Scheduler } from "./scheduler.ts";
import { requireScopes } from "../call/scopes.ts";

/** The parts of the server that are required to read a resource. */
export interface ReadParts {
  readonly core: Core;
  readonly registry: Registry;
  readonly scheduler: Scheduler;
  /** The method `resources/read`, if the server has resources. */
  readonly method: Method | undefined;
}

// Maximum depth of nested reads. Without this limit, resource handlers that read each other's resources would never
// return.
const MAX_DEPTH = 8;

/**
 * Reads a resource for the caller of `outer`. The read does not count towards `calls.running`. If a layer of the
 * resource has a `timeoutMs`, this timeout applies to the read in addition to the timeout of `outer`.
 */
export async function readInner(
  outer: Call,
  uri: string | EarlierReads,
  parts: ReadParts,
): Promise<readonly ResourceContents[]> {
  if (typeof uri !== "string") return await repeatReads(outer, uri, parts);
  const { core, scheduler, method } = parts;
  const { client } = outer;
  const depth = (outer.host.readDepth ?? 0) + 1;
  if (depth > MAX_DEPTH) {
    throw new Error(`Cannot read ${quote(uri)}: resources read each other more than ${MAX_DEPTH} levels deep`);
  }
  if (hasEnded(outer)) throw toLate(outer, uri);
  if (!method) throw McpError.resourceNotFound(uri);
  const call = new InnerRead(outer, uri, depth);
  call.observePart(outer);
  const { promise: cancelled, reject } = Promise.withResolvers<never>();
  cancelled.catch(() => {});
  call.whenCancelled(() => reject(call.reason));
  const onAbort = () => outer.reason && call.cancel(outer.reason);
  outer.signal.addEventListener("abort", onAbort);
  if (outer.signal.aborted) onAbort();
  // The handler of an outer call may have returned without waiting for the read. Report the error, because no handler
  // waits for it.
  const requireWaiting = () => {
    if (hasEnded(outer)) throw outer.reason ?? core.report(toLate(outer, uri), call);
  };
  const read = async () => {
    const runner = await method.find(call);
    requireWaiting();
    if (runner.scopes) requireScopes(core, call, runner.scopes);
    if (runner.requires) requireCapabilities(client.capabilities, runner.requires, "read the resource");
    // Check the resource's rate limit. Otherwise clients could bypass the limit with a tool that reads a URI from its
    // arguments.
    const limiting = runner.check?.(call);
    if (limiting) await limiting;
    requireWaiting();
    // Other callers who use the results of the outer call need the rights to the resource too.
    if (runner.scopes || runner.isRestricted) await noteRead(outer, uri);
    const { observed } = call;
    observed?.start();
    const run = () => scheduler.runWithin(call, runner);
    const result = observed && core.observer.around ? observed.around(run) : run();
    // Read the timeout here, because a layer of the resource sets the timeout when the handler starts.
    const { timeoutMs = Infinity } = call;
    if (timeoutMs !== Infinity) startDeadline(call, core.ticker, timeoutMs);
    const read = await result;
    if (call.questions) scheduler.checkQuestions(call, read);
    return read;
  };
  try {
    const result = await Promise.race([cancelled, read()]);
    const { contents } = result;
    if (!Array.isArray(contents)) throw new TypeError(`Cannot read ${quote(uri)}: its result has no list of contents`);
    call.observed?.succeed(result);
    return contents;
  } catch (error) {
    // Do not report the error here. The handler of the outer call receives the error, and the server reports the error
    // if the handler rethrows the error.
    call.observed?.fail(isMcpError(error) ? error : new McpError(INTERNAL_ERROR, "Internal error"));
    throw error;
  } finally {
    outer.signal.removeEventListener("abort", onAbort);
    call.deadline?.stop();
    call.end();
  }
}

// An answer with the state of another token of the same principal brings the values of that token's run.
async function repeatReads(call: Call, { reads = [] }: EarlierReads, parts: ReadParts): Promise<[]> {
  await checkReads(call, reads, parts);
  setReads(call, reads);
  return [];
}

/**
 * The call that reads a resource for the handler of an outer call. Messages from the resource's handler are sent to the
 * client of the outer call. Progress is dropped, because the read has no progress token.
 */
class InnerRead extends Call {
  readonly #outer: Call;
  readonly #uri: string;

  constructor(outer: Call, uri: string, depth: number) {
    const { client, id, link } = outer;
    const request = { kind: "request" as const, id, method: "resources/read", params: { uri }, weight: 0 };
    super(toHome(outer, uri, depth), link, request, client, new InFlight());
    this.#outer = outer;
    this.#uri = uri;
    // The outer handler gets what the output guards of the resource have left for its caller.
    this.onRead = ({ uri, caller }) => addTo(outer, { uri, caller });
    this.inherit(outer);
  }

  override get isAsking(): boolean {
    return this.#outer.isAsking;
  }

  override startHandler<T>(run: () => T): T {
    if (hasEnded(this.#outer)) throw toLate(this.#outer, this.#uri);
    return super.startHandler(run);
  }

  override get sessionId(): string | undefined {
    return this.#outer.sessionId;
  }

  notify(method: string, params: Params): Promise<void> | undefined {
    return this.#outer.notify(method, params);
  }

  // Add the URI to the key, because several resources may ask questions with the same key.
  askClient(key: string, question: Question): Promise<unknown> {
    const outerKey = `${this.#uri} ${key}`;
    noteQuestion(this.#outer, outerKey, question);
    return this.#outer.askClient(outerKey, question);
  }

  makeOnce(key: string, make: () => unknown): Promise<unknown> {
    return this.#outer.makeOnce(`${this.#uri} ${key}`, make);
  }
}

/** Whether a call, or a call whose handler reads for it, has its response. */
function hasEnded({ ended, host: { outer } }: Call): boolean {
  return ended || !!outer && hasEnded(outer);
}

function toLate({ reason }: Call, uri: string): Error {
  return reason ??
    new Error(`Cannot read ${quote(uri)}: the call already has its response; await ctx.readResource() in the handler`);
}

function toHome(outer: Call, uri: string, depth: number): CallHome {
  const host: CallHost = Object.create(outer.host, {
    // Defer functions to the end of the outer call, because the scheduler runs only the outer call, and therefore only
    // its deferred functions.
    defer: { value: (_inner: Call, run: Deferred) => outer.host.defer(outer, run) },
    outer: { value: outer },
    readDepth: { value: depth },
    reruns: { value: undefined },
  });
  return { host, session: () => outer.session, subject: () => uri };
}
