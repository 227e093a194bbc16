// The MCP server: users have API keys, and instances share a store.
import { createServer, type Server, tool } from "@x/mcp";
import { apiKey, requirePrincipal } from "@x/mcp/auth";
import { quota } from "@x/mcp/layers";
import { health } from "@x/mcp/observe";
import type { Store } from "@x/mcp/stores";
import { z } from "zod";

/** The facts of each user. */
export interface Facts {
  add(user: string, fact: string): Promise<unknown>;
  list(user: string): Promise<string[]>;
}

export interface Settings {
  readonly facts: Facts;
  /** The key of each user, by name. */
  readonly keys: Readonly<Record<string, string>>;
  readonly secret?: string;
  readonly store?: Store;
  readonly hosts?: readonly string[];
}

export function create({ facts, keys, secret, store, hosts }: Settings): Server {
  const remember = tool({
    name: "remember",
    title: "Remember a fact",
    description: "Remembers a fact for the user, after the user has agreed",
    input: z.object({ fact: z.string().min(1).describe("One sentence") }),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    use: [quota({ rate: { calls: 30, perMs: 60_000 } })],
    run: async ({ fact }, ctx) => {
      const schema = z.object({ sure: z.boolean() });
      const { content } = await ctx.elicit("sure", { message: `Remember "${fact}"?`, schema });
      if (!content?.sure) return "Not remembered.";
      await facts.add(requirePrincipal(ctx).id, fact);
      return "Remembered.";
    },
  });

  const list = tool({
    name: "list_facts",
    title: "List facts",
    description: "Returns what the user wants to be remembered",
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
    output: z.object({ facts: z.array(z.string()) }),
    run: async (_input, ctx) => ({ facts: await facts.list(requirePrincipal(ctx).id) }),
  });
  return createServer({
    name: "facts",
    version: "1.0.0",
    handlers: [remember, list],
    auth: apiKey({ keys }),
    secret,
    store,
    hosts,
    routes: [health()],
  });
}
