/**
 * Listens for HTTP requests, the same on Deno, Bun and Node.
 */
import { listenOnNode } from "./node_listener.ts";
import { bun, deno, node, type RuntimeFetch } from "./runtime.ts";

/** The address and handler of an HTTP server. Port 0 chooses a free port. */
export interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  /** Handles a request. `info` contains the facts about the connection that the runtime provides. */
  readonly fetch: RuntimeFetch;
}

export interface HttpListener {
  readonly port: number;
  /** Stops accepting connections. Resolves when all responses have been sent. */
  stop(): Promise<void>;
  /** After `stop()`, closes the remaining connections without waiting for clients. */
  close(): void;
  /** After `stop()`, allows the process to end without closing the remaining connections. Set on Deno only. */
  readonly unref?: () => void;
}

/** Whether {@linkcode openListener} can listen on this runtime. */
export const canListen: boolean = !!(deno || bun || node);

/**
 * Idle timeout on Bun, in seconds. Bun's default of 10 seconds would disconnect a client that waits longer for the
 * response to a call without a stream.
 */
const BUN_IDLE = 255;

/**
 * Listens for HTTP requests. Rejects with the runtime's error if the runtime cannot listen on the address.
 *
 * @throws {TypeError} if {@linkcode canListen} is `false`.
 */
export async function openListener({ hostname, port, fetch }: ListenOptions): Promise<HttpListener> {
  if (bun) {
    const server = bun.serve({ fetch, hostname, port, idleTimeout: BUN_IDLE });
    return { port: server.port, stop: () => server.stop(), close: () => void server.stop(true) };
  }
  if (deno) {
    const end = new AbortController();
    const server = deno.serve({ hostname, port, signal: end.signal, onListen: () => {} }, fetch);
    const { addr } = server;
    return { port: addr.port, stop: () => server.shutdown(), close: () => end.abort(), unref: () => server.unref() };
  }
  if (node) return await listenOnNode(node, { hostname, port, fetch });
  throw new TypeError(
    "Cannot listen for HTTP: this platform is not Deno, Bun or Node; export the server as the default export instead",
  );
}
