// Requests as clients with sessions send them, in the revisions before 2026-07-28, passed directly to a server's `fetch`.

type Headers = Readonly<Record<string, string>>;

/** An object that handles requests, such as a server. */
interface Target {
  fetch(request: Request): Response | Promise<Response>;
}

/** Returns the `initialize` request of a client. */
export function toHello({ id = 1, version = "2025-11-25", capabilities = {}, name = "c" }: {
  readonly id?: string | number;
  readonly version?: string;
  readonly capabilities?: object;
  readonly name?: string;
} = {}) {
  const params = { protocolVersion: version, capabilities, clientInfo: { name, version: "1" } };
  return { jsonrpc: "2.0", id, method: "initialize", params };
}

/** Returns the POST request with a message. Without a message, returns the GET request for a stream. */
export function toSessionRequest(
  message: unknown,
  headers: Headers = {},
  { method = message === undefined ? "GET" : "POST", url = "http://localhost/mcp" } = {},
): Request {
  const accept = method === "GET" ? "text/event-stream" : "application/json, text/event-stream";
  return new Request(url, {
    method,
    headers: { "content-type": "application/json", accept, ...headers },
    body: typeof message === "string" ? message : JSON.stringify(message),
  });
}

/** Returns the session id in a response to `initialize`, whose body is discarded. */
export async function toSession({ headers, body }: Response): Promise<string> {
  await body?.cancel();
  return headers.get("mcp-session-id") ?? "";
}

/** Begins a session. Returns its id. */
export async function openSession(server: Target, hello: object = toHello()): Promise<string> {
  return await toSession(await server.fetch(toSessionRequest(hello)));
}
