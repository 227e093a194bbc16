import { mcp } from "@llamaindex/tools";
import { end, find, play, server } from "./play.mjs";

const client = mcp(server);
const tools = await client.tools();
const toName = ({ metadata }) => metadata.name;
await play({ tools: tools.map(toName), call: (name, args) => find(tools, name, toName).call(args) });
await end(() => client.cleanup());
