// Tools that users create: each user saves queries, and each saved query becomes a tool of this user only. One function
// serves them, and a transformed copy of it keeps an old name alive for clients that still use it.
import { createServer, tool, toolProvider, transform } from "@x/mcp";
import { requirePrincipal } from "@x/mcp/auth";
import { z } from "zod";

const orders = [
  { id: "A-17", owner: "ada", item: "tea", open: true },
  { id: "A-18", owner: "ada", item: "coffee", open: false },
  { id: "B-1", owner: "bob", item: "tea", open: true },
];

/** The saved words, by user and name. */
const saved = new Map<string, Map<string, string>>();

const search = tool({
  name: "search_orders",
  title: "Search orders",
  description: "Searches the orders of a user",
  input: z.object({ words: z.string(), owner: z.string() }),
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: ({ words, owner }) => orders.filter((order) => order.owner === owner && order.item.includes(words)),
});

/** The same tool, for the caller only. */
const find = transform(search, {
  name: "find_orders",
  description: "Finds your orders",
  input: {
    words: { name: "q", description: "Part of the item's name" },
    owner: { value: (ctx) => requirePrincipal(ctx).id },
  },
});

const old = transform(find, { name: "orders", deprecated: "use find_orders" });

const save = tool({
  name: "save_query",
  title: "Save a query",
  description: "Saves words under a name. The saved query becomes a tool.",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: z.object({ name: z.string().regex(/^[a-z_]{1,40}$/), words: z.string() }),
  run({ name, words }, ctx) {
    const { id } = requirePrincipal(ctx);
    saved.set(id, new Map([...saved.get(id) ?? [], [name, words]]));
    ctx.server.listChanged("tools", { to: ({ principal }) => principal?.id === id });
    return `Saved. Call ${name}.`;
  },
});

const toTool = (name: string, words: string) =>
  transform(search, {
    name,
    description: `Finds your orders with ${words}`,
    input: { words: { value: words }, owner: { value: (ctx) => requirePrincipal(ctx).id } },
  });

const queries = toolProvider({
  allow: ({ principal }) => principal !== undefined,
  list: (_cursor, ctx) => [...saved.get(requirePrincipal(ctx).id) ?? []].map(([name, words]) => toTool(name, words)),
  find(name, ctx) {
    const words = saved.get(requirePrincipal(ctx).id)?.get(name);
    return words === undefined ? undefined : toTool(name, words);
  },
});

export default createServer({ name: "orders", version: "1.0.0", handlers: [find, old, save, queries] });
