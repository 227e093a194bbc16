// An OpenTelemetry collector for tests, which accepts traces and metrics as OTLP in JSON over HTTP.
import { startHttpServer } from "../../src/testing/http_server.ts";

/** A span that the collector has received. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** The attribute `service.name` of the sending process. */
  readonly service?: string;
  /** 1 for an internal span, 2 for a server span, 3 for a client span. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** The status code 2 means an error. */
  readonly status: { readonly code?: number; readonly message?: string };
}

/** A histogram that the collector has received. */
export interface CollectedMetric {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly {
    readonly attributes: Readonly<Record<string, string | number | boolean>>;
    readonly explicitBounds: readonly number[];
    readonly count: number;
  }[];
}

/** A running collector, with the data that it has received. */
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
