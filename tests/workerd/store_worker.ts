// Three objects that share a store. Each request goes to the next object.
import { createServer, type Server } from "@x/mcp";
import { customStore } from "@x/mcp/stores";
// @ts-ignore: only Workers have this module.
import { DurableObject, env } from "cloudflare:workers";
import { handlers } from "../frameworks/probe_server.ts";
import { connectSlow } from "./slow_engine.ts";

export class McpObject extends DurableObject {
  readonly #server: Server = createServer({
    name: "stored",
    version: "1.0.0",
    handlers,
    store: customStore(connectSlow),
    secret: env.MCP_SECRET,
  });

  fetch(request: Request): Promise<Response> {
    return this.#server.fetch(request);
  }
}

let requests = 0;

export default {
  fetch: (request: Request): Promise<Response> => env.MCP.getByName(`${requests++ % 3}`).fetch(request),
};
