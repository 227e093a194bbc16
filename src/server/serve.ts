/**
 * Serves a server over HTTP from your own program, on Deno, Bun and Node.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { serve } from "@x/mcp/serve";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello] });
 * await using served = await serve(server, { port: 0 });
 * console.log(served.url);
 * ```
 *
 * @module
 */
import { INTERNALS } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { deadline } from "../core/kit/deadline.ts";
import { toStartFailure } from "../core/kit/failed_part.ts";
import { reportRejections } from "./rejections.ts";
import type { Server } from "./server.ts";
import { fetchFrom } from "./transports/http/request_copy.ts";
import {
  explainListenError,
  listen,
  type Listener,
  type ListenRemedies,
  toReachable,
} from "./transports/http/listen.ts";
import { exitSoon, listenToSignals } from "./transports/stdio/stop_signals.ts";

/** Options of {@linkcode serve}. */
export interface ServeOptions {
  /** Port on which the server listens. 0 chooses a free port. Defaults to 3000. */
  readonly port?: number;
  /**
   * Address on which the server listens. Use `0.0.0.0` to listen on all IPv4 addresses, for example in a container.
   * Defaults to `127.0.0.1`, which only this machine can reach.
   */
  readonly hostname?: string;
  /** Closes the server, like `close()`, when this signal aborts. */
  readonly signal?: AbortSignal;
  /**
   * Whether SIGINT (Ctrl-C) and SIGTERM close the server. If `true`, a second signal ends the process immediately.
   * Defaults to `true`.
   */
  readonly signals?: boolean;
}

/** A server that listens for HTTP requests. */
export interface Serving extends AsyncDisposable {
  /** URL of the endpoint, such as `http://127.0.0.1:3000/mcp`. For `mount`, the URL of its first server. */
  readonly url: string;
  /** Port on which the server listens. */
  readonly port: number;
  /** Settles when the server has closed, after a signal or a call of `close()`. */
  readonly finished: Promise<void>;
  /**
   * Closes the server: rejects new requests with HTTP 503, waits at most `calls.closeMs` milliseconds for running
   * calls, disposes the services, and stops listening. Settles after all of these steps.
   */
  close(): Promise<void>;
}

const OPTIONS: KnownOptions<keyof ServeOptions> = {
  names: {
    port: {
      findProblem: (port) => isPort(port) ? undefined : "is not a port; use an integer from 0 (any free port) to 65535",
    },
    hostname: {
      findProblem: (name) =>
        typeof name === "string" && name ? undefined : 'is not an address; use an address such as "0.0.0.0"',
    },
    signal: true,
    signals: "boolean",
  },
  hints: { address: "hostname", abort: "signal" },
  elsewhere: { path: "give it to createServer", auth: "give it to createServer", hosts: "give it to createServer" },
};

const REMEDIES: ListenRemedies = {
  inUse: "choose another port, or 0 for any free port",
  lowPort: "choose a port of at least 1024",
  other: "set hostname to an address of this machine",
};

/**
 * Maximum time in milliseconds to send the last responses after the server has closed. Without this limit, a client
 * that does not read its response would keep the process running.
 */
const STOP_MS = 1000;

/**
 * Creates the server's services, and then serves the server over HTTP. Do not call `serve` in a file that `deno serve`,
 * `bun` or `mcp serve` runs, because these commands already listen for requests.
 *
 * While the server is served, a promise that is rejected and that no code awaits does not end the process.
 * `observer.fault` receives the rejection, unless your program has its own listener for such rejections, or runs with
 * Node's flag `--unhandled-rejections`. An uncaught exception still ends the process.
 *
 * SIGINT and SIGTERM call `close()`. After the server has closed, the process ends with code 0 as soon as nothing else
 * keeps it running, and after 3 seconds in any case. A second signal ends the process immediately, with code 130 or
 * 143.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 * @throws {Error} if a part of the server fails to start, such as a service, or if the server cannot listen on the
 * address. The server is not closed in these cases.
 */
export async function serve(server: Server, options: ServeOptions = {}): Promise<Serving> {
  checkOptions("serve", options, OPTIONS);
  const { port = 3000, hostname = "127.0.0.1", signal, signals = true } = options;
  const internals = Object(server)[INTERNALS];
  if (!internals) {
    throw new TypeError("Cannot serve: the first argument is not a server; create a server with createServer()");
  }
  const { name, servers: [first] = [server] } = server[INTERNALS];
  const fail = (state: string, cause: unknown) => new Error(`Cannot serve ${name}: ${state}`, { cause });
  try {
    await server.ready();
  } catch (error) {
    throw fail(`${toStartFailure(error)}; see the cause`, error);
  }
  const address = { hostname, port };
  const listener = await listen({ ...address, fetch: (request, info) => fetchFrom(server, { request, info }) })
    .catch((error) => {
      throw fail(explainListenError(error, address, REMEDIES), error);
    });
  const endReports = reportRejections(server);
  const heard = signals ? listenToSignals() : undefined;
  const { promise: finished, resolve } = Promise.withResolvers<void>();
  const onAbort = () => void close();
  let closing = false;
  function close(): Promise<void> {
    if (!closing) {
      closing = true;
      resolve(closeAll());
    }
    return finished;
  }
  async function closeAll(): Promise<void> {
    signal?.removeEventListener("abort", onAbort);
    try {
      // Close the server before the listener, so that new requests get HTTP 503 while running calls finish. Load
      // balancers then use another instance.
      await server.close();
    } finally {
      await stop(listener);
      endReports();
      heard?.forget();
      if (heard?.signal.aborted) exitSoon();
    }
  }
  signal?.addEventListener("abort", onAbort);
  heard?.signal.addEventListener("abort", onAbort);
  if (signal?.aborted) onAbort();
  const url = `http://${toReachable(hostname)}:${listener.port}${first[INTERNALS].http.path}`;
  return { url, port: listener.port, finished, close, [Symbol.asyncDispose]: close };
}

/** Waits at most {@linkcode STOP_MS} for the last responses. */
async function stop(listener: Listener): Promise<void> {
  await deadline(listener.stop(), { ms: STOP_MS, onTimeout: () => listener.force() });
}

function isPort(port: unknown): boolean {
  return typeof port === "number" && Number.isSafeInteger(port) && port >= 0 && port <= 65_535;
}
