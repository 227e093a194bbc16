// An MCP server with routes in a Hono app, on Deno and Bun.
import type { ConnectionInfo } from "@x/mcp";
import { Hono } from "hono";
import { mcp, paths } from "./routes_server.ts";

const app = new Hono<{ Bindings: ConnectionInfo }>();
app.get("/", (c) => c.text("Hello"));
for (const path of paths) app.all(path, (c) => mcp.fetch(c.req.raw, c.env));

export default app;
