// An MCP server as a server route of TanStack Start, in the file src/routes/mcp.ts.
import { createFileRoute } from "@tanstack/react-router";
import { mcp } from "../mcp.ts";

export const Route = createFileRoute("/mcp")({
  server: { handlers: { ANY: ({ request }) => mcp.fetch(request) } },
});
