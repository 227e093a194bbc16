// A further route of the MCP server in Next, in the file app/health/route.ts.
export { GET } from "../mcp/route";
