// Measures what telemetry adds to a call: the CPU time of a server with openTelemetry(), relative to a server without
// telemetry. The two servers run in one process and take turns. The CPU time includes threads of the runtime, such as
// Deno's exporter. Run the benchmark for each case, on each runtime:
//
//   deno run -A --no-check bench/telemetry.ts sdk
//   deno run -A --no-check bench/telemetry.ts api
//   OTEL_DENO=true OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9 deno run -A --no-check bench/telemetry.ts deno
//   OTEL_DENO=true OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9 deno run -A --no-check bench/telemetry.ts least
//   bun --preload ./tests/support/bun_imports.ts bench/telemetry.ts sdk
//
// `sdk` uses the SDK with spans and metrics, and with exporters that discard all data. `api` uses no SDK. `none` uses
// no telemetry in either server, and shows the noise of the machine. `least` creates a span and a measurement as
// openTelemetry() does, but without openTelemetry(), and sets no context for the handler. With a second argument
// `http`, the calls are sent over HTTP, and the CPU time includes the client's CPU time.
import { context, metrics, propagation, type Span, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import process from "node:process";
import { createServer, type Observer, type Server, tool } from "../mod.ts";
import { openTelemetry } from "../src/observe/opentelemetry.ts";
import { openHttpServer } from "../src/testing/http_server.ts";
import { toRequest } from "../tests/support/requests.ts";

const discard: SpanExporter = {
  export: (_spans, callback) => callback({ code: 0 }),
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};

if (process.argv[2] === "sdk") {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter: discard })] }),
  );
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] }));
}

/** Returns an observer that does only the work that a span and a metric per call require. */
function toLeast(): Observer {
  const operation = {
    "mcp.method.name": "tools/call",
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "add",
    "mcp.protocol.version": "2026-07-28",
    "network.transport": "tcp",
    "network.protocol.name": "http",
  };
  const tracer = trace.getTracer("least");
  const histogram = metrics.getMeter("least").createHistogram("mcp.server.operation.duration", { unit: "s" });
  const spans = new Map<number, Span>();
  return {
    start({ id }) {
      const span = tracer.startSpan("tools/call add", { kind: SpanKind.SERVER });
      span.setAttributes({ ...operation, "jsonrpc.request.id": "1", "client.address": "127.0.0.1" });
      spans.set(id, span);
    },
    call({ id, durationMs }) {
      histogram.record(durationMs / 1000, operation);
      spans.get(id)?.end();
      spans.delete(id);
    },
  };
}

const number = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } } as const;
const add = tool({ name: "add", input: number, run: ({ a, b }) => String(Number(a) + Number(b)) });
const about = { name: "calc", version: "1.0.0", handlers: [add] };
const plain = createServer(about);
const makers: Record<string, () => Observer | undefined> = { none: () => undefined, least: toLeast };
const observer = (makers[process.argv[2]] ?? openTelemetry)();
const observed = createServer({ ...about, observer });

/** Makes calls, and returns the CPU time per call in microseconds. */
async function measure(server: Server, calls: number): Promise<number> {
  const since = process.cpuUsage();
  for (let left = calls; left; left--) {
    const request = toRequest("tools/call", { name: "add", arguments: { a: 2, b: 3 } });
    const url = urls?.get(server);
    // Send the body as a string, because copying the request to another URL would turn the body into a stream.
    const sent = url === undefined
      ? undefined
      : { method: "POST", headers: request.headers, body: await request.text() };
    await (await (sent && url !== undefined ? fetch(url, sent) : server.fetch(request))).text();
  }
  const { user, system } = process.cpuUsage(since);
  return (user + system) / calls;
}

/** The URLs of the servers, if the calls are sent over HTTP. */
const urls = process.argv[3] === "http" ? new Map<Server, string>() : undefined;
for (const server of urls ? [plain, observed] : []) {
  urls?.set(server, `${(await openHttpServer(server.fetch)).origin}/mcp`);
}

/** Number of calls in one turn. A turn must take many milliseconds, because CPU time has a resolution of about 1 ms. */
const CALLS = urls ? 1000 : 4000;
/** Returns a quantile of the values, such as the median for a `part` of 0.5. */
const quantile = (values: number[], part: number) => values.toSorted((a, b) => a - b)[Math.floor(values.length * part)];
await measure(plain, 5000);
await measure(observed, 5000);
const ratios: number[] = [];
const times: [number[], number[]] = [[], []];
for (let pair = 0; pair < 40; pair++) {
  const order = pair % 2 ? [observed, plain] : [plain, observed];
  const taken = new Map<Server, number>();
  for (const server of order) taken.set(server, await measure(server, CALLS));
  const [without, within] = [taken.get(plain) ?? NaN, taken.get(observed) ?? NaN];
  times[0].push(without);
  times[1].push(within);
  ratios.push(within / without);
}
const [without, within] = times.map((each) => quantile(each, 0.5).toFixed(1));
const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(ratios, part).toFixed(2));
console.log(
  `${
    process.argv[2]
  }: ${without} µs without telemetry, ${within} µs with telemetry; × ${middle} (quartiles ${low}–${high})`,
);
process.exit();
