import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { McpClient } from "@strands-agents/sdk";
import { acceptLater, end, find, play, server } from "./play.mjs";

const connection = "url" in server ? server : { transport: new StdioClientTransport(server) };
const client = new McpClient({ ...connection, elicitationCallback: acceptLater });
const tools = await client.listTools();
await play({
  tools: tools.map(({ name }) => name),
  instructions: client.serverInstructions,
  call: async (name, args) => {
    const stream = find(tools, name).stream({ toolUse: { name, toolUseId: name, input: args } });
    for (;;) {
      const { done, value } = await stream.next();
      if (done) return value;
    }
  },
});
await end(() => client.disconnect());
