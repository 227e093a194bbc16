// The MCP server that the programs in this folder mount.
import { createServer, tool } from "@x/mcp";
import { z } from "zod";

const add = tool({
  name: "add",
  title: "Add two numbers",
  description: "Adds two numbers",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({ a: z.number(), b: z.number() }),
  run: async ({ a, b }, ctx) => {
    await ctx.progress(1, { total: 1 });
    return a + b;
  },
});

export const mcp = createServer({ name: "calc", version: "1.0.0", handlers: [add] });
