/**
 * Listens for HTTP requests on Deno, Bun and Node.
 *
 * @module
 */
import { serveOnNode } from "../../kit/node_server.ts";
import { bun, type BunServer, deno, node, type RuntimeFetch } from "../../runtime.ts";

/** The address and the handler of an HTTP server. Port 0 picks a free port. */
export interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  /** Handles a request. `info` is the runtime's information about the connection. */
  readonly fetch: RuntimeFetch;
}

/** A running HTTP server. */
export interface Listener {
  readonly port: number;
  /** Stops accepting connections. Resolves when all responses have been sent. */
  stop(): Promise<void>;
  /**
   * Closes connections after `stop()` without waiting for clients. On Deno, clients may otherwise keep the process
   * running.
   */
  force(): void;
}

/**
 * Idle timeout on Bun, in seconds. Bun's default of 10 seconds would disconnect clients that wait for a long call
 * without a stream.
 */
const BUN_IDLE = 255;

/** Listens for HTTP requests. Throws the error of the runtime if the address cannot be used. */
export async function listen({ fetch, hostname, port }: ListenOptions): Promise<Listener> {
  if (deno) {
    const server = deno.serve({ hostname, port, onListen: () => {} }, fetch);
    return { port: server.addr.port, stop: () => server.shutdown(), force: () => server.unref() };
  }
  if (bun) return toListener(bun.serve({ fetch, hostname, port, idleTimeout: BUN_IDLE }));
  if (node) return toListener(await serveOnNode(node.getBuiltinModule("http"), { fetch, hostname, port }));
  throw new TypeError("Cannot listen for HTTP: this platform is neither Deno, Bun nor Node; export the server instead");
}

function toListener(server: BunServer): Listener {
  return { port: server.port, stop: () => server.stop(), force: () => void server.stop(true) };
}

/** The remedies for each reason why an address cannot be used. */
export interface ListenRemedies {
  readonly inUse: string;
  readonly lowPort: string;
  readonly other: string;
}

/** Returns a text that explains why an address cannot be used: the state and the remedy. */
export function explainListenError(
  error: unknown,
  { hostname, port }: Omit<ListenOptions, "fetch">,
  { inUse, lowPort, other }: ListenRemedies,
): string {
  const { message = String(error), code, name } = Object(error);
  if (name === "NotCapable") {
    return `Deno may not listen on ${hostname}, port ${port}; start it with --allow-net=${hostname}:${port}`;
  }
  if (code === "EADDRINUSE") return `port ${port} of ${hostname} is in use; ${inUse}`;
  if (code === "EACCES") return `port ${port} needs administrator rights; ${lowPort}`;
  return `cannot listen on ${hostname}, port ${port}: ${message}; ${other}`;
}

/** Returns a host in the spelling of URLs. An address that stands for all interfaces becomes the loopback address. */
export function toReachable(hostname: string): string {
  if (hostname === "0.0.0.0" || hostname === "::") return "127.0.0.1";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}
