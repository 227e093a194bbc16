/**
 * Ready-made handlers and tool options: tools and resources that send HTTP requests, resources for files and folders,
 * and a cache, retries and a circuit breaker for tools.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { cache, circuit, retry } from "@x/mcp/handlers";
 *
 * const forecast = tool({
 *   name: "forecast",
 *   annotations: { readOnlyHint: true },
 *   cache: cache({ ttlMs: 60_000 }),
 *   retry: retry({ attempts: 3 }),
 *   circuit: circuit({ failures: 5, retryMs: 10_000 }),
 *   run: async (_input, { signal }) => (await fetch("https://weather.example.com/today", { signal })).json(),
 * });
 *
 * export default createServer({ name: "weather", version: "1.0.0", handlers: [forecast] });
 * ```
 *
 * @module
 */
export { cache, type CacheOptions, type ToolCache } from "./cache.ts";
export { circuit, type CircuitOptions } from "./circuit.ts";
export { file, type FileOptions } from "./file.ts";
export { folder, type FolderOptions } from "./folder.ts";
export { httpResource, type HttpResourceOptions } from "./http_resource.ts";
export { type HttpLimits, httpTool, type HttpToolOptions, type HttpToolRequest } from "./http_tool.ts";
export { retry, type RetryOptions } from "./retry.ts";
export type { LocalOptions } from "./local_options.ts";
export type { SelectErrors } from "./failures.ts";
export type { Step, StepName } from "../core/visibility/run_steps.ts";
