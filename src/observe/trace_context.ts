/**
 * Reads and writes the trace context in `_meta`.
 *
 * @see specification/2026-07-28/basic#_meta
 */
import { type Context, createTraceState, propagation, type SpanContext, trace } from "@opentelemetry/api";

export interface TraceMeta {
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly baggage?: string;
}

const PARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:$|-)/;

/** Returns `base` with the span from `meta` as active span, or `undefined` if `meta` has no valid span. */
export function extractContext(base: Context, meta: TraceMeta): Context | undefined {
  const { traceparent, tracestate } = meta;
  if (traceparent === undefined) return;
  const extracted = propagation.extract(trace.deleteSpan(base), meta);
  if (trace.getSpanContext(extracted)) return extracted;
  // Parse the format that MCP requires, without the program's propagator, because the propagator may use another
  // format.
  const [, traceId, spanId, flags] = PARENT.exec(traceparent) ?? [];
  const read: SpanContext | undefined = traceId === undefined ? undefined : {
    traceId,
    spanId,
    traceFlags: parseInt(flags, 16) & 1,
    isRemote: true,
    traceState: tracestate === undefined ? undefined : createTraceState(tracestate),
  };
  return read && trace.isSpanContextValid(read) ? trace.setSpanContext(base, read) : undefined;
}

export function injectContext(from: Context): TraceMeta {
  const meta: Record<string, string> = {};
  propagation.inject(from, meta);
  const span = trace.getSpanContext(from);
  if (!span || meta.traceparent !== undefined) return meta;
  meta.traceparent = `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 1) ? "01" : "00"}`;
  const state = span.traceState?.serialize();
  if (state) meta.tracestate = state;
  return meta;
}
