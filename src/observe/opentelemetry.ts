/**
 * Traces and metrics with OpenTelemetry, by its conventions for MCP. This entry uses `@opentelemetry/api` only: the SDK and
 * its context manager are those of the program, or those of the runtime.
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
