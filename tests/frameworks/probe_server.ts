// The MCP server that probe.ts calls. The projects of run.ts mount this file in place of the page's server.ts.
import { createServer, resource, tool } from "@x/mcp";
import { z } from "zod";

/** The keys of the calls of `hang` that were cancelled. */
const cancelled = new Set<string>();

const add = tool({
  name: "add",
  description: "Adds two numbers",
  input: { a: z.number(), b: z.number() },
  run: async ({ a, b }, ctx) => {
    await ctx.progress(1, { total: 1 });
    return a + b;
  },
});

const ask = tool({
  name: "ask",
  run: async (_input, ctx) => {
    const answer = await ctx.elicit("name", { message: "Your name?", schema: z.object({ name: z.string() }) });
    return answer.action === "accept" ? answer.content.name : answer.action;
  },
});

/** A resource for each subscriber. */
const page = resource({ name: "page", uri: "probe://{key}", read: ({ key }) => key });

const change = tool({
  name: "change",
  description: "Notifies the subscribers of a resource",
  input: { uri: z.string() },
  run: ({ uri }, ctx) => {
    ctx.server.resourceUpdated(uri);
    return "changed";
  },
});

const hang = tool({
  name: "hang",
  description: "Runs until the call is cancelled",
  input: { key: z.string() },
  run: async ({ key }, ctx) => {
    await ctx.progress(1);
    const { promise, resolve } = Promise.withResolvers<void>();
    ctx.signal.addEventListener("abort", () => resolve());
    await promise;
    cancelled.add(key);
    return "cancelled";
  },
});

const isCancelled = tool({
  name: "is_cancelled",
  input: { key: z.string() },
  run: ({ key }) => `${cancelled.has(key)}`,
});

const measure = tool({ name: "measure", input: { text: z.string() }, run: ({ text }) => `${text.length}` });

const repeat = tool({ name: "repeat", input: { length: z.number() }, run: ({ length }) => "x".repeat(length) });

const wait = tool({
  name: "wait",
  input: { ms: z.number() },
  run: async ({ ms }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
    return "waited";
  },
});

/** The handlers that the probe calls. */
export const handlers = [add, ask, page, change, hang, isCancelled, measure, repeat, wait];

export const mcp = createServer({ name: "probe", version: "1.0.0", handlers, hosts: ["mcp.example.com"] });
