// An MCP server in a Koa app, on Node.
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import Koa from "koa";
import { mcp } from "./server.ts";

const app = new Koa();
const listener = getRequestListener(mcp.fetch);

app.use(async (ctx, next) => {
  if (ctx.path !== "/mcp") return await next();
  ctx.respond = false; // The MCP server writes the response itself.
  await listener(ctx.req, ctx.res);
});
app.use((ctx) => {
  ctx.body = "Hello";
});

const running = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");

process.on("SIGTERM", async () => {
  await mcp.close();
  running.close();
});
