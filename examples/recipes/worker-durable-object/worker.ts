// A Worker that checks each request, and forwards it to the Durable Object of its user.
import type { Server } from "@x/mcp";
import { DurableObject, env } from "cloudflare:workers";
import { create, type Storage } from "./server.ts";

/** KEYS is JSON, such as {"ada":"ada-2f6c1e0b9d4a7853"}, and HOSTS the public host names, separated by commas. */
const open = (storage?: Storage): Server =>
  create({ keys: JSON.parse(env.KEYS), secret: env.MCP_SECRET, hosts: env.HOSTS?.split(","), storage });

/** Cloudflare sets this header on each request, so clients cannot choose its value. */
const toAddress = ({ headers }: Request) => ({ hostname: headers.get("cf-connecting-ip") ?? "" });

/** Serves all requests of one user. */
export class McpObject extends DurableObject {
  readonly #server: Server;

  constructor(ctx: { readonly storage: Storage }, bindings: unknown) {
    super(ctx, bindings);
    this.#server = open(ctx.storage);
  }

  fetch(request: Request): Promise<Response> {
    return this.#server.fetch(request, { remoteAddr: toAddress(request) });
  }
}

/** Checks the requests, and serves none of them. */
const front: Server = open();

export default {
  fetch: (request: Request): Promise<Response> =>
    front.fetch(request, {
      remoteAddr: toAddress(request),
      // Only callers whom `auth` has accepted have an object of their own.
      forward: (checked, { principal }) =>
        env.MCP.getByName(principal ? `user ${principal.id}` : "everyone").fetch(checked),
    }),
};
