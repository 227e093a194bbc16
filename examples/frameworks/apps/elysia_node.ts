// An MCP server in an Elysia app, on Node.
import process from "node:process";
import { node } from "@elysiajs/node";
import { Elysia } from "elysia";
import { mcp } from "./server.ts";

const app = new Elysia({ adapter: node() })
  .get("/", () => "Hello")
  .all("/mcp", ({ request }) => mcp.fetch(request), { parse: "none" })
  .listen({ hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });

process.on("SIGTERM", async () => {
  await mcp.close();
  await app.stop();
});
