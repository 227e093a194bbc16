// The MCP server of an app of Next, in the file app/mcp/server.ts, with a secret, a store and keys.
import { createServer, tool } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
import { health } from "@x/mcp/observe";
import { sqliteStore } from "@x/mcp/stores/sqlite";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";

const { ADA_KEY, MCP_SECRET, MCP_DATABASE = "mcp.db" } = process.env;

const add = tool({
  name: "add",
  description: "Adds two numbers",
  input: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
});

export const mcp = createServer({
  name: "calc",
  version: "1.0.0",
  handlers: [add],
  hosts: ["mcp.example.com"],
  auth: apiKey({ keys: { ada: ADA_KEY } }),
  secret: MCP_SECRET,
  store: sqliteStore(() => new DatabaseSync(MCP_DATABASE)),
  routes: [health()],
});
