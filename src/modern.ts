/**
 * The same library without the revisions up to 2025-11-25: smaller, and nothing is kept between requests.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp/modern";
 *
 * const now = tool({ name: "now", run: () => new Date().toISOString() });
 *
 * export default createServer({ name: "clock", version: "1.0.0", handlers: [now] });
 * ```
 *
 * @module
 */
import { modernEra } from "./eras/modern/modern.ts";
import { buildServer, type Server, type ServerOptions } from "./server.ts";

/** Creates a server that speaks revision 2026-07-28 alone. @throws {TypeError} if an option cannot be used. */
export function createServer(options: ServerOptions): Server {
  return buildServer(options, modernEra);
}

export * from "./names.ts";
