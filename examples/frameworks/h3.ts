// An MCP server in an h3 app, on Deno, Bun and Node.
import process from "node:process";
import { H3, serve } from "h3";
import { mcp } from "./server.ts";

const app = new H3();
app.get("/", () => "Hello");
app.all("/mcp", ({ req }) => mcp.fetch(req, { remoteAddr: { hostname: req.ip } }));

const listener = serve(app, { hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000), silent: true });

process.on("SIGTERM", async () => {
  await mcp.close();
  await listener.close();
});
