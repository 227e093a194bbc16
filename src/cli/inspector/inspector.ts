/**
 * Serves the inspector: a web page for viewing and testing a server.
 */
import type { ConnectionInfo } from "../../library.ts";
import { checkCaller, isLoopbackHost } from "../../host.ts";
import { INVALID_REQUEST } from "../protocol.ts";
import { VERSION } from "../version.ts";
import { SAFE } from "./event_stream.ts";
import { FaultBook } from "./fault_book.ts";
import { buildPage, type Page } from "./page.ts";
import { type NamedServer, Relay } from "./relay.ts";
import type { Sandbox } from "./sandbox.ts";

export { FaultBook };
export { startSandbox } from "./sandbox.ts";

export interface InspectorOptions {
  /** The endpoint path of the server that serves the page. `undefined` if the inspector serves the page itself. */
  readonly endpoint?: string;
  /** The server named on the command line: a URL, or a command that starts a server. */
  readonly server?: NamedServer;
  /**
   * The sandbox in which the page shows apps. The inspector closes the sandbox. Without a sandbox, the page shows no
   * apps.
   */
  readonly sandbox?: Sandbox;
  readonly faults?: FaultBook;
}

export const PAGE_PATH = "/";

const RELAY_PATH = "/-/inspector/";

export async function createInspector({ endpoint, server, sandbox, faults }: InspectorOptions): Promise<Inspector> {
  const page = await buildPage({ endpoint, protocol: "2026-07-28", sandbox: sandbox?.origin, version: VERSION });
  return new Inspector(page, endpoint, { relay: new Relay(server, faults), sandbox });
}

interface InspectorParts {
  readonly relay: Relay;
  readonly sandbox: Sandbox | undefined;
}

export class Inspector {
  readonly #page: Page;
  readonly #endpoint: string | undefined;
  readonly #relay: Relay;
  readonly #sandbox: Sandbox | undefined;

  constructor(page: Page, endpoint: string | undefined, { relay, sandbox }: InspectorParts) {
    this.#page = page;
    this.#endpoint = endpoint;
    this.#relay = relay;
    this.#sandbox = sandbox;
  }

  /** The key that the fragment of the page's URL contains. Only a page with the key can connect to other servers. */
  get key(): string {
    return this.#relay.key;
  }

  /** Handles a request for the page or the relay. Returns `undefined` for other paths. */
  respond(request: Request, info: ConnectionInfo): Response | Promise<Response> | undefined {
    const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
    const path = request.url.slice(start).replace(/[?#].*$/, "");
    const isRelayed = path.startsWith(RELAY_PATH);
    if (path !== PAGE_PATH && !isRelayed) return;
    // Accept only requests from this machine, regardless of the hosts and origins that the server allows.
    const rejection = checkCaller(request, info, { hosts: [], origins: [], allows: () => undefined });
    if (rejection) return reject(rejection.status, `Cannot serve the request: ${rejection.reason}`);
    if (!isLoopbackHost(request.headers.get("host") ?? "")) {
      return reject(403, "Cannot serve the inspector: the inspector is only for this machine; open http://127.0.0.1");
    }
    return isRelayed ? this.#relay.respond(request, path.slice(RELAY_PATH.length)) : this.#respondPage(request.method);
  }

  /** Closes the sandbox and all connections from the page to other servers. */
  async close(): Promise<void> {
    await Promise.all([this.#relay.close(), this.#sandbox?.stop()]);
  }

  #respondPage(method: string): Response {
    if (method !== "GET" && method !== "HEAD") {
      const endpoint = this.#endpoint;
      const remedy = endpoint === undefined ? "use GET" : `the endpoint is ${endpoint}`;
      const message = `Cannot serve the inspector: the method is not allowed; ${remedy}`;
      // Respond with JSON-RPC, because MCP clients send their messages to this path if the user omits the server's path.
      const error = { code: INVALID_REQUEST, message, data: endpoint === undefined ? undefined : { endpoint } };
      const headers = { "content-type": "application/json", allow: "GET, HEAD" };
      return new Response(JSON.stringify({ jsonrpc: "2.0", error }), { status: 405, headers });
    }
    const { html, policy } = this.#page;
    const headers = {
      ...SAFE,
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy,
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    };
    return new Response(method === "HEAD" ? null : html, { headers });
  }
}

function reject(status: number, reason: string): Response {
  return new Response(`${reason}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
}
