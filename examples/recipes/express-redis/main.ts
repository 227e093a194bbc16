// An Express app with the MCP server at /mcp, and a store in Redis.
import { getRequestListener } from "@hono/node-server";
import { redisStore } from "@x/mcp/stores/redis";
import express from "express";
import process from "node:process";
import { createClient } from "redis";
import { create } from "./server.ts";

const { HOST = "127.0.0.1", HOSTS, KEYS, MCP_SECRET, PORT = "8000", REDIS_URL } = process.env;
if (!KEYS || !MCP_SECRET || !REDIS_URL) {
  console.error("Set KEYS, MCP_SECRET and REDIS_URL, as README.md shows.");
  process.exit(1);
}

const redis = createClient({ url: REDIS_URL });
redis.on("error", console.error);
await redis.connect();

const mcp = create({
  facts: {
    add: (user, fact) => redis.rPush(`facts:${user}`, fact),
    list: (user) => redis.lRange(`facts:${user}`, 0, -1),
  },
  keys: JSON.parse(KEYS), // such as {"ada":"ada-2f6c1e0b9d4a7853"}
  secret: MCP_SECRET,
  store: redisStore(() => createClient({ url: REDIS_URL, disableOfflineQueue: true })),
  hosts: HOSTS?.split(","),
});
await mcp.ready();
const app = express();
const listener = getRequestListener(mcp.fetch);
// Before body parsers such as express.json(), because the server reads the body itself.
for (const path of ["/mcp", "/health", "/ready"]) app.all(path, listener);
app.use(express.json());

const server = app.listen(Number(PORT), HOST, () => console.log(`Listening at http://${HOST}:${PORT}/mcp`));
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, async () => {
    await mcp.close();
    server.close();
    redis.destroy();
  });
}
