/**
 * Serves the inspector: a page in which a person sees a server and tries it.
 *
 * @module
 */
import { checkCaller, type ConnectionInfo, isLoopbackHost } from "../../transports/http/access.ts";
import { VERSION } from "../version.ts";
import { toPage } from "./page.ts";

/** Answers a request for the page; nothing if it is for something else. */
export type Inspector = (request: Request, info: ConnectionInfo) => Response | undefined;

/** Where the page is, on the server's own origin. */
export const PAGE_PATH = "/";

/** Makes the page for a server whose endpoint is at this path. */
export async function createInspector(endpoint: string): Promise<Inspector> {
  const { html, policy } = await toPage({ endpoint, protocol: "2026-07-28", version: VERSION });
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  };

  return (request, info) => {
    const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
    if (request.url.slice(start).replace(/[?#].*$/, "") !== PAGE_PATH) return;
    // Whatever hosts and origins the server itself allows: the page is for this machine only.
    const refusal = checkCaller(request, info, { hosts: [], origins: [], allows: () => undefined });
    if (refusal) return refuse(refusal.status, `Cannot serve the request: ${refusal.reason}`);
    if (!isLoopbackHost(request.headers.get("host") ?? "")) {
      return refuse(403, "Cannot show the inspector: it is for this machine only; open it at http://127.0.0.1");
    }
    const isHead = request.method === "HEAD";
    if (request.method !== "GET" && !isHead) {
      return refuse(405, "Cannot show the inspector: use GET", { allow: "GET, HEAD" });
    }
    return new Response(isHead ? null : html, { headers });
  };
}

function refuse(status: number, reason: string, headers: Record<string, string> = {}): Response {
  return new Response(`${reason}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}
