// A server that serves everything of the server at MCP_UPSTREAM, for the runs that kill instances.
import "./skew.ts";
import process from "node:process";
import { createServer } from "@x/mcp";
import { proxy } from "@x/mcp/proxy";
import { redisStore } from "@x/mcp/stores/redis";

const { MCP_UPSTREAM = "", MCP_STORE, MCP_SECRET } = process.env;

export default createServer({
  name: "gateway",
  version: "1.0.0",
  auth: () => ({ id: "everybody" }),
  secret: MCP_SECRET,
  store: redisStore(async () => {
    const { createClient } = await import("redis");
    return createClient({ url: MCP_STORE, disableOfflineQueue: true });
  }),
  handlers: [proxy(MCP_UPSTREAM, { name: "upstream", uris: ["result:"] })],
});
