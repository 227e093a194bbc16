// An MCP server as a resource route of React Router, in the file app/mcp.ts.
import { mcp } from "./server.ts";

interface Args {
  readonly request: Request;
}

const respond = ({ request }: Args) => mcp.fetch(request);

export { respond as action, respond as loader };
