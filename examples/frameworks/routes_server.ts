// An MCP server with routes, which the programs in this folder mount on several paths.
import { createServer } from "@x/mcp";
import { health } from "@x/mcp/observe";
import { oauth } from "@x/mcp/oauth";

const auth = oauth({ resource: "https://mcp.example.com/mcp", issuers: ["https://login.example.com"] });

export const mcp = createServer({ name: "calc", version: "1.0.0", auth, routes: [health()] });

/** The paths of the MCP endpoint and of all routes of the server. */
export const paths = ["/mcp", "/health", "/ready", "/.well-known/oauth-protected-resource/mcp"];
