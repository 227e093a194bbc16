/**
 * The library: `createServer` for every protocol revision, and all public names.
 *
 * @module
 */
import { chooseEra, LazySessionEra, modernEra } from "./eras/eras.ts";
import type { Schema } from "./modern.ts";
import { buildServer, type Server } from "./server/server.ts";
import type { RouteServerOptions, TextParams } from "./server/options.ts";

// `createServer` below takes precedence over the one that this exports.
export * from "./modern.ts";

/**
 * Creates an MCP server for clients of every protocol revision.
 *
 * A file with the server as its default export runs with `deno serve` and `bun`, on Deno Deploy and Workers, and over
 * stdio.
 *
 * @throws {TypeError} if an option is invalid, or two handlers have the same name.
 */
export function createServer<const P extends Schema = TextParams>(options: RouteServerOptions<P>): Server {
  return buildServer(options, (engine) => {
    const older = new LazySessionEra(async () => (await import("./eras/legacy/legacy.ts")).legacyEra(engine));
    return chooseEra(modernEra(engine), older);
  });
}
