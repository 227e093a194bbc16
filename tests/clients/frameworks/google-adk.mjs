import { MCPToolset } from "@google/adk";
import { end, find, play, server } from "./play.mjs";

const client = new MCPToolset(
  "url" in server
    ? { type: "StreamableHTTPConnectionParams", ...server }
    : { type: "StdioConnectionParams", serverParams: server },
);
const tools = await client.getTools();
await play({
  tools: tools.map(({ name }) => name),
  call: (name, args) => find(tools, name).runAsync({ args, toolContext: {} }),
});
await end(() => client.close());
