/**
 * Traces and metrics that follow OpenTelemetry's conventions for MCP. This entry imports only `@opentelemetry/api`. The
 * program or the runtime provides the SDK and its context manager.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { openTelemetry } from "@x/mcp/observe/opentelemetry";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * export default createServer({ name: "greeter", version: "1.0.0", handlers: [hello], observer: openTelemetry() });
 * ```
 *
 * @see https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 * @module
 */
export { openTelemetry, type OpenTelemetryOptions } from "./server_spans.ts";
export { openTelemetryClient, type OpenTelemetryClientOptions } from "./client_spans.ts";
