/**
 * Reports one request to the observer: that it was refused, or the start and the end of its call.
 *
 * @module
 */
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  UNSUPPORTED_VERSION,
} from "../protocol/errors.ts";
import { isObject, type Request, type Result } from "../protocol/jsonrpc.ts";
import type { ClientFacts } from "./context.ts";
import type { Core } from "./core.ts";
import type { Link } from "./link.ts";
import { reachNamed } from "./reached_limits.ts";
import { BUSY } from "./scheduler.ts";
import type {
  CallEvent,
  CancelReason,
  EventSource,
  RefusalReason,
  RefusedEvent,
  RequestReport,
  StartEvent,
} from "./observer.ts";

/** Tests whether anybody hears of requests. */
export function isObserved({ observer: { start, call, refused, limit, subscription } }: Core): boolean {
  return !!(start ?? call ?? refused ?? limit ?? subscription);
}

/** Creates the report of a request that has just been received. */
export function observeRequest(core: Core, message: Request, link: Link): RequestReport {
  return new ObservedCall(core, message, link);
}

/** One observed request. It keeps no parameters, because a subscription may last for days. */
class ObservedCall implements RequestReport {
  why?: CancelReason;
  readonly #core: Core;
  readonly #link: Link;
  readonly #method: string;
  readonly #trace: Pick<StartEvent, "traceparent" | "tracestate" | "baggage">;
  readonly #since: number;
  #client?: ClientFacts;
  #subject?: string;
  #event?: StartEvent;
  #hasEnded = false;

  /** Creates the report of a request that has just been received. */
  constructor(core: Core, { method, params }: Request, link: Link) {
    this.#core = core;
    this.#link = link;
    this.#method = method;
    this.#since = core.ticker.clock.now();
    const meta = isObject(params?._meta) ? params._meta : {};
    this.#trace = {
      traceparent: toTrace(meta.traceparent, 100),
      tracestate: toTrace(meta.tracestate, 512),
      baggage: toTrace(meta.baggage, 8192),
    };
  }

  identify(client: ClientFacts, subject?: unknown): void {
    this.#client = client;
    this.#subject = typeof subject === "string" ? subject.slice(0, MAX_NAME) : undefined;
  }

  /** Reports that the call starts. Only the first time counts. */
  start(): void {
    if (this.#event) return;
    const { version = "", info } = this.#client ?? {};
    const event = this.#event = {
      id: nextId++,
      method: this.#method,
      subject: this.#subject,
      ...toSource(this.#link),
      revision: version,
      client: info,
      ...this.#trace,
      waitedMs: this.#core.ticker.clock.now() - this.#since,
    };
    this.#core.observer.start?.(event);
  }

  /** Reports the result of the call. */
  succeed({ isError, resultType }: Result): void {
    this.#end({ outcome: resultType === "input_required" ? resultType : isError === true ? "tool_error" : "result" });
  }

  fail(error: { readonly code: number; readonly message: string }, status?: number): void {
    const { code, message } = error;
    if (!this.#event) {
      refuse(this.#core, this.#link, {
        reason: REASONS[code] ?? "message",
        code,
        message,
        status,
        method: this.#method,
      });
    } else {
      reachNamed(this.#core, message);
      this.#end({ outcome: this.why ? "cancelled" : "error", why: this.why, code });
    }
  }

  cancel(): void {
    this.#end({ outcome: "cancelled", why: this.why ?? "disconnected" });
  }

  #end(end: Pick<CallEvent, "outcome" | "why" | "code">): void {
    if (!this.#event || this.#hasEnded) return;
    this.#hasEnded = true;
    const durationMs = this.#core.ticker.clock.now() - this.#since;
    this.#core.observer.call?.({ ...this.#event, ...end, durationMs });
  }
}

let nextId = 1;

/** Returns a text of the trace context. Longer ones than the standard allows are dropped. */
function toTrace(value: unknown, max: number): string | undefined {
  return typeof value === "string" && value.length <= max ? value : undefined;
}

/** Maximum characters of a name from a client. */
const MAX_NAME = 200;

/** Returns the source of a message. */
export function toSource({ transport, principal }: Pick<Link, "transport" | "principal">): EventSource {
  return { transport, principal: principal?.id };
}

/** A rejection without the source of its request. */
export type Rejected = Omit<RefusedEvent, keyof EventSource | "limit">;

/** Reports a request or a message that was rejected before it became a call. */
export function refuse(
  core: Core,
  link: Pick<Link, "transport" | "principal" | "http">,
  { status = 200, method, reason, ...rest }: Rejected,
): void {
  const limit = reachNamed(core, rest.message);
  core.observer.refused?.({
    ...toSource(link),
    status: link.http && status,
    reason: limit ? "limit" : reason,
    ...rest,
    limit,
    method: method?.slice(0, MAX_NAME),
  });
}

/** Words for the errors that reject a request before it becomes a call. */
const REASONS: Readonly<Record<number, RefusalReason>> = {
  [METHOD_NOT_FOUND]: "method",
  [INVALID_PARAMS]: "params",
  [HEADER_MISMATCH]: "header",
  [MISSING_CAPABILITY]: "capability",
  [UNSUPPORTED_VERSION]: "revision",
  [INTERNAL_ERROR]: "fault",
  [BUSY]: "closing",
  [-31_403]: "scope",
};
