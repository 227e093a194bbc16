export default { serverExternalPackages: ["@x/mcp", "pg"] };
