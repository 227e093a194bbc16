/**
 * Ready-made handlers: tools and resources that send HTTP requests, resources for files and folders, and tools that read
 * resources. `sendRequest` sends a request with the same limits as these tools.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { httpTool } from "@x/mcp/handlers";
 *
 * const forecast = httpTool({ name: "forecast", url: "https://weather.example.com/today" });
 *
 * export default createServer({ name: "weather", version: "1.0.0", handlers: [forecast] });
 * ```
 *
 * @module
 */
export { asTools, type AsToolsOptions } from "./as_tools.ts";
export { file, type FileOptions } from "./file.ts";
export { folder, type FolderOptions } from "./folder.ts";
export { httpResource, type HttpResourceOptions } from "./http_resource.ts";
export { type RequestLimits, sendRequest } from "./http_request.ts";
export { type HttpLimits, httpTool, type HttpToolOptions, type HttpToolRequest } from "./http_tool.ts";
export type { LocalOptions } from "./local_options.ts";
