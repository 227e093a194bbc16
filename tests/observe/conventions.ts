// Names in OpenTelemetry's conventions for MCP, from docs/gen-ai/mcp.md in the repository
// open-telemetry/semantic-conventions-genai, at revision 0393513c908bf895e7b3ec480a2c1eb073c584af.

/** Attributes of both kinds of spans, except attributes that need opt-in. */
const COMMON = [
  ...["mcp.method.name", "error.type", "gen_ai.prompt.name", "gen_ai.tool.name", "jsonrpc.request.id"],
  ...["mcp.resource.uri", "rpc.response.status_code", "gen_ai.operation.name", "jsonrpc.protocol.version"],
  ...["mcp.protocol.version", "mcp.session.id", "network.protocol.name", "network.protocol.version"],
  "network.transport",
];
export const SERVER_SPAN: ReadonlySet<string> = new Set([...COMMON, "client.address", "client.port"]);
export const CLIENT_SPAN: ReadonlySet<string> = new Set([...COMMON, "server.address", "server.port"]);

const OPERATION = [
  ...["mcp.method.name", "error.type", "gen_ai.prompt.name", "gen_ai.tool.name", "rpc.response.status_code"],
  ...["gen_ai.operation.name", "jsonrpc.protocol.version", "mcp.protocol.version", "network.protocol.name"],
  ...["network.protocol.version", "network.transport"],
];
const SESSION = [
  ...["error.type", "jsonrpc.protocol.version", "mcp.protocol.version", "network.protocol.name"],
  ...["network.protocol.version", "network.transport"],
];

/** The attributes of each metric, except attributes that need opt-in. All metrics are histograms in seconds. */
export const METRICS: Readonly<Record<string, ReadonlySet<string>>> = {
  "mcp.server.operation.duration": new Set(OPERATION),
  "mcp.client.operation.duration": new Set([...OPERATION, "server.address", "server.port"]),
  "mcp.server.session.duration": new Set(SESSION),
};

export const BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
