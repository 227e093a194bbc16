import { MCPServerStdio, MCPServerStreamableHttp } from "@openai/agents";
import { end, play, server } from "./play.mjs";

const name = "probe-client";
const client = "url" in server
  ? new MCPServerStreamableHttp({ name, ...server })
  : new MCPServerStdio({ name, ...server });
await client.connect();
const tools = await client.listTools();
await play({ tools: tools.map(({ name }) => name), call: (name, args) => client.callTool(name, args) });
await end(() => client.close());
