/**
 * HTTP servers and child processes for tests.
 */
import type { ConnectionInfo } from "../server/transports/http/access.ts";
import type { Fetch } from "../server/transports/http/fetch.ts";
import { openListener } from "../core/http_listener.ts";
import { bun, deno, node } from "../core/runtime.ts";
import { type Child, startChild as startChildOf } from "../client/child_process.ts";

export type { Child };

/** An HTTP server on this machine. */
export interface HttpServer {
  /** The origin, such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** Closes the server and all connections. */
  stop(): Promise<void>;
}

/** Works on any runtime. Asynchronous, because Node assigns the port only when the server listens. */
export async function openHttpServer(fetch: Fetch): Promise<HttpServer> {
  if (!node) return startHttpServer(fetch);
  const listener = await openListener({ hostname: "127.0.0.1", port: 0, fetch });
  const stop = async () => {
    const stopped = listener.stop();
    listener.close();
    await stopped;
  };
  return { origin: `http://127.0.0.1:${listener.port}`, stop };
}

/** Serves `fetch` on a free port of 127.0.0.1. Works only on Deno and Bun. */
export function startHttpServer(fetch: Fetch): HttpServer {
  if (deno) {
    const end = new AbortController();
    const server = deno.serve({ hostname: "127.0.0.1", port: 0, signal: end.signal, onListen() {} }, fetch);
    const stop = async () => {
      end.abort();
      await server.finished;
    };
    return { origin: `http://127.0.0.1:${server.addr.port}`, stop };
  }
  if (!bun) throw new Error("Cannot serve HTTP: startHttpServer supports only Deno and Bun; use openHttpServer");
  const server = bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  return { origin: `http://127.0.0.1:${server.port}`, stop: async () => await server.stop(true) };
}

/** Gives all callers the principal `principal`, as if code in front of the server had authenticated them. */
export function withPrincipal(fetch: Fetch, principal: unknown): Fetch {
  return (request, info) => fetch(request, { ...toInfo(info), principal });
}

function toInfo(info: ConnectionInfo | undefined): ConnectionInfo {
  const ask = info?.requestIP;
  return typeof ask === "function"
    ? { requestIP: (request: Request) => ask.call(info, request) }
    : { remoteAddr: info?.remoteAddr };
}

/** Returns the command that runs a file on the current runtime. On Deno, the process has no permissions. */
export function toCommand(file: string | URL): readonly string[] {
  const path = file instanceof URL && file.protocol === "file:" ? decodeURIComponent(file.pathname) : String(file);
  if (deno) return [deno.execPath(), "run", "--quiet", "--no-prompt", path];
  if (bun) return [bun.argv[0], path];
  if (node) return [node.execPath, path];
  throw new Error(
    "Cannot run a file: this runtime is not Deno, Bun or Node; pass the server object instead of the file",
  );
}

/** Starts a child process whose standard streams are pipes. */
export function startChild([command, ...args]: readonly string[]): Child {
  return startChildOf({ command, args }, { readsErrors: true });
}
