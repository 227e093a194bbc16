/**
 * A server that `mcp install` adds to the configuration of a client.
 *
 * @module
 */

/** A server that the client starts. */
export interface StdioServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A server at a URL. */
export interface HttpServer {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}
