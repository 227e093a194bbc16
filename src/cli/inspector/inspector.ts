/**
 * Serves the inspector: a page in which a person sees a server and tries it.
 *
 * @module
 */
import { checkCaller, type ConnectionInfo, isLoopbackHost } from "../../transports/http/access.ts";
import { VERSION } from "../version.ts";
import { toPage } from "./page.ts";
import { createRelay, type GivenServer } from "./relay.ts";

/** The page, and what it needs of this machine. */
export interface Inspector {
  /** Follows the page's address: only a page that has it may connect to other servers. */
  readonly key: string;
  /** Answers a request for the page; `undefined` if it is for something else. */
  respond(request: Request, info: ConnectionInfo): Response | Promise<Response> | undefined;
  /** Ends every connection of the page to other servers. */
  close(): Promise<void>;
}

/** What the page shows first: the server beside it, or one that the user named. */
export interface InspectorOptions {
  /** Path of the endpoint of the server that serves the page. */
  readonly endpoint?: string;
  /** A server elsewhere, or the command of one. */
  readonly given?: GivenServer;
}

/** Where the page is, on the server's own origin. */
export const PAGE_PATH = "/";

/** Creates the page. */
export async function createInspector({ endpoint, given }: InspectorOptions): Promise<Inspector> {
  const { html, policy } = await toPage({
    endpoint,
    given: given && { name: given.name, hasHeaders: typeof given.target === "string" },
    protocol: "2026-07-28",
    version: VERSION,
  });
  const relay = createRelay(given);
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
  }

  return { key: relay.key, respond, close: relay.close };
}

function refuse(status: number, reason: string, headers: Record<string, string> = {}): Response {
  return new Response(`${reason}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}
