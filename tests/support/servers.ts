// Creates servers that close at the end of a test.
import { createServer, type Handler, type PathServerOptions, type Server } from "../../mod.ts";
import type { Schema } from "../../src/core/schema/schema.ts";
import type { TextParams } from "../../src/server/options.ts";
import { closeAtEnd } from "./running.ts";

/** The secret of servers with a store. */
const SECRET = "a secret of at least thirty-two characters";

/** Creates a server, and closes it at the end of the running test. Without `secret`, a server with a store has `SECRET`. */
export function openServer<
  const P extends Schema = TextParams,
  const H extends readonly Handler[] = readonly Handler[],
>(options: Partial<PathServerOptions<P, H>> = {}): Server<H> {
  const secret = options.store ? { secret: SECRET } : {};
  return closeAtEnd(createServer<P, H>({ name: "test", version: "1.0.0", ...secret, ...options }));
}
