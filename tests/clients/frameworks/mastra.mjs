import { MCPClient } from "@mastra/mcp";
import { acceptLater, end, find, play, server } from "./play.mjs";

const connection = "url" in server ? { url: new URL(server.url) } : server;
const elicitation = { form: {}, url: {} };
const client = new MCPClient({
  servers: { probe: { ...connection, inputRequests: acceptLater, capabilities: { elicitation } } },
});
const tools = Object.entries(await client.listTools());
await play({
  tools: tools.map(([name]) => name),
  call: (name, args) => find(tools, name, ([name]) => name)[1].execute(args, {}),
});
await end(() => client.disconnect());
