/**
 * A loaded target, and the function that replaces its handlers on a reload.
 */
import type { Handler, Server } from "../library.ts";
import type { ImportGraph } from "./import_graph.ts";
import { CliError, UsageError } from "./cli_error.ts";

export interface Loaded {
  readonly server: Server;
  /** The files from which the target was loaded, as far as they are known. */
  readonly files: readonly string[];
  /** Notifies clients of changes of the files that the server serves. Returns a function that stops watching. */
  watch?(): () => void;
  /**
   * Loads the changed files again and replaces the server's handlers. Clients stay connected. Returns the files to
   * watch from then on.
   *
   * @throws {CliError} if a file cannot be used. The handlers then remain unchanged.
   */
  reload?(changed: readonly string[]): Promise<readonly string[]>;
}

export interface LoadOptions {
  readonly imports?: ImportGraph;
  /** Whether the target is served over HTTP. */
  readonly isHttp?: boolean;
  /** The address on which the target is served, if other machines can reach it. */
  readonly publicHost?: string;
}

/**
 * Checks that only this machine can reach a server that uses the credentials of other servers for every client.
 *
 * @throws {UsageError} if other machines can reach it, and `servers`, the names of the other servers, is not empty.
 */
export function checkServers(servers: readonly string[], { publicHost }: LoadOptions): void {
  if (publicHost === undefined || !servers.length) return;
  throw new UsageError(
    `Cannot listen on ${publicHost}: every client could use the credentials of ${servers.join(", ")}; remove --host, ` +
      "or write a server file with createServer({ auth, handlers: [proxy(…)] })",
  );
}

/** Replaces all handlers of a server, and notifies clients once. If the function throws, no handlers are replaced. */
export function swapHandlers(server: Server, handlers: readonly Handler[]): void {
  const before = server.handlers.list();
  server.handlers.remove(...before);
  try {
    server.handlers.add(...handlers);
  } catch (error) {
    server.handlers.add(...before);
    throw error instanceof TypeError ? new CliError(error.message) : error;
  }
}
