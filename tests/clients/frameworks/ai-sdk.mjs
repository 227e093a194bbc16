import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { accept, end, play, server } from "./play.mjs";

const transport = "url" in server ? { type: "http", ...server } : new StdioTransport(server);
const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
client.onElicitationRequest(ElicitationRequestSchema, accept);
const tools = await client.tools();
await play({
  tools: Object.keys(tools),
  instructions: client.instructions,
  call: (name, args) => tools[name].execute(args, { toolCallId: name, messages: [] }),
});
await end(() => client.close());
