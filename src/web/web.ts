/**
 * Lets agents in a browser use a server's tools through the page of a web app (WebMCP).
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { webMcp } from "@x/mcp/web";
 *
 * const time = tool({ name: "time", annotations: { readOnlyHint: true }, run: () => new Date().toISOString() });
 *
 * export default createServer({
 *   name: "clock",
 *   version: "1.0.0",
 *   handlers: [time],
 *   cors: { origins: ["https://app.example.com"] },
 *   routes: [webMcp()],
 * });
 * ```
 *
 * @see the draft of WebMCP by the Web Machine Learning Community Group
 * @module
 */
export { webMcp, type WebMcpOptions } from "./web_mcp.ts";
export type { WebMcpModule, WebMcpRegisterOptions, WebMcpRegistration, WebMcpRequest } from "./page.ts";
