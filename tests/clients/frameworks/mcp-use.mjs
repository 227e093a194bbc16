import { MCPClient } from "mcp-use";
import { acceptLater, end, play, server } from "./play.mjs";

const client = new MCPClient({ mcpServers: { probe: server } }, { onElicitation: acceptLater });
const session = await client.createSession("probe");
const tools = await session.listTools();
await play({ tools: tools.map(({ name }) => name), call: (name, args) => session.callTool(name, args) });
await end(() => client.closeAllSessions());
