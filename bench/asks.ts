// The messages that the benchmarks send, and a check of each server's first response.
import type { Ask } from "./load.ts";

/** The call to measure: the tool `add`, the tool `count` with progress notifications, or `tools/list`. */
export type Subject = "add" | "count" | "list";

/**
 * The mode of requests: `modern` requests are independent, `session` requests belong to a session, and `plain` requests
 * have neither metadata nor a session.
 */
export type Manner = "modern" | "session" | "plain";

const MODERN = "2026-07-28";
const OLDER = "2025-06-18";
const client = { name: "bench", version: "1.0.0" };
const envelope = {
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": client,
  "io.modelcontextprotocol/clientCapabilities": {},
};
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** Returns a message as JSON. Load generators replace the default id with a unique id for each call. */
export function toMessage(subject: Subject, manner: Manner, id = 1_000_000): string {
  const _meta = {
    ...manner === "modern" ? envelope : {},
    ...subject === "count" ? { progressToken: 7 } : {},
  };
  const params = {
    ...subject === "list" ? {} : { name: subject, arguments: subject === "add" ? { a: 1, b: 2 } : {} },
    ...Object.keys(_meta).length ? { _meta } : {},
  };
  return JSON.stringify({ jsonrpc: "2.0", id, method: toMethod(subject), params });
}

/** Returns the first message of a session. */
export function toInitialize(id = 1): string {
  const params = { protocolVersion: OLDER, capabilities: {}, clientInfo: client };
  return JSON.stringify({ jsonrpc: "2.0", id, method: "initialize", params });
}

/** The notification that the client sends after `initialize`. */
export const INITIALIZED: string = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });

function toMethod(subject: Subject): string {
  return subject === "list" ? "tools/list" : "tools/call";
}

/** Returns a request of revision 2026-07-28, with any parameters. */
export function toModernAsk(method: string, params: Readonly<Record<string, unknown>> = {}): Ask {
  const names: Record<string, string> = typeof params.name === "string" ? { "mcp-name": params.name } : {};
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1_000_000, method, params: { ...params, _meta: envelope } });
  return { headers: { ...headers, "mcp-protocol-version": MODERN, "mcp-method": method, ...names }, body };
}

/** Returns the headers of every request in a session. */
export function toSessionHeaders(session: string): Record<string, string> {
  return { ...headers, "mcp-protocol-version": OLDER, "mcp-session-id": session };
}

/** The request that opens a session. */
export const handshake: Ask = { headers, body: toInitialize(1_000_000) };

/** Returns the request to measure. Opens a session if the mode needs a session. */
export async function toAsk(port: number, subject: Subject, manner: Manner): Promise<Ask> {
  const body = toMessage(subject, manner);
  if (manner === "modern") {
    const names: Record<string, string> = subject === "list" ? {} : { "mcp-name": subject };
    return { headers: { ...headers, "mcp-protocol-version": MODERN, "mcp-method": toMethod(subject), ...names }, body };
  }
  if (manner === "plain") return { headers: { ...headers, "mcp-protocol-version": OLDER }, body };
  const response = await post(port, handshake);
  await response.body?.cancel();
  const session = response.headers.get("mcp-session-id");
  if (!session) throw new Error(`Cannot open a session on port ${port}: status ${response.status}, no id`);
  const ask = { headers: toSessionHeaders(session), body };
  await (await post(port, { ...ask, body: INITIALIZED })).body?.cancel();
  return ask;
}

function post(port: number, { headers, body }: Ask): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", headers, body });
}

/** Sends a request, and returns the messages in the server's response. Throws if the messages are not as expected. */
export async function readAnswer(port: number, ask: Ask, subject: Subject): Promise<string[]> {
  const response = await post(port, ask);
  const text = await response.text();
  const streamed = response.headers.get("content-type")?.includes("event-stream");
  const texts = streamed ? text.split(/\r?\n/).flatMap((line) => /^data: ?(\{.*)/.exec(line)?.[1] ?? []) : [text];
  const { id, result } = JSON.parse(texts[texts.length - 1] ?? "{}");
  const good = id === 1_000_000 &&
    (subject === "add"
      ? result?.structuredContent?.sum === 3
      : subject === "list"
      ? result?.tools?.length === 100
      : result?.content?.[0]?.text === "counted" && texts.length === 11);
  if (!good) throw new Error(`Cannot measure the server on port ${port}: it answered ${text.slice(0, 500)}`);
  return texts;
}
