/**
 * Spans and metrics of a client.
 */
import { context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { ClientMiddleware, ClientRequest } from "../client/request_middleware.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { addTarget, type Attributes, CLIENT_DURATION, toSpanUri } from "./operation.ts";
import { Durations, readParts } from "./server_spans.ts";
import { injectContext } from "./trace_context.ts";

/** Options of {@linkcode openTelemetryClient}. */
export interface OpenTelemetryClientOptions {
  /** OpenTelemetry tracer for the spans. Defaults to the tracer named `@x/mcp` from the registered provider. */
  readonly tracer?: { startSpan(name: string, ...rest: never[]): object };
  /** OpenTelemetry meter for the metrics. Defaults to the meter named `@x/mcp` from the registered provider. */
  readonly meter?: { createHistogram(name: string, ...rest: never[]): object };
  /** URL of the server, if the client connects over HTTP. The spans get its host and port as attributes. */
  readonly url?: string | URL;
}

const OPTIONS: KnownOptions<keyof OpenTelemetryClientOptions> = {
  names: {
    tracer: true,
    meter: true,
    url: { test: (url) => URL.canParse(String(url)), remedy: "it must be a valid URL" },
  },
};

/**
 * Creates middleware for the `use` option of a client. It records a span and a metric for each request, and sends the
 * trace context in `_meta`, so that the server's span becomes a child of the client's span.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { connect } from "@x/mcp/client";
 * import { openTelemetry, openTelemetryClient } from "@x/mcp/observe/opentelemetry";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello], observer: openTelemetry() });
 *
 * await using client = await connect(server, { use: [openTelemetryClient()] });
 * await client.callTool("hello");
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 * @see https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 */
export function openTelemetryClient(options: OpenTelemetryClientOptions = {}): ClientMiddleware {
  checkOptions("create the telemetry", options, OPTIONS);
  const { tracer, meter } = readParts(options);
  const network = toNetwork(options.url);
  const durations = new Durations(CLIENT_DURATION, meter);
  return async (request, next) => {
    const { method } = request;
    const target = readTarget(request);
    const attributes = { ...network, ...addTarget({}, method, target) };
    const span = tracer.startSpan(target === undefined ? method : `${method} ${target}`, { kind: SpanKind.CLIENT });
    const own = trace.setSpan(context.active(), span);
    if (span.isRecording()) span.setAttributes({ ...attributes, ...readUri(request) });
    const since = performance.now();
    const end = (error: Attributes) => {
      durations.record(performance.now() - since, () => ({ ...attributes, ...error }), own);
      endSpan(span, error);
    };
    const meta = isObject(request.params._meta) ? request.params._meta : {};
    const params = { ...request.params, _meta: { ...meta, ...injectContext(own) } };
    try {
      const result = await context.with(own, () => next({ ...request, params }));
      end(result.isError === true ? { "error.type": "tool_error" } : {});
      return result;
    } catch (error) {
      end(toErrorType(error));
      throw error;
    }
  };
}

function endSpan(span: Span, error: Attributes): void {
  if (error["error.type"] !== undefined) {
    span.setAttributes(error);
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function readTarget({ method, params: { name } }: ClientRequest): string | undefined {
  return (method === "tools/call" || method === "prompts/get") && typeof name === "string" ? name : undefined;
}

function readUri({ method, params: { uri } }: ClientRequest): Attributes {
  return method.startsWith("resources/") && typeof uri === "string" ? { "mcp.resource.uri": toSpanUri(uri) } : {};
}

function toErrorType(error: unknown): Attributes {
  const { code, name } = isObject(error) || error instanceof Error ? Object(error) : {};
  if (name === "TimeoutError") return { "error.type": "timeout" };
  if (name === "AbortError") return { "error.type": "cancelled" };
  // Ignore the `code` of a DOM exception, because it is not a JSON-RPC error code.
  if (typeof code !== "number" || code === 0 || error instanceof DOMException) return { "error.type": "_OTHER" };
  return { "error.type": String(code), "rpc.response.status_code": String(code) };
}

function toNetwork(url: string | URL | undefined): Readonly<Record<string, string | number>> {
  if (url === undefined) return {};
  const { hostname, port, protocol } = new URL(url);
  return {
    "network.transport": "tcp",
    "network.protocol.name": "http",
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
}
