// An MCP server as a route of Nitro, in the file routes/mcp.ts.
import { mcp } from "../mcp.ts";

interface Event {
  readonly req: Request & { readonly ip?: string };
}

export default ({ req }: Event) => mcp.fetch(req, { remoteAddr: { hostname: req.ip ?? "" } });
