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
import { throwing } from "../support/throwing.ts";

const count = Number(process.env.CALLS ?? 1000);
/**
 * A timeout that never elapses, because the test kills the program earlier. On a loaded machine, the event loop can be
 * busy for a minute.
 */
const NEVER_MS = 3_600_000;
const tracer = trace.getTracer("test");

/** Installs the SDK. Returns a function that sends the remaining data. */
function install(): () => Promise<void> {
  if (process.env.OTEL_DENO === "true") return async () => {};
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const exporter = new OTLPTraceExporter({ timeoutMillis: NEVER_MS });
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: 1_000_000,
    exportTimeoutMillis: NEVER_MS,
  } as never);
  const tracers = new TracerProvider({ spanProcessors: [processor] });
  trace.setGlobalTracerProvider(tracers);
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ timeoutMillis: NEVER_MS }),
    exportIntervalMillis: NEVER_MS,
    exportTimeoutMillis: NEVER_MS,
  });
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
const limits = {
  request: { bodyMs: NEVER_MS },
  calls: { running: 100, runningPerClient: 100, timeoutMs: NEVER_MS },
};

/** Counts the requests that a server has received. */
class Arrivals {
  count = 0;
  #awaited = Infinity;
  #resolve = () => {};

  add(): void {
    if (++this.count >= this.#awaited) this.#resolve();
  }

  async until(count: number): Promise<void> {
    if (this.count >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    [this.#awaited, this.#resolve] = [count, resolve];
    await promise;
  }
}

async function serve(name: string, handlers: readonly Handler[]) {
  const server = createServer({ name, version: "1.0.0", handlers: [...handlers], observer: openTelemetry(), limits });
  const arrivals = new Arrivals();
  const http = await openHttpServer((request, info) => {
    arrivals.add();
    return server.fetch(request, info);
  });
  return { server, http, arrivals, url: `${http.origin}/mcp` };
}

/**
 * Number of calls that start together. If more connections arrive than the queue of a listening socket can hold while
 * the event loop is busy, the kernel drops or resets them.
 */
const GROUP = 100;

const flush = install();
for (const era of ["modern", "legacy"] as const) {
  const inner = await serve("inner", [
    tool({ name: "find", input: number, run: async ({ n }) => String(await query(Number(n))) }),
    tool({ name: "wrong", run: throwing(new ToolError("wrong: argument-5512")) }),
  ]);
  const options = { era, timeoutMs: NEVER_MS };
  const finder = await connect(inner.url, { ...options, use: [openTelemetryClient({ url: inner.url })] });
  const received = Promise.withResolvers<void>();
  const outer = await serve("outer", [
    tool({
      name: "order",
      input: number,
      async run({ n }) {
        await received.promise;
        return JSON.stringify((await finder.callTool("find", { n })).content);
      },
    }),
  ]);
  const client = await connect(outer.url, { ...options, use: [openTelemetryClient({ url: outer.url })] });
  await finder.callTool("wrong");
  const call = (n: number) =>
    tracer.startActiveSpan(`root ${era}`, { attributes: { n, era } }, async (span) => {
      await client.callTool("order", { n });
      span.end();
    });
  const calls: Promise<void>[] = [];
  const before = outer.arrivals.count;
  while (calls.length < count) {
    for (let left = Math.min(GROUP, count - calls.length); left; left--) calls.push(call(calls.length));
    await outer.arrivals.until(before + calls.length);
  }
  received.resolve();
  await Promise.all(calls);
  await client.close();
  await finder.close();
  for (const { server, http } of [outer, inner]) {
    await server.close();
    await http.stop();
  }
}
await flush();
console.log("done");
