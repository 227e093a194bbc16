// A server with mcp-lite, which does not support stdio. The argument is `call`, `list` or `session`.
import { InMemorySessionAdapter, McpServer, StreamableHttpTransport } from "mcp-lite";
import { z } from "zod";
import { args, serve } from "../programs/serve.ts";
import { names, nothing, pair, query, STEPS, sum, toDescription } from "../programs/shapes.ts";

const [what] = args;
const server = new McpServer({ name: "bench", version: "1.0.0", schemaAdapter: (schema) => z.toJSONSchema(schema) });

if (what === "list") {
  for (const name of names) {
    server.tool(name, {
      description: toDescription(name),
      inputSchema: query,
      handler: () => ({ content: [{ type: "text", text: "nothing found" }] }),
    });
  }
} else {
  server.tool("add", {
    description: "Adds two numbers",
    inputSchema: pair,
    outputSchema: sum,
    handler: ({ a, b }) => {
      const structuredContent = { sum: a + b };
      return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
    },
  });
  server.tool("count", {
    description: "Counts to ten",
    inputSchema: nothing,
    handler: async (_, ctx) => {
      for (let i = 1; i <= STEPS; i++) await ctx.progress?.({ progress: i, total: STEPS });
      return { content: [{ type: "text", text: "counted" }] };
    },
  });
}

const options = what === "session" ? { sessionAdapter: new InMemorySessionAdapter({ maxEventBufferSize: 1024 }) } : {};
serve(new StreamableHttpTransport(options).bind(server));
