/**
 * Listens for HTTP requests on Deno, Bun and Node.
 */
import { quote } from "../../../core/protocol/errors.ts";
import { serveOnNode } from "../../../core/kit/node_server.ts";
import { bun, type BunServer, deno, node, type RuntimeFetch } from "../../../core/runtime.ts";
import { checkTarget } from "./access.ts";
import { toMessage, toRefusal } from "./refusals.ts";

/** The address and handler of an HTTP server. Port 0 chooses a free port. */
export interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  /** Handles a request. `info` contains the facts about the connection that the runtime provides. */
  readonly fetch: RuntimeFetch;
}

export interface Listener {
  readonly port: number;
  /** Stops accepting connections. Resolves when all responses have been sent. */
  stop(): Promise<void>;
  /**
   * After `stop()`, closes the remaining connections without waiting for clients. On Deno, does not close them, but
   * allows the process to end.
   */
  force(): void;
}

/**
 * Idle timeout on Bun, in seconds. Bun's default of 10 seconds would disconnect a client that waits longer for the
 * response to a call without a stream.
 */
const BUN_IDLE = 255;

/**
 * Listens for HTTP requests. Rejects requests whose target has another host than the Host header. Rejects with the
 * runtime's error if the runtime cannot listen on the address.
 */
export async function listen({ fetch, hostname, port }: ListenOptions): Promise<Listener> {
  // Bun needs no check, because it always builds the URL from the Host header.
  if (bun) return toListener(bun.serve({ fetch, hostname, port, idleTimeout: BUN_IDLE }));
  const answer: RuntimeFetch = (request, info) => refuseTarget(request) ?? fetch(request, info);
  if (deno) {
    const server = deno.serve({ hostname, port, onListen: () => {} }, answer);
    return { port: server.addr.port, stop: () => server.shutdown(), force: () => server.unref() };
  }
  if (node) return toListener(await serveOnNode(node.getBuiltinModule("http"), { fetch: answer, hostname, port }));
  throw new TypeError(
    "Cannot listen for HTTP: this platform is not Deno, Bun or Node; export the server as the default export instead",
  );
}

function refuseTarget(request: Request): Response | undefined {
  const refusal = checkTarget(request);
  return refusal && toRefusal({ ...refusal, message: toMessage(refusal.state) });
}

function toListener(server: BunServer): Listener {
  return { port: server.port, stop: () => server.stop(), force: () => void server.stop(true) };
}

/** The remedy for each reason why a runtime cannot listen on an address. */
export interface ListenRemedies {
  readonly inUse: string;
  readonly lowPort: string;
  readonly other: string;
}

/** Explains why a runtime could not listen on an address. Returns the state and the remedy, for an error message. */
export function explainListenError(
  error: unknown,
  { hostname, port }: Omit<ListenOptions, "fetch">,
  { inUse, lowPort, other }: ListenRemedies,
): string {
  const { message = String(error), code, name } = Object(error);
  if (name === "NotCapable") {
    return `Deno has no permission to listen on ${hostname}, port ${port}; start Deno with --allow-net=${hostname}:${port}`;
  }
  if (code === "EADDRINUSE") return `port ${port} of ${hostname} is already in use; ${inUse}`;
  if (code === "EACCES") return `port ${port} needs administrator rights; ${lowPort}`;
  return `listening on ${hostname}, port ${port}, failed with ${quote(message)}; ${other}`;
}

/**
 * Returns a host as it is written in a URL. Returns the loopback address for an address that stands for all interfaces.
 */
export function toReachable(hostname: string): string {
  if (hostname === "0.0.0.0" || hostname === "::") return "127.0.0.1";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}
