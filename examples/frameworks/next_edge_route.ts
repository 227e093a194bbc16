// An MCP server as a route of Next on the edge runtime, in the file app/mcp/route.ts.
import { mcp } from "./server.ts";

export const runtime = "edge";

const respond = (request: Request) => mcp.fetch(request);

export { respond as DELETE, respond as GET, respond as OPTIONS, respond as POST };
