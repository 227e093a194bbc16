// An MCP server as an endpoint of Astro, in the file src/pages/mcp.ts.
import { mcp } from "../server.ts";

interface Context {
  readonly request: Request;
  readonly clientAddress: string;
}

export const prerender = false;

export const ALL = ({ request, clientAddress }: Context) =>
  mcp.fetch(request, { remoteAddr: { hostname: clientAddress } });
