/**
 * Serves the inspector: a web page to view and test a server.
 *
 * @module
 */
import type { ConnectionInfo } from "../../library.ts";
import { checkCaller, isLoopbackHost } from "../../host.ts";
import { VERSION } from "../version.ts";
import { buildPage } from "./page.ts";
import { createRelay, type NamedServer } from "./relay.ts";

/** The inspector. */
export interface Inspector {
  /** The fragment of the page's URL. Only a page with the key can connect to other servers. */
  readonly key: string;
  /** Handles a request for the page. Returns `undefined` for other paths. */
  respond(request: Request, info: ConnectionInfo): Response | Promise<Response> | undefined;
  /** Closes all connections of the page to other servers. */
  close(): Promise<void>;
}

/** The server that the page shows first. */
export interface InspectorOptions {
  /** The endpoint path of the server that serves the page. */
  readonly endpoint?: string;
  /** Another server, or a command that starts one. */
  readonly server?: NamedServer;
}

/** The path of the page. */
export const PAGE_PATH = "/";

/** Creates the inspector. */
export async function createInspector({ endpoint, server }: InspectorOptions): Promise<Inspector> {
  const { html, policy } = await buildPage({ endpoint, protocol: "2026-07-28", version: VERSION });
  const relay = createRelay(server);
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  };

  function respond(request: Request, info: ConnectionInfo): Response | Promise<Response> | undefined {
    const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
    if (request.url.slice(start).replace(/[?#].*$/, "") !== PAGE_PATH) return relay.respond(request, info);
    // The page is for this machine only, regardless of the hosts and origins of the server.
    const rejection = checkCaller(request, info, { hosts: [], origins: [], allows: () => undefined });
    if (rejection) return reject(rejection.status, `Cannot serve the request: ${rejection.reason}`);
    if (!isLoopbackHost(request.headers.get("host") ?? "")) {
      return reject(403, "Cannot serve the inspector: it is only for this machine; open it at http://127.0.0.1");
    }
    const isHead = request.method === "HEAD";
    if (request.method !== "GET" && !isHead) {
      // The command line reads the endpoint from this text, and suggests it.
      const remedy = endpoint === undefined ? "use GET" : `the endpoint is ${endpoint}`;
      return reject(405, `Cannot serve the inspector: the method is not allowed; ${remedy}`, { allow: "GET, HEAD" });
    }
    return new Response(isHead ? null : html, { headers });
  }

  return { key: relay.key, respond, close: () => relay.close() };
}

function reject(status: number, reason: string, headers: Record<string, string> = {}): Response {
  return new Response(`${reason}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}
