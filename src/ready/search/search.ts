/**
 * A search for tools, for servers with more tools than a model should read: progressive discovery.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { toolSearch } from "@x/mcp/search";
 *
 * const forecast = tool({ name: "forecast", description: "Forecasts the weather", run: () => "Sunny." });
 * // … and hundreds of other tools.
 *
 * export default createServer({ name: "weather", version: "1.0.0", handlers: [forecast, toolSearch()] });
 * ```
 *
 * @module
 */
export { type SearchedTool, toolSearch, type ToolSearchOptions } from "./tool_search.ts";
