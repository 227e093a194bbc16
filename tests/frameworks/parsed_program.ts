// An Express app on Node that wrongly mounts the MCP server behind a body parser.
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { mcp } from "../../examples/frameworks/server.ts";

const app = express();
app.use(express.json());
app.all("/mcp", getRequestListener(mcp.fetch));
app.get("/", (_request: unknown, response: { send(body: string): unknown }) => response.send("Hello"));
app.listen(Number(process.env.PORT), "127.0.0.1");
