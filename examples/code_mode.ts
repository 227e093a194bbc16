// A server in code mode: the model writes programs that call the tools, and only what a program returns reaches its
// context. Run it with `deno run --allow-run=deno --allow-read --allow-env`, or on Bun or Node with quickjs-wasi installed.
import { createServer, tool } from "@x/mcp";
import { codeMode } from "@x/mcp/code";
import { confirm } from "@x/mcp/layers";
import { z } from "zod";

const items = Array.from({ length: 200 }, (_, at) => ({ id: at + 1, name: `Item ${at + 1}`, stock: (at * 7) % 23 }));

const list = tool({
  name: "list_items",
  title: "List items",
  description: "Lists the items of the shop, 50 per page",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({ page: z.number().int().min(1).describe("Number of the page, from 1") }),
  output: z.object({
    items: z.array(z.object({ id: z.number(), name: z.string(), stock: z.number() })),
    pages: z.number(),
  }),
  run: ({ page }) => ({ items: items.slice(50 * (page - 1), 50 * page), pages: Math.ceil(items.length / 50) }),
});

const order = tool({
  name: "order_item",
  title: "Order an item",
  description: "Orders an item from the supplier",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: z.object({ id: z.number().int(), count: z.number().int().min(1) }),
  output: z.object({ ordered: z.number() }),
  use: [confirm(({ id, count }) => `Order ${count} of item ${id}?`)],
  run: ({ count }) => ({ ordered: count }),
});

export default createServer({ name: "shop", version: "1.0.0", handlers: [list, order, codeMode()] });
