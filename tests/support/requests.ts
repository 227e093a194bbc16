// Requests as a 2026-07-28 client sends them, passed directly to a server's `fetch`.

/** An object that handles requests, such as a server. */
interface Target {
  fetch(request: Request): Response | Promise<Response>;
}

type Json = { readonly [key: string]: unknown };

/** A JSON-RPC response, with the fields that tests read. */
export interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any
  readonly result?: any;
  // deno-lint-ignore no-explicit-any
  readonly error?: { readonly code: number; readonly message: string; readonly data?: any };
}

let lastId = 0;

/** Returns a request for one method. `_meta` in `params` is merged into the `_meta` that the revision requires. */
export function toRequest(method: string, params: Json = {}, headers: Record<string, string> = {}): Request {
  const subject = method === "resources/read" ? params.uri : params.name;
  const named: Record<string, string> = typeof subject === "string" ? { "mcp-name": encodeName(subject) } : {};
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": {},
    ...params._meta as Json | undefined,
  };
  return new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...named,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params: { ...params, _meta } }),
  });
}

/** Sends a request, and reads its single JSON-RPC response. */
export async function ask(server: Target, method: string, params: Json = {}): Promise<Answer> {
  return await readAnswer(await server.fetch(toRequest(method, params)));
}

/** Reads the status and the JSON-RPC response of an HTTP response. */
export async function readAnswer(response: Response): Promise<Answer> {
  const { result, error } = await readReply(response);
  return { status: response.status, result, error };
}

/**
 * Reads the JSON-RPC response, or the array of responses to a batch, of an HTTP response. Use this function instead of
 * `response.json()`, see {@linkcode toReply}.
 */
// deno-lint-ignore no-explicit-any
export async function readReply(response: Response): Promise<any> {
  return JSON.parse(toReply(await response.text()));
}

/**
 * Returns the JSON in the body of a response. The body is an event stream if the call takes longer than
 * `streams.openAfterMs`, as any call can on a busy machine, unless the client accepts only JSON.
 */
export function toReply(body: string): string {
  if (!/^(?::|id: |retry: |event: |data: )/m.test(body)) return body.trimStart();
  return body.split("\n").findLast((line) => line.startsWith("data: "))?.slice("data: ".length) ?? "";
}

/** Sends a request that must succeed, and returns its result. */
// deno-lint-ignore no-explicit-any
export async function call(server: Target, method: string, params: Json = {}): Promise<any> {
  const { result, error } = await ask(server, method, params);
  if (error) throw new Error(`${method} failed: ${JSON.stringify(error)}`);
  return result;
}

/** Sends a request that must fail, and returns its error. */
export async function fail(server: Target, method: string, params: Json = {}): Promise<NonNullable<Answer["error"]>> {
  const { result, error } = await ask(server, method, params);
  if (!error) throw new Error(`${method} did not fail: ${JSON.stringify(result)}`);
  return error;
}

function encodeName(name: string): string {
  if (/^[\x21-\x7e]+$/.test(name) && !name.startsWith("=?")) return name;
  return `=?base64?${new TextEncoder().encode(name).toBase64()}?=`;
}

/** Returns the status of a response, whose body is discarded. */
export async function toStatus(response: Response | Promise<Response>): Promise<number> {
  const { status, body } = await response;
  await body?.cancel();
  return status;
}
