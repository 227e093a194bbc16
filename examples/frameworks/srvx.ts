// An MCP server on srvx, on Node.
import process from "node:process";
import { serve } from "srvx";
import { mcp } from "./server.ts";

const listener = serve({
  fetch: (request) =>
    new URL(request.url).pathname === "/mcp"
      ? mcp.fetch(request, { remoteAddr: { hostname: request.ip ?? "" } })
      : new Response("Hello"),
  hostname: "127.0.0.1",
  port: Number(process.env.PORT ?? 3000),
  gracefulShutdown: false,
  silent: true,
});

process.on("SIGTERM", async () => {
  await mcp.close();
  await listener.close();
});
