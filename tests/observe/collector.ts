// An OpenTelemetry collector for tests: it accepts traces and metrics as OTLP over HTTP, in JSON.
import { startHttpServer } from "../../src/testing/http_server.ts";

/** A span as it arrived. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** The attribute `service.name` of the process. */
  readonly service?: string;
  /** The kind of the span: 1 is internal, 2 is server, 3 is client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** The status of the span: 2 is an error. */
  readonly status: { readonly code?: number; readonly message?: string };
}

/** A histogram as it arrived. */
export interface CollectedMetric {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly {
    readonly attributes: Readonly<Record<string, string | number | boolean>>;
    readonly explicitBounds: readonly number[];
    readonly count: number;
  }[];
}

/** The data that has arrived. */
export interface Collector extends AsyncDisposable {
  readonly origin: string;
  readonly spans: readonly CollectedSpan[];
  readonly metrics: readonly CollectedMetric[];
}

/** Starts a collector on a free port. */
export function startCollector(): Collector {
  const spans: CollectedSpan[] = [];
  const metrics: CollectedMetric[] = [];
  const server = startHttpServer(async (request) => {
    const { pathname } = new URL(request.url);
    const isPacked = request.headers.get("content-encoding") === "gzip";
    const body = isPacked ? request.body?.pipeThrough(new DecompressionStream("gzip")) : request.body;
    const data = await new Response(body).json();
    if (pathname === "/v1/traces") spans.push(...readSpans(data));
    if (pathname === "/v1/metrics") metrics.push(...readMetrics(data));
    return Response.json({});
  });
  return { origin: server.origin, spans, metrics, [Symbol.asyncDispose]: () => server.stop() };
}

// deno-lint-ignore no-explicit-any
type Json = any;

function readSpans({ resourceSpans }: Json): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: Json) =>
    scopeSpans.flatMap((scope: Json) =>
      scope.spans.map((span: Json) => ({
        ...span,
        service: readAttributes(resource.attributes)["service.name"],
        parentSpanId: span.parentSpanId || undefined,
        links: span.links ?? [],
        status: span.status ?? {},
        attributes: readAttributes(span.attributes),
      }))
    )
  );
}

function readMetrics({ resourceMetrics }: Json): CollectedMetric[] {
  return resourceMetrics.flatMap(({ scopeMetrics }: Json) =>
    scopeMetrics.flatMap((scope: Json) =>
      scope.metrics.filter(({ histogram }: Json) => histogram).map(({ name, unit, histogram }: Json) => ({
        name,
        unit,
        points: histogram.dataPoints.map(({ attributes, explicitBounds, count }: Json) => ({
          attributes: readAttributes(attributes),
          explicitBounds,
          count: Number(count),
        })),
      }))
    )
  );
}

function readAttributes(attributes: Json = []): Record<string, string | number | boolean> {
  return Object.fromEntries(attributes.map(({ key, value }: Json) => {
    const [[type, read]] = Object.entries<Json>(value);
    return [key, type === "intValue" ? Number(read) : read];
  }));
}
