// A shopping list that a team shares. The instances of this server act as one server, because they share a store in
// Redis. The list is also stored in Redis.
import process from "node:process";
import { createServer, resource, tool } from "@x/mcp";
import { idempotent } from "@x/mcp/layers";
import { redisStore } from "@x/mcp/stores/redis";
import { task, tasks } from "@x/mcp/tasks";
import { createClient } from "redis";
import { z } from "zod";

const { REDIS_URL: url, MCP_SECRET: secret, INSTANCE: instance = "the only instance" } = process.env;
const store = redisStore(() => createClient({ url, disableOfflineQueue: true }));

const LIST = "list://shopping";
const ttlMs = 86_400_000;

const add = tool({
  name: "add",
  title: "Add an item",
  description: "Adds an item to the shopping list. A repeated call with the same key adds nothing",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: z.object({ item: z.string().min(1).max(100), key: z.string().min(1).max(100) }),
  use: [idempotent({ key: ({ key }) => key, rerun: true })],
  async run({ item }, { idempotencyToken: token, server }) {
    const position = await store.append("shopping", item, { ttlMs, max: 100, token });
    server.resourceUpdated(LIST);
    return `Number ${position} on the list, added by ${instance}.`;
  },
});

const suggest = tool({
  name: "suggest",
  title: "Suggest items",
  description: "Asks the user for an item, and suggests adding this item",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  async run(_, ctx) {
    const { content } = await ctx.elicit("item", {
      message: "What is missing at home?",
      schema: z.object({ item: z.string() }),
    });
    return content ? `Call add with ${content.item}, says ${instance}.` : "Nothing is missing.";
  },
});

const order = tool({
  name: "order",
  title: "Order the items",
  description: "Orders the items on the list, one per second. If the instance is killed, another instance continues",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  use: [task({ resume: true, pollIntervalMs: 500 })],
  async run(_, ctx) {
    const items = await ctx.once("items", async () => {
      const { entries } = await store.read("shopping", { limit: 100 });
      return entries.map(({ value }) => value);
    });
    const lines: string[] = [];
    for (const [at, item] of items.entries()) {
      await ctx.progress(at, { total: items.length, message: `${item}, on ${instance}` });
      // A second instance gets the recorded line, and does not order the item again.
      lines.push(
        await ctx.once(`item ${at}`, async () => {
          await new Promise((resolve) => setTimeout(resolve, 1000));
          return `${item}: ordered by ${instance}`;
        }),
      );
    }
    return lines.join("\n");
  },
});

const where = tool({
  name: "where",
  title: "Which instance?",
  description: "Returns the instance that runs the call",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: () => instance,
});

const list = resource({
  uri: LIST,
  name: "shopping",
  description: "The shopping list",
  async read() {
    const { entries } = await store.read("shopping", { limit: 100 });
    return entries.map(({ value }) => `- ${value}`).join("\n");
  },
});

export default createServer({
  name: "shopping",
  version: "1.0.0",
  handlers: [tasks(), add, suggest, order, where, list],
  store,
  secret,
  // All callers are the same user here, so that an idempotency key is valid for all callers.
  // docs/guides/authentication.md shows how to distinguish callers.
  auth: () => ({ id: "household", scopes: [] }),
});
