// The server for the test that kills instances between a plan and its application. Each effect appends a line to a file,
// so that repeated effects can be counted.
import { appendFileSync } from "node:fs";
import process from "node:process";
import { createServer, tool } from "@x/mcp";
import { planned } from "@x/mcp/layers";
import { redisStore } from "@x/mcp/stores/redis";
import { z } from "zod";

const change = tool({
  name: "change",
  description: "Appends the key to a file, and then takes its time",
  input: z.object({ key: z.string(), ms: z.number() }),
  async run({ key, ms }) {
    appendFileSync(process.env.EFFECTS ?? "", `${key}\n`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    return key;
  },
});

export default createServer({
  name: "plans",
  version: "1.0.0",
  secret: process.env.MCP_SECRET,
  store: redisStore(async () => {
    const { createClient } = await import("redis");
    return createClient({ url: process.env.MCP_STORE, disableOfflineQueue: true });
  }, { leaseMs: 500 }),
  // The plan does not contain what has changed, so only the ledger prevents a second change.
  handlers: [...planned(change, { plan: ({ key }) => ({ append: key }) })],
});
