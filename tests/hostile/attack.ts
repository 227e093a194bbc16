// Creates the requests with which tests attack a server's accounting of memory and slots. Tests pass the requests
// directly to `fetch`.
import type { ServerOptions } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

type Json = { readonly [key: string]: unknown };

/** A schema that accepts any object. */
export const any = { type: "object" } as const;

/** Creates a server whose observer ignores faults. */
export function start(options: Partial<ServerOptions>) {
  return openServer({ observer: { fault() {} }, ...options });
}

/** Returns request info for `fetch` with the given principal. */
export function as(id: string) {
  return { principal: { id } };
}

/** Creates a modern tool call. */
export function toCall(name: string, given: Json = {}): Request {
  return toRequest("tools/call", { name, arguments: given });
}

/** Creates a modern `subscriptions/listen` request. */
export function toListen(notifications: Json = { toolsListChanged: true }, meta: Json = {}): Request {
  return toRequest("subscriptions/listen", { notifications, _meta: meta });
}

/** Creates a request with a legacy message or batch. */
export function toLegacy(body: unknown, headers: Record<string, string> = {}): Request {
  return new Request("http://localhost/mcp", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify(body),
  });
}

/** Returns the `initialize` message that starts a session. */
export function toInitialize(capabilities: Json = {}): Json {
  const clientInfo = { name: "hostile", version: "1" };
  return {
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities, clientInfo },
  };
}

/** Creates a GET request that opens or resumes a session's stream. */
export function toGet(session: string, lastEvent?: string): Request {
  const resume: Record<string, string> = lastEvent === undefined ? {} : { "last-event-id": lastEvent };
  const headers = { accept: "text/event-stream", "mcp-session-id": session, ...resume };
  return new Request("http://localhost/mcp", { headers });
}

/** Creates a call whose body has no declared length and arrives in chunks that the test writes. */
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

/** Resolves to the value of a promise, or to `undefined` if the promise has not settled after `ms`. */
export function soon<T>(promise: Promise<T>, ms = 60_000): Promise<T | undefined> {
  let timer = 0;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms) as unknown as number; // The cast is needed, because a timer is an object on Bun.
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
