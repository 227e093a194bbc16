/**
 * A loaded target, and the replacement of its handlers when it is reloaded.
 *
 * @module
 */
import type { Handler, Server } from "../library.ts";
import { CliError } from "./cli_error.ts";

/** A loaded target. */
export interface Loaded {
  readonly server: Server;
  /** The files from which the target was read, as far as known. */
  readonly files: readonly string[];
  /**
   * Watches the files that the server offers, and notifies clients of changes. Returns a function that stops watching.
   */
  watch?(): () => void;
  /**
   * Reads the changed files again and replaces the server's handlers. Clients stay connected. Returns the files to watch.
   *
   * @throws {CliError} if the files cannot be used. The handlers then stay the same.
   */
  reload?(changed: readonly string[]): Promise<readonly string[]>;
}

/** Replaces all handlers of a server, and notifies clients once. If it throws, no handlers are replaced. */
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
