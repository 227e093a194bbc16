// Raw requests to a server in workerd.
import { assertEquals } from "@std/assert";

export interface Answer {
  readonly status: number;
  readonly session: string | null;
  // deno-lint-ignore no-explicit-any -- any response of the server
  readonly message: any;
}

export type Headers = Readonly<Record<string, string>>;

const PREFIX = "io.modelcontextprotocol/";
const LEGACY = "2025-11-25";

/** Sends a message, and reads its response. If the response is a stream, reads the last message of the stream. */
export async function post(url: string, message: object, more: Headers = {}): Promise<Answer> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...more };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  const json = isStream ? text.split("\n").findLast((line) => line.startsWith("data: "))?.slice(6) : text;
  return {
    status: response.status,
    session: response.headers.get("mcp-session-id"),
    message: json ? JSON.parse(json) : undefined,
  };
}

/** Sends a request of 2026-07-28. */
export async function ask(
  url: string,
  method: string,
  // deno-lint-ignore no-explicit-any -- the parameters of any method
  params: any = {},
  more: Headers = {},
): Promise<Answer> {
  const _meta = {
    [`${PREFIX}protocolVersion`]: "2026-07-28",
    [`${PREFIX}clientCapabilities`]: { elicitation: { form: {} } },
    ...params._meta,
  };
  const name = params.name ?? params.taskId;
  const headers = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...name && { "mcp-name": name },
    ...more,
  };
  return await post(url, { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }, headers);
}

/** Calls a tool in 2026-07-28, and returns its text. */
export async function callTool(url: string, name: string, args: object = {}, more: Headers = {}): Promise<string> {
  const answer = await ask(url, "tools/call", { name, arguments: args }, more);
  const text = answer.message?.result?.content?.[0].text;
  if (answer.status !== 200 || text === undefined) throw new Error(`Cannot call ${name}: ${JSON.stringify(answer)}`);
  return text;
}

/** Starts a session of 2025-11-25, and returns the headers of its requests. */
export async function openSession(url: string, more: Headers = {}): Promise<Headers> {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const hello = await post(url, { jsonrpc: "2.0", id: 1, method: "initialize", params }, more);
  assertEquals([hello.status, hello.message?.result?.protocolVersion], [200, LEGACY], JSON.stringify(hello));
  const session = { ...more, "mcp-session-id": hello.session ?? "", "mcp-protocol-version": LEGACY };
  const ready = await post(url, { jsonrpc: "2.0", method: "notifications/initialized" }, session);
  assertEquals(ready.status, 202);
  return session;
}

/** Calls a tool in a session. */
export async function callInSession(url: string, session: Headers, name: string, args: object = {}): Promise<Answer> {
  return await post(url, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name, arguments: args } }, session);
}
