// An MCP server in an Elysia app, on Bun.
import process from "node:process";
import { Elysia } from "elysia";
import { mcp } from "./server.ts";

const app = new Elysia()
  .get("/", () => "Hello")
  .all("/mcp", ({ request, server }) => mcp.fetch(request, server ?? undefined), { parse: "none" })
  .listen({ hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });

process.on("SIGTERM", async () => {
  await mcp.close();
  await app.stop();
});
