// An MCP server in an Express app, on Node.
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { mcp } from "./server.ts";

const app = express();
// Mount the server before body parsers such as express.json(), because the server reads the body itself.
app.all("/mcp", getRequestListener(mcp.fetch));
app.use(express.json());
app.get("/", (_request: unknown, response: { send(body: string): unknown }) => response.send("Hello"));

const listener = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");

process.on("SIGTERM", async () => {
  await mcp.close();
  listener.close();
});
