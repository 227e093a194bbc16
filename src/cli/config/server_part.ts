/**
 * Part of a server: handlers, and a way to keep clients informed of their changes.
 *
 * @module
 */
import type { Handler, Server } from "../../library.ts";

/** Handlers of a server that change together. */
export interface ServerPart {
  readonly handlers: readonly Handler[];
  /** The beginning of the URIs of a folder. */
  readonly baseUri?: string;
  /** Notifies the clients of a server of changes. Returns a function that stops it. */
  readonly watch?: (server: Server) => () => void;
}
