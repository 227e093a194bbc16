import { MCPClient } from "mcp-client";
import { end, play, server } from "./play.mjs";

const client = new MCPClient({ name: "probe-client", version: "1.0.0" });
await client.connect("url" in server ? { type: "httpStream", ...server } : { type: "stdio", ...server });
const tools = await client.getAllTools();
await play({
  tools: tools.map(({ name }) => name),
  call: (name, args) => client.callTool({ name, arguments: args }),
});
await end(() => client.close());
