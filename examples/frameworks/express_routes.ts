// An MCP server with routes in an Express app, on Node.
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { mcp, paths } from "./routes_server.ts";

const app = express();
app.all(paths, getRequestListener(mcp.fetch));
app.get("/", (_request: unknown, response: { send(body: string): unknown }) => response.send("Hello"));

const listener = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");

process.on("SIGTERM", async () => {
  await mcp.close();
  listener.close();
});
