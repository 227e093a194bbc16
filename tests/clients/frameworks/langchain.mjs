import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { end, find, play, server } from "./play.mjs";

const client = new MultiServerMCPClient({
  mcpServers: { probe: { transport: "url" in server ? "http" : "stdio", ...server } },
});
const tools = await client.getTools();
await play({ tools: tools.map(({ name }) => name), call: (name, args) => find(tools, name).invoke(args) });
await end(() => client.close());
