/**
 * Spans and metrics of a server.
 */
import {
  type Context,
  context,
  createContextKey,
  createNoopMeter,
  type Histogram,
  INVALID_TRACEID,
  type Link,
  type Meter,
  type MetricAttributes,
  metrics,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { AskedEvent, CallEvent, Observer, SessionEvent, StartEvent } from "../server/call/observer.ts";
import {
  addNetwork,
  addOutcome,
  addTarget,
  type Attributes,
  BUCKETS,
  CLIENT_DURATION,
  describeOperation,
  describeSession,
  MAX_TEXT,
  SERVER_DURATION,
  SESSION_DURATION,
  toSpanUri,
  toTarget,
} from "./operation.ts";
import { SessionTimes } from "./session_times.ts";
import { extractContext } from "./trace_context.ts";

/** Options of {@linkcode openTelemetry}. */
export interface OpenTelemetryOptions {
  /** OpenTelemetry tracer for the spans. Defaults to the tracer named `@x/mcp` from the registered provider. */
  readonly tracer?: { startSpan(name: string, ...rest: never[]): object };
  /** OpenTelemetry meter for the metrics. Defaults to the meter named `@x/mcp` from the registered provider. */
  readonly meter?: { createHistogram(name: string, ...rest: never[]): object };
  /** Whether the status of a span contains the error message, which may quote arguments. Defaults to `false`. */
  readonly details?: boolean;
}

const OPTIONS: KnownOptions<keyof OpenTelemetryOptions> = {
  names: { tracer: true, meter: true, details: "boolean" },
};

/** Name of the default tracer and meter. */
export const NAME = "@x/mcp";

/** Context key that is set while a handler runs, to detect code that runs within a call. */
const IN_CALL = createContextKey("@x/mcp call");

/**
 * Creates an observer that records a span and a metric for each call, according to OpenTelemetry's conventions for MCP.
 * Spans that start within a handler, such as the span of a `fetch` or a database query, become children of the call's
 * span.
 *
 * The parent of a call's span is the span in the request's `_meta`. The call's span then links to the active span, such
 * as the span of the HTTP request. Without a span in `_meta`, the parent is the active span, or otherwise the span in
 * the header `traceparent`.
 *
 * Spans contain the URIs of resources, without the values of a query, and what layers have noted about a call, as
 * `mcp.note.` and the name. Spans contain no other arguments, no results or tokens, and no error messages unless
 * `details` is `true`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { openTelemetry } from "@x/mcp/observe/opentelemetry";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * export default createServer({ name: "greeter", version: "1.0.0", handlers: [hello], observer: openTelemetry() });
 * ```
 *
 * @throws {TypeError} if an option is unknown, or is not a tracer or a meter.
 * @see https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Observer {
  checkOptions("create the telemetry", options, OPTIONS);
  return new ServerSpans(options);
}

/**
 * Reads the tracer and the meter from the options.
 *
 * @throws {TypeError} for an object that is not a tracer or a meter, such as a provider.
 */
export function readParts(
  { tracer, meter }: Pick<OpenTelemetryOptions, "tracer" | "meter">,
): { readonly tracer: Tracer; readonly meter?: Meter } {
  if (tracer && typeof tracer.startSpan !== "function") {
    throw new TypeError("Cannot create the telemetry: tracer is not a tracer; use provider.getTracer(name)");
  }
  if (meter && typeof meter.createHistogram !== "function") {
    throw new TypeError("Cannot create the telemetry: meter is not a meter; use provider.getMeter(name)");
  }
  return {
    // The cast is safe, because the checks above found a tracer and a meter. The public option types list only the used
    // methods, because documentation cannot refer to types of another package.
    tracer: tracer as Tracer | undefined ?? trace.getTracer(NAME),
    meter: meter as Meter | undefined, // The cast is needed for the same reason.
  };
}

/** Durations in seconds. The histogram is created once the program has registered a meter provider. */
export class Durations {
  readonly #metric: { readonly name: string; readonly description: string };
  readonly #meter?: Meter;
  #histogram?: Histogram;

  constructor(metric: { readonly name: string; readonly description: string }, meter: Meter | undefined) {
    this.#metric = metric;
    this.#meter = meter;
  }

  /** Records a duration in milliseconds. Without a meter provider, does nothing, and does not call `build`. */
  record(ms: number, build: () => MetricAttributes, from?: Context): void {
    this.#histogram ??= this.#create();
    this.#histogram?.record(ms / 1000, build(), from);
  }

  // Until there is a meter provider, get the meter again for each duration, because existing meters do not use a
  // provider that is registered later.
  #create(): Histogram | undefined {
    const meter = this.#meter ?? metrics.getMeter(NAME);
    if (meter === NO_METER) return;
    const { name, description } = this.#metric;
    return meter.createHistogram(name, { unit: "s", description, advice: { explicitBucketBoundaries: [...BUCKETS] } });
  }
}

/** The meter of a program without a provider. */
const NO_METER = createNoopMeter();

interface Running {
  readonly span: Span;
  /** The context in which the call's handler runs. */
  readonly context: Context;
}

class ServerSpans implements Observer {
  readonly #tracer: Tracer;
  readonly #details: boolean;
  /** Keyed by id. Each entry is removed again, because the observer is always notified of the end of a call. */
  // Bound: `calls.running` and `calls.waiting`.
  readonly #running = new Map<number, Running>();
  readonly #times = new SessionTimes();
  readonly #calls: Durations;
  readonly #sessions: Durations;
  readonly #questions: Durations;

  constructor(options: OpenTelemetryOptions) {
    const { tracer, meter } = readParts(options);
    this.#tracer = tracer;
    this.#details = options.details === true;
    this.#calls = new Durations(SERVER_DURATION, meter);
    this.#sessions = new Durations(SESSION_DURATION, meter);
    this.#questions = new Durations(CLIENT_DURATION, meter);
  }

  start(event: StartEvent): void {
    const { id, parent, method } = event;
    const target = toTarget(event);
    const name = target === undefined ? method : `${method} ${target}`;
    const { base, link } = this.#findParent(event);
    const links: Link[] = link ? [{ context: link }] : [];
    const kind = parent === undefined ? SpanKind.SERVER : SpanKind.INTERNAL;
    const span = this.#tracer.startSpan(name, { kind, links }, base);
    if (span.isRecording()) span.setAttributes(addRequest(describeOperation(event), event));
    // Without an SDK, the trace id is invalid, so spans within the handler cannot become children of this span.
    else if (span.spanContext().traceId === INVALID_TRACEID) return;
    this.#running.set(id, { span, context: trace.setSpan(base, span).setValue(IN_CALL, true) });
  }

  around<T>({ id, method }: StartEvent, run: () => T): T {
    const running = this.#running.get(id);
    // Run a subscription outside of the span. A subscription can last for days, and later work must not become part of
    // its trace.
    if (!running || method === "subscriptions/listen") return run();
    return context.with(running.context, run);
  }

  call(event: CallEvent): void {
    const { id, durationMs, message } = event;
    const running = this.#running.get(id);
    this.#running.delete(id);
    this.#calls.record(durationMs, () => addOutcome(describeOperation(event), event), running?.context);
    if (!running) return;
    const { span } = running;
    if (span.isRecording()) {
      const end = addOutcome({}, event);
      for (const [name, text] of Object.entries(event.notes ?? {})) end[`mcp.note.${name}`] = text;
      span.setAttributes(end);
      if (end["error.type"] !== undefined) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: this.#details ? message : undefined });
      }
    }
    span.end();
  }

  /** Records a question to the client after its outcome is known. */
  asked(event: AskedEvent): void {
    const { parent, method, outcome, durationMs } = event;
    const attributes = addNetwork(addTarget({}, method, undefined), event);
    if (outcome === "failed") attributes["error.type"] = "_OTHER";
    // An open question was sent in the response instead of a request, so the server does not know when the client
    // answers.
    if (outcome !== "open") this.#questions.record(durationMs, () => attributes);
    const running = this.#running.get(parent);
    if (!running?.span.isRecording()) return;
    const startTime = Date.now() - durationMs;
    const span = this.#tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes, startTime }, running.context);
    if (outcome === "failed") span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }

  session(event: SessionEvent): void {
    const seconds = this.#times.end(event);
    if (seconds !== undefined) this.#sessions.record(seconds * 1000, () => describeSession(event));
  }

  /** Finds the context that contains the parent span of a call, and the context of a span to link to. */
  #findParent(event: StartEvent): { readonly base: Context; readonly link?: Link["context"] } {
    const { parent, httpTraceparent } = event;
    const outer = parent === undefined ? undefined : this.#running.get(parent);
    if (outer) return { base: outer.context };
    const active = isAmbient(event) ? context.active() : ROOT_CONTEXT;
    const ambient = trace.getSpan(active) ? active : extractContext(active, { traceparent: httpTraceparent }) ?? active;
    const sent = extractContext(active, event);
    return sent ? { base: sent, link: trace.getSpanContext(ambient) } : { base: ambient };
  }
}

/**
 * Whether the active context belongs to the request of the call. The active context of a queued call belongs to the
 * earlier call whose end let the queued call start. On Deno, a request may also arrive in the context of an earlier
 * call.
 */
function isAmbient({ waitedMs, transport }: StartEvent): boolean {
  if (waitedMs > 0) return false;
  return transport === "memory" || transport === "internal" || !context.active().getValue(IN_CALL);
}

/** In a metric, a value that differs between requests would create a time series per request. */
function addRequest(attributes: Attributes, event: StartEvent): Attributes {
  const { method, subject, request, session, peer } = event;
  if (request !== undefined) attributes["jsonrpc.request.id"] = String(request).slice(0, MAX_TEXT);
  if (session !== undefined) attributes["mcp.session.id"] = session;
  if (peer !== undefined) attributes["client.address"] = peer;
  const isResource = /^resources\/(?:read|subscribe|unsubscribe)$/.test(method);
  if (isResource && subject !== undefined) attributes["mcp.resource.uri"] = toSpanUri(subject);
  return attributes;
}
