/**
 * Names from OpenTelemetry's conventions for MCP, and the attributes of a call.
 *
 * @see https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 */
import type { CallEvent, EventSource, SessionEvent, StartEvent, TransportName } from "../server/call/observer.ts";

export type Attributes = Record<string, string>;

/** Upper bounds of the histogram buckets for durations, in seconds. */
export const BUCKETS: readonly number[] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** `network.transport` and `network.protocol.name` by transport. A client in the same process uses no network. */
const NETWORK: Readonly<Record<TransportName, readonly [transport?: string, protocol?: string]>> = {
  http: ["tcp", "http"],
  "http-sse": ["tcp", "http"],
  websocket: ["tcp", "websocket"],
  stdio: ["pipe"],
  memory: [],
  internal: [],
};

export const SERVER_DURATION = {
  name: "mcp.server.operation.duration",
  description: "Duration of MCP requests from receiving the request to sending the response",
};
export const SESSION_DURATION = {
  name: "mcp.server.session.duration",
  description: "Duration of MCP sessions on the server",
};
export const CLIENT_DURATION = {
  name: "mcp.client.operation.duration",
  description: "Duration of MCP requests from sending the request to receiving the response",
};

export function addNetwork(attributes: Attributes, { transport }: Pick<EventSource, "transport">): Attributes {
  const [network, protocol] = NETWORK[transport];
  if (network) attributes["network.transport"] = network;
  if (protocol) attributes["network.protocol.name"] = protocol;
  return attributes;
}

/** Returns the name of the tool or the prompt that a request uses, which becomes part of the span name. */
export function toTarget({ method, subject }: Pick<StartEvent, "method" | "subject">): string | undefined {
  return method === "tools/call" || method === "prompts/get" ? subject : undefined;
}

export function addTarget(attributes: Attributes, method: string, target: string | undefined): Attributes {
  attributes["mcp.method.name"] = method;
  if (method === "tools/call") attributes["gen_ai.operation.name"] = "execute_tool";
  if (target !== undefined) attributes[method === "tools/call" ? "gen_ai.tool.name" : "gen_ai.prompt.name"] = target;
  return attributes;
}

/** Returns the attributes that the span and the metric of a call have in common. */
export function describeOperation(event: StartEvent): Attributes {
  const attributes = addTarget({}, event.method, toTarget(event));
  if (event.revision) attributes["mcp.protocol.version"] = event.revision;
  return addNetwork(attributes, event);
}

export function describeSession(event: SessionEvent): Attributes {
  return addNetwork({ "mcp.protocol.version": event.revision }, event);
}

/** Adds the outcome of a call. `input_required` does not count as an error. */
export function addOutcome(
  attributes: Attributes,
  { outcome, code, why }: Pick<CallEvent, "outcome" | "code" | "why">,
): Attributes {
  if (outcome === "tool_error") attributes["error.type"] = outcome;
  else if (outcome === "cancelled") attributes["error.type"] = why === "timeout" ? why : outcome;
  else if (outcome === "error") attributes["error.type"] = code === undefined ? "_OTHER" : String(code);
  if (code !== undefined) attributes["rpc.response.status_code"] = String(code);
  return attributes;
}

/** Maximum length of a text that a client can choose, in characters. */
export const MAX_TEXT = 1000;

/**
 * Returns the URI of a resource for a span, without the parts that may contain secrets: the password, the values of the
 * query, and the fragment. `REDACTED` replaces the values, as OpenTelemetry's conventions for URLs require.
 */
export function toSpanUri(uri: string): string {
  const [address, query] = uri.slice(0, MAX_TEXT).replace(/#.*$/s, "").split(/\?(.*)/s);
  const start = address.replace(/^([a-z][a-z\d+.-]*:\/\/)[^/]*@/i, "$1REDACTED@");
  if (query === undefined) return start;
  const parts = query.split("&").map((part) => part.includes("=") ? part.replace(/=.*$/s, "=REDACTED") : "REDACTED");
  return `${start}?${parts.join("&")}`.slice(0, MAX_TEXT);
}
