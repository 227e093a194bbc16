/**
 * The library: servers that speak every revision of the protocol, and every public name.
 *
 * @module
 */
import { chooseEra } from "./eras/choose.ts";
import { lazyEra } from "./eras/lazy.ts";
import { modernEra } from "./eras/modern/modern.ts";
import { buildServer, type Server, type ServerOptions } from "./server.ts";

// All names but `createServer`: a declaration of this file's own takes precedence over the one of the same name there.
export * from "./modern.ts";

/**
 * Creates a server that speaks every revision of the protocol. Make it the default export of a file, and that file
 * runs with `deno serve`, `bun`, on Deno Deploy and Workers, and over standard input and output.
 *
 * @throws {TypeError} if an option cannot be used, or two handlers have the same name.
 */
export function createServer(options: ServerOptions): Server {
  return buildServer(options, (engine) => {
    const older = lazyEra(async () => (await import("./eras/legacy/legacy.ts")).legacyEra(engine));
    return chooseEra(modernEra(engine), older);
  });
}
