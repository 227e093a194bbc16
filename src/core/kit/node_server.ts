/**
 * Passes requests from Node's HTTP server to a web-standard `fetch`.
 */

/** The part of `node:http` that this file uses. */
export interface HttpModule {
  createServer(listener: (request: Incoming, response: Outgoing) => void): Listener;
}

interface Listener {
  keepAliveTimeout: number;
  listen(options: { readonly port: number; readonly host: string }, ready: () => void): unknown;
  once(event: "error", listener: (error: Error) => void): unknown;
  address(): unknown;
  close(done: () => void): unknown;
  closeAllConnections(): void;
}

interface Incoming {
  readonly method?: string;
  readonly url?: string;
  readonly rawHeaders: readonly string[];
  readonly socket: { readonly remoteAddress?: string };
  on(event: "data", listener: (bytes: Uint8Array) => void): unknown;
  on(event: "end" | "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  pause(): unknown;
  resume(): unknown;
}

interface Outgoing {
  readonly writableFinished: boolean;
  writeHead(status: number, headers: readonly string[]): unknown;
  flushHeaders(): void;
  write(bytes: Uint8Array): boolean;
  end(text?: string): unknown;
  destroy(): unknown;
  on(event: "close", listener: () => void): unknown;
  on(event: "drain", listener: () => void): unknown;
}

/** The address and handler of an HTTP server. Port 0 chooses a free port. */
export interface NodeServeOptions {
  readonly hostname: string;
  readonly port: number;
  /** Handles a request. `info` contains the client's address, in Deno's format. */
  readonly fetch: (
    request: Request,
    info: { readonly remoteAddr: { readonly hostname?: string } },
  ) => Response | Promise<Response>;
}

/** A running HTTP server. */
export interface NodeServer {
  readonly port: number;
  /**
   * Stops accepting connections, and resolves when all connections have ended. If `now` is `true`, closes the open
   * connections immediately.
   */
  stop(now?: boolean): Promise<void>;
}

/**
 * Idle timeout of a connection, in milliseconds, as on Bun. With Node's default of 5 seconds, Node would close
 * connections that proxies and clients still use, and a request that is sent at the same moment would fail.
 */
const IDLE_MS = 255_000;

/** Serves HTTP. Rejects if the server cannot listen on the address. */
export async function serveOnNode({ createServer }: HttpModule, options: NodeServeOptions): Promise<NodeServer> {
  const server = createServer((request, response) => void answer(request, response, options.fetch));
  server.keepAliveTimeout = IDLE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: options.port, host: options.hostname }, resolve);
  });
  return {
    port: Number(Object(server.address()).port),
    async stop(now = false) {
      const closed = new Promise<void>((resolve) => server.close(resolve));
      if (now) server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(incoming: Incoming, outgoing: Outgoing, fetch: NodeServeOptions["fetch"]): Promise<void> {
  const gone = new AbortController();
  outgoing.on("close", () => {
    if (!outgoing.writableFinished) gone.abort(new DOMException("The client has disconnected", "AbortError"));
  });
  let request: Request;
  try {
    request = toRequest(incoming, gone.signal);
  } catch {
    // A web-standard request cannot have this method, header or host.
    outgoing.writeHead(400, []);
    outgoing.end();
    return;
  }
  try {
    const response = await fetch(request, { remoteAddr: { hostname: incoming.socket.remoteAddress } });
    await write(response, outgoing, gone.signal);
  } catch {
    // The handler failed, or the response body failed after the status was sent.
    if (!gone.signal.aborted) outgoing.destroy();
  } finally {
    // Discard the unread rest of the request body. Otherwise Node would not read the next request on this connection.
    incoming.resume();
  }
}

function toRequest(incoming: Incoming, signal: AbortSignal): Request {
  const { method = "GET", url = "/", rawHeaders } = incoming;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at], rawHeaders[at + 1]);
  const target = url.startsWith("/") ? `http://${headers.get("host") ?? "localhost"}${url}` : url;
  const body = method === "GET" || method === "HEAD" ? null : readBody(incoming);
  // Node requires `duplex` for a streamed body. `Object.assign` adds it, because the types of other runtimes lack it.
  return new Request(target, Object.assign({ method, headers, body, signal }, { duplex: "half" }));
}

/**
 * Returns the body as a stream. Applies backpressure: reads the socket only as fast as the handler reads the stream.
 */
function readBody(incoming: Incoming): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOver = false;
  return new ReadableStream({
    start(controller) {
      incoming.on("data", (bytes) => {
        if (isOver) return;
        controller.enqueue(new Uint8Array(bytes));
        if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
      });
      const end = (finish: () => void) => () => {
        if (isOver) return;
        isOver = true;
        finish();
      };
      incoming.on("end", end(() => controller.close()));
      const lost = end(() => controller.error(new DOMException("The client has disconnected", "AbortError")));
      incoming.on("error", lost);
      incoming.on("close", lost);
      incoming.pause();
    },
    pull: () => void incoming.resume(),
    cancel() {
      isOver = true;
    },
  });
}

async function write({ status, headers, body }: Response, outgoing: Outgoing, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return await body?.cancel();
  outgoing.writeHead(status, [...headers].flat());
  if (!body) {
    outgoing.end();
    return;
  }
  // Send the headers now, because the body may take a while to produce its first bytes.
  outgoing.flushHeaders();
  const reader = body.getReader();
  signal.addEventListener("abort", () => void reader.cancel(signal.reason).catch(() => {}));
  let drained = Promise.withResolvers<void>();
  const proceed = () => {
    drained.resolve();
    drained = Promise.withResolvers<void>();
  };
  outgoing.on("drain", proceed);
  outgoing.on("close", proceed);
  for (let next = await reader.read(); !next.done && !signal.aborted; next = await reader.read()) {
    const { promise } = drained;
    if (!outgoing.write(next.value)) await promise;
  }
  outgoing.end();
}
