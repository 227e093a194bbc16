// An MCP server in a Hono app, on Deno and Bun.
import type { ConnectionInfo } from "@x/mcp";
import { Hono } from "hono";
import { mcp } from "./server.ts";

const app = new Hono<{ Bindings: ConnectionInfo }>();
app.get("/", (c) => c.text("Hello"));
app.all("/mcp", (c) => mcp.fetch(c.req.raw, c.env));

export default app;
