/**
 * Listens for HTTP requests, the same on Deno, Bun and Node.
 */
import type { HttpListener, ListenOptions } from "./listener.ts";
import { listenOnNode } from "./node_listener.ts";
import { bun, deno, node } from "./runtime.ts";

export type { HttpListener, ListenOptions };

export const canListen: boolean = !!(deno || bun || node);

/** In seconds. Bun's default of 10 seconds would disconnect a client that waits for a call without a stream. */
const BUN_IDLE = 255;

/**
 * Rejects with the runtime's error if the runtime cannot listen on the address.
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
