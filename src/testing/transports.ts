/**
 * Opens the transport between a test client and a server.
 */
import type { Principal } from "../server/call/context.ts";
import type { Fetch } from "../server/transports/http/fetch.ts";
import { fetchFrom } from "../server/transports/http/request_copy.ts";
import type { Served } from "../server/transports/channel.ts";
import type { Channel } from "../client/channel.ts";
import type { Child } from "../client/child_process.ts";
import { createSender } from "../client/client_auth.ts";
import { HttpChannel } from "../client/http_channel.ts";
import { lineChannel } from "../client/line_channel.ts";
import { childTransport, memoryTransport } from "../client/line_transports.ts";
import type { Message } from "../client/message.ts";
import { type HttpServer, openHttpServer, startChild, toCommand, withPrincipal } from "./http_server.ts";
import type { Transcript } from "../core/kit/transcript.ts";

/** A server in this process. */
export type LocalServer = Served & { readonly fetch: Fetch };

/**
 * How the test client reaches the server:
 *
 * - `memory`: requests to `server.fetch`, without a network
 * - `http`: a real HTTP server on a free port of 127.0.0.1
 * - `pipe`: a channel within this process
 * - `stdio`: the standard streams of a child process
 */
export type Transport = "memory" | "http" | "pipe" | "stdio";

/** Facts about a connection's transport. */
export interface TransportInfo {
  /** The URL of the endpoint. `undefined` for `pipe` and `stdio`. */
  readonly url?: string;
  /** The child process. `undefined` unless the transport is `stdio`. */
  readonly child?: {
    /** Resolves when the process has exited, with the text that the process wrote to standard error. */
    readonly stderr: Promise<string>;
    readonly exitCode: Promise<number>;
  };
}

export interface TransportOptions {
  readonly transport?: Transport;
  readonly principal?: Principal;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly host?: HttpServer;
  readonly transcript: Transcript;
  readonly onMessage: (message: Message) => void;
}

/** Starts an HTTP server for the transport `http`. Returns `undefined` for other transports. */
export async function startHost(
  server: LocalServer | string | URL,
  { transport, principal }: Pick<TransportOptions, "transport" | "principal">,
): Promise<HttpServer | undefined> {
  if (transport !== "http" || typeof server === "string" || server instanceof URL) return;
  return await openHttpServer(toAnswer(server, principal));
}

function toAnswer(server: LocalServer, principal: Principal | undefined): Fetch {
  const fetch: Fetch = (request, info) => fetchFrom(server, { request, info });
  return principal !== undefined ? withPrincipal(fetch, principal) : fetch;
}

export interface OpenTransport {
  readonly channel: Channel;
  readonly info: TransportInfo;
}

export function openTransport(server: LocalServer | string | URL, options: TransportOptions): OpenTransport {
  const { transport = "memory", principal, path = "/mcp", headers, host, transcript, onMessage } = options;
  const isFile = typeof server === "string" || server instanceof URL;
  if (isFile !== (transport === "stdio")) {
    throw new TypeError(
      `Cannot connect over ${transport}: ${
        isFile
          ? "the target is a file; pass a server"
          : "the target is a server; pass the path of a file that serves over stdio"
      }`,
    );
  }
  if (isFile) return openChild(startChild(toCommand(server)), { transcript, onMessage });
  if (transport === "pipe") {
    const open = memoryTransport(server, principal);
    return { channel: lineChannel({ open, onMessage, onBroken, trace: transcript }), info: {} };
  }
  const strict = { headers, trace: transcript, isStrict: true };
  if (!host) {
    const url = `http://localhost${path}`;
    const answer = toAnswer(server, principal);
    return {
      channel: new HttpChannel({ url, sender: createSender(url, (request) => answer(request)), ...strict }),
      info: { url },
    };
  }
  const url = host.origin + path;
  return {
    channel: new HttpChannel({ url, sender: createSender(url, fetch), stop: host.stop, ...strict }),
    info: { url },
  };
}

function openChild(
  child: Child,
  { transcript, onMessage }: Pick<TransportOptions, "transcript" | "onMessage">,
): OpenTransport {
  const stderr = new Response(child.errors).text();
  const open = childTransport(child, { onBroken, exitMs: EXIT_MS });
  return {
    channel: lineChannel({ open, onMessage, onBroken, trace: transcript }),
    info: { child: { stderr, exitCode: child.exited } },
  };
}

/** Milliseconds that a child process may take to exit after its standard input has been closed. */
const EXIT_MS = 10_000;

// Fails the running test, because a server must write only messages to standard output.
function onBroken(error: unknown): never {
  throw error;
}
