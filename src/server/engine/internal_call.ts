/**
 * Runs handlers for server extensions, without a client's request.
 */
import { INVALID_REQUEST, McpError, quote } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import { openAttached, shareAttached } from "./attached.ts";
import { Call, type CallHome } from "../call/call.ts";
import { CancelError } from "../call/cancel_error.ts";
import { runLimited } from "../call/deadline.ts";
import type { ClientInfo, OnceOptions, Principal } from "../call/context.ts";
import { InFlight } from "../call/in_flight.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { type Link, SILENT } from "../call/link.ts";
import { OnceValues, reserveMemory } from "../call/once.ts";
import { copyPrincipal, readPrincipal } from "../call/principal.ts";
import { isReads, setReads } from "../call/reads.ts";
import type { Question } from "../call/question.ts";
import { createSessionReader, freezeJson } from "../call/session_data.ts";
import type { Engine } from "./era.ts";
import { observeRequest } from "./observed_call.ts";
import { grant } from "./grant.ts";
import type { InternalRequest } from "./server_handle.ts";

const REQUEST: KnownOptions<keyof InternalRequest> = {
  names: {
    method: true,
    params: true,
    principal: true,
    hasAllScopes: "boolean",
    account: "text",
    client: true,
    session: "list",
    attached: true,
    reads: { findProblem: (reads) => isReads(reads) && reads !== "" ? undefined : "is not the reads of a call" },
    data: true,
    timeoutMs: true,
    signal: true,
  },
  hints: { name: "params" },
};

/** Checks `allow`, scopes and capabilities, but neither `admit` nor rates. Counts towards `calls.detached`. */
export async function callInternally(engine: Engine, request: InternalRequest): Promise<Result> {
  checkOptions("call a handler", request, REQUEST);
  const { scheduler, core, registry } = engine;
  const call = new InternalCall(engine, request);
  const { attached } = request;
  if (attached !== undefined) {
    // The handler reads the values with what the authentication has created at its start.
    await core.startAuth?.();
    if (!await openAttached(core.sealer, call.principal, attached)) {
      throw new TypeError(
        "Cannot call a handler: attached is not for this principal; use the result of call.sealAttached() of a call with the same principal",
      );
    }
  }
  const { signal } = request;
  const report = observeRequest(core, call, call.link);
  if (report) call.observe(report, registry.methods.get(call.method)?.subject);
  const onAbort = () => {
    const cause: unknown = signal?.reason;
    call.cancel(new CancelError("extension", cause instanceof Error ? cause.message : undefined));
  };
  signal?.addEventListener("abort", onAbort);
  if (signal?.aborted) onAbort();
  try {
    const result = await run(engine, call, request.timeoutMs);
    report?.succeed(result);
    return result;
  } catch (error) {
    const known = scheduler.toError(error, call);
    if (report) report.fail(known);
    throw known;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    call.end();
  }
}

async function run(engine: Engine, call: Call, timeoutMs: number | undefined): Promise<Result> {
  const { core, scheduler } = engine;
  const start = async () => {
    const runner = await grant(call, engine, "internal");
    call.allowQuestions();
    const run = () => scheduler.runWithin(call, runner);
    return await (timeoutMs === undefined ? runLimited(call, core.ticker, run) : run());
  };
  const running = Promise.withResolvers<Result>();
  // Call `detach` before `allow` decides, because `detach` throws if the limit on detached calls is reached. An extension
  // may make many calls at once.
  const ending = scheduler.detach(call, running.promise, timeoutMs);
  if (!call.ended) running.resolve(start());
  const outcome = await ending;
  if (outcome?.result) return outcome.result;
  throw call.reason ?? outcome?.error;
}

/** A call without a request. The handler's messages are dropped, unless a layer of an extension redirects them. */
class InternalCall extends Call {
  readonly #made: OnceValues;

  constructor(engine: Engine, request: InternalRequest) {
    const { method, params = {}, principal: given, client = NOBODY, session, reads, data } = request;
    // Copy the parameters, because the handler may change its input.
    const text = JSON.stringify(params);
    const principal = given === undefined ? undefined : toOwn(given);
    const link = toLink(engine, principal, request);
    // NaN is not equal to any id, so no client can cancel the call.
    super(
      toHome(engine),
      link,
      { kind: "request", id: NaN, method, params: JSON.parse(text), weight: 0, text },
      client,
    );
    this.internal = { data };
    if (session) this.data = [freezeJson(session[0])];
    if (reads?.length) setReads(this, reads);
    this.#made = new OnceValues({ limits: engine.core.limits.calls, reserve: reserveMemory(engine.core, this) });
  }

  notify(): undefined {}

  askClient(key: string, _question: Question): Promise<unknown> {
    const state =
      "an extension made the call, so there is no client to ask; answer the question in the extension's wrap, with next({ ask })";
    return Promise.reject(new McpError(INVALID_REQUEST, `Cannot ask ${quote(key)}: ${state}`));
  }

  makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#made.get(key, make, options);
  }
}

/** Returns the link of an internal call. Messages that are sent over this link are dropped. */
function toLink(
  { accounts, tenant }: Engine,
  principal: Principal | undefined,
  { hasAllScopes, account }: InternalRequest,
): Link {
  return {
    ...SILENT,
    transport: "internal",
    inFlight: new InFlight(),
    account: accounts.find(principal ? `principal ${principal.id}` : account ?? undefined, tenant),
    principal,
    hasAllScopes,
  };
}

/** Returns a copy of a principal, because requests may share the principal, but not the values that are attached to it. */
function toOwn(given: Principal): Principal {
  const read = readPrincipal(given, "call()");
  const copy = copyPrincipal(read);
  shareAttached(read, copy);
  return copy;
}

const NOBODY: ClientInfo = { version: "", capabilities: {} };

function toHome({ core, host, registry }: Engine): CallHome {
  return {
    host,
    hasResultTypes: true,
    session: createSessionReader(core),
    subject: (call) => registry.findSubject(call),
  };
}
