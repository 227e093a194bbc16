// A server with tmcp and its own transports. The argument is `call`, `list` or `stdio`.
import { ZodJsonSchemaAdapter } from "@tmcp/adapter-zod";
import { HttpTransport } from "@tmcp/transport-http";
import { StdioTransport } from "@tmcp/transport-stdio";
import { McpServer } from "tmcp";
import { args, serve } from "../programs/serve.ts";
import { names, pair, query, STEPS, sum, toDescription } from "../programs/shapes.ts";

const [what] = args;
const server = new McpServer(
  { name: "bench", version: "1.0.0", description: "Does what is measured" },
  { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: { listChanged: true } } },
);

if (what === "list") {
  for (const name of names) {
    server.tool({ name, description: toDescription(name), schema: query }, () => ({
      content: [{ type: "text", text: "nothing found" }],
    }));
  }
} else {
  server.tool({ name: "add", description: "Adds two numbers", schema: pair, outputSchema: sum }, ({ a, b }) => {
    const structuredContent = { sum: a + b };
    return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
  });
  server.tool({ name: "count", description: "Counts to ten" }, () => {
    for (let i = 1; i <= STEPS; i++) server.progress(i, STEPS);
    return { content: [{ type: "text", text: "counted" }] };
  });
}

if (what === "stdio") new StdioTransport(server).listen();
else {
  const transport = new HttpTransport(server, { path: "/mcp" });
  serve(async (request) => await transport.respond(request) ?? new Response(null, { status: 404 }));
}
