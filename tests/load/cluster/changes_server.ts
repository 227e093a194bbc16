// The server for the run with many subscriptions. It announces changes, and its limits allow all streams.
import process from "node:process";
import { createServer, resource, tool } from "@x/mcp";
import { redisStore } from "@x/mcp/stores/redis";
import { createClient } from "redis";
import { z } from "zod";

const url = process.env.MCP_STORE;

export default createServer({
  name: "changes",
  version: "1.0.0",
  secret: process.env.MCP_SECRET,
  store: redisStore(() => createClient({ url, disableOfflineQueue: true })),
  limits: { connections: { streams: 20_000, streamsPerClient: 20_000 }, memory: { bytesPerClient: 512 * 1024 * 1024 } },
  handlers: [
    resource({ uri: "load://{id}", name: "load", read: ({ id }) => id }),
    tool({
      name: "change",
      input: z.object({ from: z.number(), count: z.number() }),
      run: ({ from, count }, ctx) => {
        for (let id = from; id < from + count; id++) ctx.server.resourceUpdated(`load://${id}`);
      },
    }),
    tool({ name: "memory", run: () => `${process.memoryUsage().rss}` }),
  ],
});
