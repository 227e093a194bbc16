// Serves a server of this library, and prints the port. On Node, serves with the library's own `serve`, because Node has no
// server for web-standard requests.
import type { Server } from "../../mod.ts";
import { isNode, serve } from "./serve.ts";

export async function listen(server: Server, adapter?: string): Promise<void> {
  if (!isNode || adapter) return await serve(server.fetch);
  const own = await import("../../src/server/serve.ts");
  console.log((await own.serve(server, { port: 0 })).port);
}
