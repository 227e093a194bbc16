// The server in an app of Express, on Node.
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { mcp } from "./server.ts";

const app = express();
app.all("/mcp", getRequestListener(mcp.fetch)); // before parsers of bodies, such as express.json()
app.use(express.json());
app.get("/", (_request: unknown, response: { send(body: string): unknown }) => response.send("Hello"));

const listener = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");

process.on("SIGTERM", async () => {
  await mcp.close();
  listener.close();
});
