/**
 * Builds the events of one request for a server's observers.
 */
import {
  BUSY,
  HEADER_MISMATCH,
  INSUFFICIENT_SCOPE,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  REACHED,
  UNSUPPORTED_VERSION,
} from "../../core/protocol/errors.ts";
import { type Id, isObject, type Request, type Result } from "../../core/protocol/jsonrpc.ts";
import type { ClientInfo } from "../call/context.ts";
import { isQuestion } from "../call/question.ts";
import type { Core } from "./core.ts";
import type {
  AskedEvent,
  CallEvent,
  CancelReason,
  Origin,
  RefusalReason,
  ReportedError,
  RequestReport,
  StartEvent,
} from "../call/observer.ts";

let nextId = 1;

type Trace = Pick<StartEvent, "traceparent" | "tracestate" | "baggage">;

const NO_TRACE: Trace = { traceparent: undefined, tracestate: undefined, baggage: undefined };

/** Returns `undefined` if no observer handles the report's events. */
export function observeRequest(core: Core, message: Observed, origin: Origin): RequestReport | undefined {
  if (core.observing?.handlesRequests) return new ObservedCall(core, message, origin);
}

type CallEnd = Pick<CallEvent, "outcome" | "why" | "code" | "message" | "resultType">;

/** A request, or a part of a request without an id. */
type Observed = Pick<Request, "method" | "params"> & { readonly id?: Id };

/** Does not refer to the request's parameters, because a subscription may last for days. */
class ObservedCall implements RequestReport {
  why?: CancelReason;
  reason?: RefusalReason;
  deprecated?: boolean;
  notes?: StartEvent["notes"];
  readonly #core: Core;
  readonly #origin: Origin;
  readonly #id: number = nextId++;
  readonly #request?: Id;
  readonly #parent?: number;
  readonly #method: string;
  readonly #trace: Trace;
  readonly #since: number;
  #client?: ClientInfo;
  #session?: string;
  #subject?: string;
  /** Milliseconds that the call has waited. Set when the call starts. */
  #waitedMs?: number;
  /** Time at which the call began to wait in a queue, in milliseconds. Set while the call waits. */
  #waitsSince?: number;
  #hasEnded = false;
  /** Address of the client. Set when the call starts. */
  #peer?: string;
  /** The start event, if `around` also needs it, because building it takes as long as the rest of the report. */
  #started?: StartEvent;

  /** `parent` is the id of the outer call. */
  constructor(
    core: Core,
    { id, method, params }: Observed,
    origin: Origin,
    parent?: number,
  ) {
    this.#core = core;
    this.#origin = origin;
    // NaN is the id of a call without a request.
    this.#request = Number.isNaN(id) ? undefined : id;
    this.#parent = parent;
    this.#method = method;
    // Read the clock only if an observer handles events that contain a time, because reading the clock takes as long as
    // the rest of the report.
    this.#since = core.observing?.now() ?? 0;
    this.#trace = readTrace(params?._meta);
  }

  identify(client: ClientInfo, subject?: unknown, session?: string): void {
    this.#client = client;
    this.#subject = typeof subject === "string" ? subject : undefined;
    this.#session = session;
  }

  part(method: string, subject: string | undefined): RequestReport {
    const part = new ObservedCall(this.#core, { method }, this.#origin, this.#id);
    if (this.#client) part.identify(this.#client, subject, this.#session);
    return part;
  }

  around<T>(run: () => T): T {
    const { around } = this.#core.observer;
    return around ? around(this.#started ?? this.#describe(), run) : run();
  }

  async ask<T>(method: string, answer: Promise<T>): Promise<T> {
    const { asked } = this.#core.observer;
    if (!asked) return await answer;
    const since = this.#now();
    const { transport, principal } = this.#origin;
    const end = (outcome: AskedEvent["outcome"]) => {
      const durationMs = this.#now() - since;
      asked({ transport, principal: principal?.id, parent: this.#id, method, outcome, durationMs });
    };
    try {
      const answered = await answer;
      end("answered");
      return answered;
    } catch (error) {
      end(isQuestion(error) ? "open" : "failed");
      throw error;
    }
  }

  wait(): void {
    this.#waitsSince = this.#waitedMs === undefined ? this.#since : this.#now();
  }

  start(): void {
    const hasStarted = this.#waitedMs !== undefined;
    this.#waitedMs = this.#countWait();
    if (hasStarted) return;
    // Read the address now, because a runtime drops the request's headers when the client disconnects.
    this.#peer = this.#origin.peer;
    const { start, around } = this.#core.observer;
    if (!start && !around) return;
    const event = this.#describe();
    if (around) this.#started = event;
    start?.(event);
  }

  // Read the clock only if the call has waited, because reading the clock takes as long as the rest of the report.
  #countWait(): number {
    const before = this.#waitedMs ?? 0;
    if (this.#waitsSince === undefined) return before;
    const now = this.#now() - this.#waitsSince;
    this.#waitsSince = undefined;
    return before + now;
  }

  #describe(): StartEvent {
    const { transport, principal } = this.#origin;
    const { traceparent, tracestate, baggage } = this.#trace;
    return {
      id: this.#id,
      parent: this.#parent,
      request: this.#request,
      session: this.#session,
      peer: this.#peer,
      method: this.#method,
      subject: this.#subject,
      transport,
      principal: principal?.id,
      revision: this.#client?.version ?? "",
      client: this.#client?.info,
      traceparent,
      tracestate,
      baggage,
      httpTraceparent: this.#readHeader(),
      notes: this.notes,
      waitedMs: this.#waitedMs ?? 0,
    };
  }

  // Read the header only if an observer has `around`. Only tracing uses the header, and reading the header takes as
  // long as building the rest of the event.
  #readHeader(): string | undefined {
    return this.#core.observer.around && toTrace(this.#origin.headers?.get("traceparent"), 100);
  }

  succeed({ isError, resultType }: Result): void {
    if (resultType === "input_required") return this.#end({ outcome: resultType });
    const type = typeof resultType === "string" && resultType !== "complete" ? resultType : undefined;
    this.#end({ outcome: isError === true ? "tool_error" : "result", resultType: type });
  }

  fail(error: ReportedError, status?: number): void {
    const { code, message, [REACHED]: limits } = error;
    if (this.#waitedMs === undefined) {
      const reason = this.reason ?? REASONS[code] ?? "message";
      this.#core.observing?.refuse(this.#origin, {
        reason,
        code,
        message,
        status,
        method: this.#method,
        [REACHED]: limits,
      });
    } else {
      this.#core.observing?.reachBy(error);
      this.#end({ outcome: this.why ? "cancelled" : "error", why: this.why, code, message });
    }
  }

  cancel(): void {
    this.#end({ outcome: "cancelled", why: this.why ?? "disconnected" });
  }

  #now(): number {
    return this.#core.ticker.clock.now();
  }

  #end({ outcome, why, code, message, resultType }: CallEnd): void {
    if (this.#waitedMs === undefined || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#core.observer.call?.({
      ...this.#started ?? this.#describe(),
      notes: this.notes,
      waitedMs: this.#countWait(),
      durationMs: this.#now() - this.#since,
      outcome,
      why,
      code,
      message,
      resultType,
      deprecated: this.deprecated,
    });
  }
}

function readTrace(meta: unknown): Trace {
  if (!isObject(meta)) return NO_TRACE;
  const { traceparent, tracestate, baggage } = meta;
  if (traceparent === undefined && tracestate === undefined && baggage === undefined) return NO_TRACE;
  return {
    traceparent: toTrace(traceparent, 100),
    tracestate: toTrace(tracestate, 512),
    baggage: toTrace(baggage, 8192),
  };
}

/** Returns a field of the trace context, or `undefined` if the text is longer than `max` characters. */
function toTrace(value: unknown, max: number): string | undefined {
  return typeof value === "string" && value.length <= max ? value : undefined;
}

/** The reasons why a request was rejected before the start of a call, by error code. */
const REASONS: Readonly<Record<number, RefusalReason>> = {
  [METHOD_NOT_FOUND]: "method",
  [INVALID_REQUEST]: "session",
  [INVALID_PARAMS]: "params",
  [HEADER_MISMATCH]: "header",
  [MISSING_CAPABILITY]: "capability",
  [UNSUPPORTED_VERSION]: "revision",
  [INTERNAL_ERROR]: "fault",
  [BUSY]: "closing",
  [INSUFFICIENT_SCOPE]: "scope",
};
