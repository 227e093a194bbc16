// An MCP server as a route of SvelteKit, in the file src/routes/mcp/+server.ts.
import { mcp } from "./server.ts";

interface Event {
  readonly request: Request;
  readonly getClientAddress: () => string;
}

const respond = ({ request, getClientAddress }: Event) =>
  mcp.fetch(request, { remoteAddr: { hostname: getClientAddress() } });

export { respond as DELETE, respond as GET, respond as OPTIONS, respond as POST };
