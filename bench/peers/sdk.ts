// A server with @modelcontextprotocol/server, written as in its documentation: createMcpHandler serves independent
// requests, and each session has its own transport. The argument is `call`, `list`, `session` or `stdio`.
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { args, serve } from "../programs/serve.ts";
import { names, nothing, pair, query, STEPS, sum, toDescription } from "../programs/shapes.ts";

const [what] = args;

function createServer() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  if (what === "list") {
    for (const name of names) {
      server.registerTool(name, { description: toDescription(name), inputSchema: query }, () => ({
        content: [{ type: "text", text: "nothing found" }],
      }));
    }
    return server;
  }
  const schemas = { description: "Adds two numbers", inputSchema: pair, outputSchema: sum };
  server.registerTool("add", schemas, ({ a, b }) => {
    const structuredContent = { sum: a + b };
    return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
  });
  server.registerTool("count", { description: "Counts to ten", inputSchema: nothing }, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= STEPS; progress++) {
      const params = { progressToken, progress, total: STEPS };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    }
    return { content: [{ type: "text", text: "counted" }] };
  });
  return server;
}

const transports = new Map();

async function serveSession(request) {
  const id = request.headers.get("mcp-session-id");
  if (id) return await transports.get(id).handleRequest(request);
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  await createServer().connect(transport);
  return await transport.handleRequest(request);
}

if (what === "stdio") serveStdio(createServer);
else if (what === "session") serve(serveSession);
else {
  const { fetch } = createMcpHandler(createServer);
  serve((request) => fetch(request));
}
