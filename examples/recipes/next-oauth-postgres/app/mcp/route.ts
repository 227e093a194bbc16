import { mcp } from "@/lib/mcp";

const respond = (request: Request) => mcp.fetch(request);

export { respond as DELETE, respond as GET, respond as OPTIONS, respond as POST };
