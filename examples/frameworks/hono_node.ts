// An MCP server in a Hono app, on Node.
import process from "node:process";
import { serve } from "@hono/node-server";
import type { ConnectionInfo } from "@x/mcp";
import { Hono } from "hono";
import { mcp } from "./server.ts";

const app = new Hono<{ Bindings: ConnectionInfo }>();
app.get("/", (c) => c.text("Hello"));
app.all("/mcp", (c) => mcp.fetch(c.req.raw, c.env));

const listener = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });

process.on("SIGTERM", async () => {
  await mcp.close();
  listener.close();
});
