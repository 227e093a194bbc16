// A Worker that checks each request, and forwards it to the Durable Object of its user.
import type { Server } from "@x/mcp";
import { DurableObject, env } from "cloudflare:workers";
import { create } from "./server.ts";

/** Cloudflare sets this header on each request, so clients cannot choose its value. */
const toAddress = ({ headers }: Request) => ({ hostname: headers.get("cf-connecting-ip") ?? "" });

/** Serves all requests of one user. */
export class McpObject extends DurableObject {
  readonly #server: Server = create();

  fetch(request: Request): Promise<Response> {
    return this.#server.fetch(request, { remoteAddr: toAddress(request) });
  }
}

/** Checks the requests, and serves none of them. */
const front: Server = create();

export default {
  fetch: (request: Request): Promise<Response> =>
    front.fetch(request, {
      remoteAddr: toAddress(request),
      // Only callers whom `auth` has accepted have an object of their own.
      forward: (checked, { principal }) =>
        env.MCP.getByName(principal ? `user ${principal.id}` : "everyone").fetch(checked),
    }),
};
