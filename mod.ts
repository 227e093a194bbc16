/**
 * An MCP server library for Deno and Bun: one server file runs over HTTP and over standard input and output, for
 * clients of every revision of the protocol.
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
import { legacyEra } from "./src/eras/legacy/legacy.ts";
import { modernEra } from "./src/eras/modern/modern.ts";
import { buildServer, type Server, type ServerOptions } from "./src/server.ts";

/**
 * Creates a server that speaks every revision of the protocol. Make it the default export of a file, and that file
 * runs with `deno serve`, `bun`, on Deno Deploy and Workers, and over standard input and output.
 *
 * @throws {TypeError} if an option cannot be used, or two handlers have the same name.
 */
export function createServer(options: ServerOptions): Server {
  return buildServer(options, (core) => modernEra(core, legacyEra(core)));
}

export * from "./src/names.ts";

// Started instead of imported, this file is the command line. Bundlers that keep `import.meta.main` would start it in
// place of the server that they bundled, were it not for the name; and they would pack it into every server, were it
// not for the second argument, which makes them leave the import as it is.
if (import.meta.main && /\/mod\.[jt]s$/.test(import.meta.url)) {
  import("./src/cli/main.ts", undefined).then(({ main }) => main());
}
