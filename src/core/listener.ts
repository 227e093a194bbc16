/**
 * The options and the members of an HTTP listener, on every runtime.
 */
import type { RuntimeFetch } from "./runtime.ts";

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
