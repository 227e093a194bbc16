/**
 * Listens for HTTP requests to a server, and explains why that fails.
 */
import { quote } from "../../../core/protocol/errors.ts";
import { type ListenOptions, openListener } from "../../../core/http_listener.ts";
import { bun, type RuntimeFetch } from "../../../core/runtime.ts";
import { checkTarget } from "./access.ts";
import { toRefusal } from "./refusals.ts";

export type { ListenOptions };

export interface Listener {
  readonly port: number;
  /** Stops accepting connections. Resolves when all responses have been sent. */
  stop(): Promise<void>;
  /** After `stop()`, closes the remaining connections without waiting. On Deno, only allows the process to end. */
  force(): void;
}

/**
 * Rejects requests whose target has another host than the Host header. Rejects with the runtime's error if the runtime
 * cannot listen on the address.
 */
export async function listen({ fetch, hostname, port }: ListenOptions): Promise<Listener> {
  // Bun needs no check, because it always builds the URL from the Host header.
  const answer: RuntimeFetch = bun ? fetch : (request, info) => {
    const refusal = checkTarget(request);
    return refusal ? toRefusal(refusal) : fetch(request, info);
  };
  const listener = await openListener({ hostname, port, fetch: answer });
  return {
    port: listener.port,
    stop: () => listener.stop(),
    force: listener.unref ?? (() => listener.close()),
  };
}

export interface ListenRemedies {
  readonly inUse: string;
  readonly lowPort: string;
  readonly other: string;
}

/** Returns the state and the remedy, for an error message. */
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
  if (code === "ERR_MODULE_NOT_FOUND") {
    return "on Node, listening needs the package srvx, which is not installed; run npm install srvx";
  }
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
