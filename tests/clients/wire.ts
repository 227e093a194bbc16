// The messages between a client and a server, as a tee records them.

/** A message, or an HTTP request without a message. */
export interface WireEntry {
  readonly from: "client" | "server";
  /** The JSON-RPC message; `undefined` for requests without a body. */
  // deno-lint-ignore no-explicit-any -- messages of other programs; a missing member is `undefined`
  readonly message?: any;
  /** The method of the HTTP request, such as `POST`. */
  readonly http?: string;
  /** The headers of the HTTP request that matter to the protocol. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The headers that a tee records. */
export const HEADERS = ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "authorization", "accept"];

/** What the messages of a client say about the client. */
export interface WireFacts {
  /** The revision in which the client calls tools. */
  readonly revision?: string;
  /** Whether the client asked for a newer revision, and did not wait for the response. */
  readonly fellBack: boolean;
  readonly clientInfo?: Readonly<Record<string, unknown>>;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The number of requests and notifications of the client, by method. */
  readonly methods: ReadonlyMap<string, number>;
  /** Whether the last call had a progress token. */
  readonly hasProgressToken: boolean;
  /** Whether every request after `initialize` had the header `MCP-Protocol-Version`. */
  readonly sendsVersion: boolean;
  /** Whether the client ended its session. */
  readonly endsSession: boolean;
}

const META = "io.modelcontextprotocol/";

/** Reads the facts from the messages of one run. */
export function toFacts(entries: readonly WireEntry[]): WireFacts {
  const ofClient = entries.filter(({ from }) => from === "client");
  const messages = ofClient.flatMap(({ message }) => message?.method ? [message] : []);
  const call = messages.findLast(({ method }) => method === "tools/call");
  const initialize = messages.findLast(({ method }) => method === "initialize");
  const meta = messages.findLast(({ params }) => params?._meta?.[`${META}clientInfo`])?.params._meta;
  const negotiated = entries.findLast(({ from, message }) => from === "server" && message?.result?.protocolVersion);
  const methods = new Map<string, number>();
  for (const { method } of messages) methods.set(method, (methods.get(method) ?? 0) + 1);
  const later = ofClient.filter(({ http, message }) => http === "POST" && message?.method !== "initialize");
  return {
    revision: call?.params?._meta?.[`${META}protocolVersion`] ?? negotiated?.message.result.protocolVersion,
    fellBack: initialize !== undefined && methods.has("server/discover"),
    clientInfo: meta?.[`${META}clientInfo`] ?? initialize?.params?.clientInfo,
    capabilities: meta?.[`${META}clientCapabilities`] ?? initialize?.params?.capabilities ?? {},
    methods,
    hasProgressToken: call?.params?._meta?.progressToken !== undefined,
    sendsVersion: later.every(({ headers }) => headers?.["mcp-protocol-version"] !== undefined),
    endsSession: ofClient.some(({ http }) => http === "DELETE"),
  };
}

/** Returns the last result of each tool, by the name of the tool. */
// deno-lint-ignore no-explicit-any -- messages of other programs; a missing member is `undefined`
export function toResults(entries: readonly WireEntry[]): ReadonlyMap<string, any> {
  const results = new Map();
  const calls = new Map();
  for (const { from, message } of entries) {
    if (from === "client" && message?.method === "tools/call") calls.set(message.id, message.params.name);
    else if (from === "server" && message?.result && calls.has(message.id)) {
      results.set(calls.get(message.id), message.result);
    }
  }
  return results;
}

/** Returns the number of calls of a tool. */
export function countCalls(entries: readonly WireEntry[], tool: string): number {
  return entries.filter(({ from, message }) =>
    from === "client" && message?.method === "tools/call" && message.params.name === tool
  ).length;
}

/** Parses the JSON-RPC messages in a body, which is JSON, lines of JSON or server-sent events. */
export function toMessages(text: string): readonly unknown[] {
  const whole = toValues(text);
  if (whole.length) return whole;
  return text.split(/\r?\n/).flatMap((line) => toValues(line.replace(/^data: ?/, "")));
}

function toValues(text: string): readonly unknown[] {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : typeof value === "object" && value ? [value] : [];
  } catch {
    return [];
  }
}
