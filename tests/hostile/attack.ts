// Requests that the attacks on accounting send directly to a server's `fetch`.
import { createServer, type ServerOptions } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";

type Json = { readonly [key: string]: unknown };

/** A schema that accepts any object. */
export const any = { type: "object" } as const;

/** A server that reports no errors. */
export function start(options: Partial<ServerOptions>) {
  return createServer({ name: "attacked", version: "1.0.0", observer: { fault() {} }, ...options });
}

/** The principal that a test passes to `fetch`. */
export function as(id: string) {
  return { principal: { id } };
}

/** A modern tool call. */
export function toCall(name: string, given: Json = {}): Request {
  return toRequest("tools/call", { name, arguments: given });
}

/** A modern subscription to changes. */
export function toListen(notifications: Json = { toolsListChanged: true }, meta: Json = {}): Request {
  return toRequest("subscriptions/listen", { notifications, _meta: meta });
}

/** A legacy message or batch. */
export function toLegacy(body: unknown, headers: Record<string, string> = {}): Request {
  return new Request("http://localhost/mcp", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify(body),
  });
}

/** The `initialize` request that starts a session. */
export function toInitialize(capabilities: Json = {}): Json {
  const clientInfo = { name: "hostile", version: "1" };
  return {
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities, clientInfo },
  };
}

/** A GET request for the stream of a session. */
export function toGet(session: string, lastEvent?: string): Request {
  const resume: Record<string, string> = lastEvent === undefined ? {} : { "last-event-id": lastEvent };
  const headers = { accept: "text/event-stream", "mcp-session-id": session, ...resume };
  return new Request("http://localhost/mcp", { headers });
}

/** A call whose body has no length and arrives in pieces. */
export function toSlowCall(name: string) {
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const init: RequestInit & { readonly duplex: "half" } = {
    method: "POST",
    headers: toCall(name).headers,
    body: readable,
    duplex: "half",
  };
  return {
    request: new Request("http://localhost/mcp", init),
    write: (bytes: number) => writer.write(new Uint8Array(bytes).fill(32)).catch(() => {}),
    abort: () => writer.abort().catch(() => {}),
  };
}

/** The value of a promise, or `undefined` after the timeout. */
export function soon<T>(promise: Promise<T>, ms = 20_000): Promise<T | undefined> {
  let timer = 0;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms) as unknown as number; // Bun's timers are objects.
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
