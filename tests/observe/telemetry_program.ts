// Two servers with traces and metrics. Each call goes through both servers, to a query in the second server. The
// program sends its telemetry to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, through the SDK or, with OTEL_DENO,
// through Deno.
import { context, metrics, propagation, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import process from "node:process";
import { createServer, type Handler, tool, ToolError } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { openTelemetry, openTelemetryClient } from "../../src/observe/opentelemetry.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";

const count = Number(process.env.CALLS ?? 1000);
const tracer = trace.getTracer("test");

/** Installs the SDK. Returns a function that sends the remaining data. */
function install(): () => Promise<void> {
  if (process.env.OTEL_DENO === "true") return async () => {};
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const processor = new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), maxQueueSize: 1_000_000 } as never);
  const tracers = new TracerProvider({ spanProcessors: [processor] });
  trace.setGlobalTracerProvider(tracers);
  const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() });
  const meters = new MeterProvider({ readers: [reader] });
  metrics.setGlobalMeterProvider(meters);
  return async () => {
    await tracers.shutdown();
    await meters.shutdown();
  };
}

/**
 * Simulates a database client that creates spans. Queries have different durations, so they end in another order than
 * they start.
 */
async function query(n: number): Promise<number> {
  return await tracer.startActiveSpan("query", { kind: SpanKind.CLIENT, attributes: { n } }, async (span) => {
    // Fixed wait: queries that take different times, so that calls end in another order.
    await new Promise((resolve) => setTimeout(resolve, n % 7));
    span.end();
    return n;
  });
}

const number = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
const limits = { calls: { running: 100, runningPerClient: 100 } };

async function serve(name: string, handlers: readonly Handler[]) {
  const server = createServer({ name, version: "1.0.0", handlers: [...handlers], observer: openTelemetry(), limits });
  const http = await openHttpServer(server.fetch);
  return { server, http, url: `${http.origin}/mcp` };
}

const flush = install();
for (const era of ["modern", "legacy"] as const) {
  const inner = await serve("inner", [
    tool({ name: "find", input: number, run: async ({ n }) => String(await query(Number(n))) }),
    tool({
      name: "wrong",
      run() {
        throw new ToolError("wrong: argument-5512");
      },
    }),
  ]);
  const options = { era, timeoutMs: 120_000 };
  const finder = await connect(inner.url, { ...options, use: [openTelemetryClient({ url: inner.url })] });
  const outer = await serve("outer", [
    tool({
      name: "order",
      input: number,
      run: async ({ n }) => JSON.stringify((await finder.callTool("find", { n })).content),
    }),
  ]);
  const client = await connect(outer.url, { ...options, use: [openTelemetryClient({ url: outer.url })] });
  await finder.callTool("wrong");
  await Promise.all(
    Array.from(
      { length: count },
      (_, n) =>
        tracer.startActiveSpan(`root ${era}`, { attributes: { n, era } }, async (span) => {
          await client.callTool("order", { n });
          span.end();
        }),
    ),
  );
  await client.close();
  await finder.close();
  for (const { server, http } of [outer, inner]) {
    await server.close();
    await http.stop();
  }
}
await flush();
console.log("done");
