/**
 * Opens the way to a server for each transport.
 *
 * @module
 */
import type { Principal } from "../core/context.ts";
import type { Fetch } from "../transports/http/fetch.ts";
import type { INTERNALS } from "../core/internals.ts";
import type { PipeServer } from "../transports/channel.ts";
import type { Channel } from "../client/channel.ts";
import type { Child } from "../client/child.ts";
import { httpChannel } from "../client/http_channel.ts";
import { lineChannel } from "../client/line_channel.ts";
import { childLines, memoryLines } from "../client/lines.ts";
import type { Message } from "../client/message.ts";
import { startChild, startHttpServer, toCommand, withPrincipal } from "./http_server.ts";
import type { Transcript } from "./transcript.ts";

/** A server as `createServer` makes it. */
export interface TestServer extends PipeServer {
  /** Answers web-standard requests. */
  readonly fetch: Fetch;
  /**
   * What the test kit needs.
   *
   * @ignore
   */
  readonly [INTERNALS]: PipeServer[typeof INTERNALS] & { develop?(): Promise<void> };
}

/**
 * How messages travel: `memory` is web requests handed to `server.fetch`, `http` a real server on a free port of
 * 127.0.0.1, `pipe` both ends of a channel in this process, `stdio` the standard streams of a child process.
 */
export type Transport = "memory" | "http" | "pipe" | "stdio";

/** What a test may want to know of the way to the server. */
export interface RouteFacts {
  /** The endpoint, over `http` and `memory`. */
  readonly url?: string;
  /** The child process, over `stdio`. */
  readonly child?: {
    /** What it has written to standard error; settles when it has exited. */
    readonly stderr: Promise<string>;
    readonly exitCode: Promise<number>;
  };
}

/** What a way needs to know. */
export interface RouteOptions {
  readonly transport?: Transport;
  readonly principal?: Principal;
  readonly path?: string;
  readonly transcript: Transcript;
  readonly hear: (message: Message) => void;
}

/** An open way. */
export interface Route {
  readonly channel: Channel;
  readonly facts: RouteFacts;
}

/** Opens the way to a server. */
export function openRoute(server: TestServer | string | URL, options: RouteOptions): Route {
  const { transport = "memory", principal, path = "/mcp", transcript, hear } = options;
  const isFile = typeof server === "string" || server instanceof URL;
  if (isFile !== (transport === "stdio")) {
    throw new TypeError(
      `Cannot connect by ${transport}: it takes ${isFile ? "a server" : "the path of a file that serves"}`,
    );
  }
  if (isFile) return openChild(startChild(toCommand(server)), { transcript, hear });
  if (transport === "pipe") {
    const open = memoryLines(server, principal);
    return { channel: lineChannel({ open, hear, onBroken, trace: transcript }), facts: {} };
  }
  const answer = principal ? withPrincipal(server.fetch, principal) : server.fetch;
  const strict = { trace: transcript, isStrict: true };
  if (transport === "memory") {
    const url = `http://localhost${path}`;
    return { channel: httpChannel({ url, fetch: (request) => answer(request), ...strict }), facts: { url } };
  }
  const host = startHttpServer(answer);
  const url = host.origin + path;
  return { channel: httpChannel({ url, fetch, stop: host.stop, ...strict }), facts: { url } };
}

function openChild(child: Child, { transcript, hear }: Pick<RouteOptions, "transcript" | "hear">): Route {
  const stderr = new Response(child.errors).text();
  const open = childLines(child, { onBroken, exitMs: EXIT_MS });
  return {
    channel: lineChannel({ open, hear, onBroken, trace: transcript }),
    facts: { child: { stderr, exitCode: child.exited } },
  };
}

/** How long a child process may take to exit after the end of its input. */
const EXIT_MS = 10_000;

// What is no message fails the test that runs.
function onBroken(error: unknown): never {
  throw error;
}
