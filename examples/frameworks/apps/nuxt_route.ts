// An MCP server as a route of Nuxt, in the file server/routes/mcp.ts.
import { getRequestListener } from "@hono/node-server";
import { fromNodeMiddleware } from "h3";
import { mcp } from "../mcp.ts";

export default fromNodeMiddleware(getRequestListener(mcp.fetch));
