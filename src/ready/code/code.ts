/**
 * Code mode: instead of calling many tools one after the other, a model writes a program that calls them.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { codeMode } from "@x/mcp/code";
 *
 * const forecast = tool({ name: "forecast", description: "Forecasts the weather", run: () => "Sunny." });
 * // … and hundreds of other tools.
 *
 * export default createServer({ name: "weather", version: "1.0.0", handlers: [forecast, codeMode()] });
 * ```
 *
 * @module
 */
export { codeMode, type CodeModeOptions, type ProgramLimits } from "./code_mode.ts";
export type { Sandbox, SandboxCall, SandboxLimits, SandboxResult } from "./sandbox.ts";
