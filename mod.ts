/**
 * An MCP server library for Deno and Bun. A single file serves MCP over HTTP and stdio, to clients of every protocol
 * revision.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { z } from "zod";
 *
 * const add = tool({ name: "add", input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b });
 *
 * export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });
 * ```
 *
 * @module
 */
import { handOver } from "./src/hand_over.ts";

export * from "./src/library.ts";

if (import.meta.main) handOver(import.meta.url);
