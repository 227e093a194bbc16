/**
 * Opens the way to a server for each transport.
 *
 * @module
 */
import type { Principal } from "../core/context.ts";
import type { Fetch } from "../transports/http.ts";
import { LineSplitter } from "../transports/lines.ts";
import { type OpenPipe, PIPE } from "../transports/pipe.ts";
import type { Channel } from "./channel.ts";
import { fetchChannel } from "./fetch_channel.ts";
import { type Child, startChild, startHost, toCommand, withPrincipal } from "./host.ts";
import { lineChannel, type Lines } from "./line_channel.ts";
import type { Message } from "./message.ts";
import type { Transcript } from "./transcript.ts";

/** A server as `createServer` makes it. */
export interface TestServer {
  /** Answers web-standard requests. */
  readonly fetch: Fetch;
  /** @internal Opens a pipe. */
  readonly [PIPE]: OpenPipe;
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
    const channel = lineChannel({ transcript, hear, open: (receive) => openPipe(server, receive, principal) });
    return { channel, facts: {} };
  }
  const answer = principal ? withPrincipal(server.fetch, principal) : server.fetch;
  if (transport === "memory") {
    const url = `http://localhost${path}`;
    return { channel: fetchChannel({ url, fetch: (request) => answer(request), transcript }), facts: { url } };
  }
  const host = startHost(answer);
  const url = host.origin + path;
  return { channel: fetchChannel({ url, fetch, transcript, stop: host.stop }), facts: { url } };
}

function openPipe(server: TestServer, receive: (text: string) => void, principal: Principal | undefined): Lines {
  // A turn later, as it is between two processes: what is written during a call never arrives before the call returns.
  const pipe = server[PIPE]((text) => void queueMicrotask(() => receive(text)), principal);
  return {
    write: (text) => pipe.receive(text),
    async close() {
      pipe.close();
      await undefined;
    },
  };
}

function openChild(child: Child, { transcript, hear }: Pick<RouteOptions, "transcript" | "hear">): Route {
  const stderr = new Response(child.errors).text();
  const encoder = new TextEncoder();
  const channel = lineChannel({
    transcript,
    hear,
    open(receive, end) {
      const reading = readLines(child.output, receive).finally(end);
      return {
        write: (text) => child.write(encoder.encode(`${text}\n`)),
        async close() {
          await child.closeInput().catch(() => {});
          const timer = setTimeout(() => child.kill(), EXIT_MS);
          await Promise.all([child.exited, reading, stderr]);
          clearTimeout(timer);
        },
      };
    },
  });
  return { channel, facts: { child: { stderr, exitCode: child.exited } } };
}

/** How long a child process may take to exit after the end of its input. */
const EXIT_MS = 10_000;

async function readLines(output: ReadableStream<Uint8Array>, receive: (text: string) => void): Promise<void> {
  const splitter = new LineSplitter(Infinity);
  for await (const bytes of output) splitter.push(bytes).forEach(take);
  splitter.end().forEach(take);

  function take(line: ReturnType<LineSplitter["push"]>[number]): void {
    if ("problem" in line) throw new Error("Cannot read the server's output: it is not UTF-8");
    receive(line.text);
  }
}
