export default function Page() {
  return <p>The MCP server is at /mcp.</p>;
}
