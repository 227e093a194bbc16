// The MCP server: users have API keys, and instances share a store.
import { createServer, type Server, tool } from "@x/mcp";
import { apiKey, requirePrincipal } from "@x/mcp/auth";
import { quota } from "@x/mcp/layers";
import { health } from "@x/mcp/observe";
import type { Store } from "@x/mcp/stores";
import { z } from "zod";

export interface Settings {
  /** The key of each user, by name. */
  readonly keys: Readonly<Record<string, string>>;
  readonly secret?: string;
  readonly store?: Store;
  readonly hosts?: readonly string[];
}

export function create({ keys, secret, store, hosts }: Settings): Server {
  const remember = tool({
    name: "remember",
    title: "Remember a fact",
    description: "Remembers a fact for the user until the user forgets it",
    input: z.object({ fact: z.string().min(1) }),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    use: [quota({ rate: { calls: 30, perMs: 60_000 } })],
    run: async ({ fact }, ctx) => {
      const schema = z.object({ sure: z.boolean() });
      const { content } = await ctx.elicit("sure", { message: `Remember "${fact}"?`, schema });
      return content?.sure ? `${requirePrincipal(ctx).id} will remember it.` : "Not remembered.";
    },
  });
  return createServer({
    name: "facts",
    version: "1.0.0",
    handlers: [remember],
    auth: apiKey({ keys }),
    secret,
    store,
    hosts,
    routes: [health()],
  });
}
