/**
 * Listens for HTTP requests on Node. The package srvx makes the requests and responses.
 */
import type { HttpListener, ListenOptions } from "./listener.ts";
import { type Classes, createClasses } from "./node_request.ts";
import type {
  NodeConnection,
  NodeGlobal,
  NodeHttpServer,
  NodeIncoming,
  NodeOutgoing,
  RuntimeFetch,
} from "./runtime.ts";

/**
 * The module of srvx. A variable, because JSR, Deno and bundlers would add the package to all programs that import this
 * file. The npm package contains the name as a literal.
 */
const ADAPTER: string = "srvx/node";

/**
 * Idle timeout of a connection, in milliseconds, as on Bun. With Node's default of 5 seconds, Node would close
 * connections that proxies and clients still use, and a request that is sent at the same moment would fail.
 */
const IDLE_MS = 255_000;

/**
 * Milliseconds that an idle connection stays open after the listener has stopped. A request that a client has sent before
 * it could know of the stop gets a response within this time. The response closes the connection.
 */
const GRACE_MS = 500;

/** Number of requests of one connection that wait for the response to an earlier request. */
const WAITING = 8;

/**
 * Maximum size of the body of a waiting request, in bytes. If the buffer of an unread body is full, Node stops reading
 * from the connection, and does not notice that the client has disconnected. The buffer has 64 KiB, or 16 KiB on
 * Windows.
 */
const WAITING_BYTES = 16_000;

/** Rejects with Node's error if Node cannot listen on the address, or if srvx is not installed. */
export async function listenOnNode(node: NodeGlobal, options: ListenOptions): Promise<HttpListener> {
  classes ??= createClasses(await import(ADAPTER));
  const listener = new NodeListener(node, classes, options.fetch);
  await listener.listen(options);
  return listener;
}

/** All listeners share the classes, so that engines compile the code for one class of requests. */
let classes: Classes | undefined;

class NodeListener implements HttpListener {
  readonly #node: NodeGlobal;
  readonly #classes: Classes;
  readonly #fetch: RuntimeFetch;
  readonly #server: NodeHttpServer;
  readonly #waiting = new WeakMap<NodeConnection, number>();
  #isStopped = false;

  constructor(node: NodeGlobal, classes: Classes, fetch: RuntimeFetch) {
    this.#node = node;
    this.#classes = classes;
    this.#fetch = fetch;
    const answer = (incoming: NodeIncoming, outgoing: NodeOutgoing) => void this.#answer(incoming, outgoing);
    // Node must not answer any request itself, because its responses would wait without a bound.
    this.#server = node.getBuiltinModule("http").createServer({ requireHostHeader: false }, answer);
    this.#server.on("checkExpectation", answer);
    this.#server.keepAliveTimeout = IDLE_MS;
  }

  async listen({ hostname: host, port }: ListenOptions): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, host }, resolve);
    });
  }

  get port(): number {
    return Number(Object(this.#server.address()).port);
  }

  async stop(): Promise<void> {
    const server = this.#server;
    // Responses close their connections only from now on. Otherwise their clients would connect again, and the system
    // resets connections that Node has not accepted when it stops to listen.
    this.#isStopped = true;
    server.keepAliveTimeout = GRACE_MS;
    server.keepAliveTimeoutBuffer = 0;
    const closed = Promise.withResolvers<void>();
    // Do not call `close` of the HTTP server now, because it also closes idle connections, on which requests may be on
    // their way.
    this.#node.getBuiltinModule("net").Server.prototype.close.call(server, closed.resolve);
    const closeIdle = () => server.close(() => {});
    const timer = setTimeout(closeIdle, GRACE_MS);
    await closed.promise;
    clearTimeout(timer);
    closeIdle();
  }

  close(): void {
    this.#server.closeAllConnections();
  }

  async #answer(incoming: NodeIncoming, outgoing: NodeOutgoing): Promise<void> {
    if (!outgoing.socket) await this.#waitForTurn(incoming, outgoing);
    const request = this.#toRequest(incoming, outgoing);
    if (!request) {
      outgoing.writeHead(400, []).end();
      return;
    }
    try {
      const response = await this.#fetch(request, { remoteAddr: { hostname: incoming.socket.remoteAddress } });
      if (this.#isStopped) outgoing.shouldKeepAlive = false;
      if (!this.#classes.sendLight(response, outgoing)) await send(response, outgoing);
    } catch {
      // The handler failed, or the response cannot be sent, or its body failed after the status was sent.
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500, []).end();
    }
    // Without this call, Node would not read the next request on this connection.
    if (!incoming.readableEnded) this.#classes.discardBody(request);
  }

  /**
   * Waits for the earlier responses on the connection. Otherwise a client that sends many requests in one packet and
   * reads nothing could let the server buffer the responses to all of them.
   *
   * If too much waits, closes the connection, and never resolves. Do not pause the connection instead, because Node does
   * not notice that the client of a paused connection has disconnected.
   */
  async #waitForTurn(incoming: NodeIncoming, outgoing: NodeOutgoing): Promise<void> {
    const { socket } = incoming;
    const count = (this.#waiting.get(socket) ?? 0) + 1;
    if (count > WAITING || !isSmall(incoming)) socket.destroy();
    this.#waiting.set(socket, count);
    await new Promise<void>((resolve) => outgoing.once("socket", resolve));
    this.#waiting.set(socket, (this.#waiting.get(socket) ?? 0) - 1);
  }

  /** Returns `undefined` if a `Request` of the platform cannot have the request target or the host. */
  #toRequest(incoming: NodeIncoming, outgoing: NodeOutgoing): Request | undefined {
    const { url = "", headers, httpVersion } = incoming;
    // HTTP/1.1 requires the header. srvx would take the address of the listener.
    if (headers.host === undefined && httpVersion === "1.1") return;
    // Without this check, srvx would replace such a target by "/".
    if (!url.startsWith("/") && !(/^https?:\/\/[^/]/i.test(url) && URL.canParse(url))) return;
    try {
      const request = new this.#classes.LightRequest({ req: incoming, res: outgoing });
      return URL.canParse(request.url) ? request : undefined;
    } catch {
      return;
    }
  }
}

/** Whether a waiting request cannot fill its buffer. */
function isSmall({ headers }: NodeIncoming): boolean {
  return headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) <= WAITING_BYTES;
}

/** Sends a response of the platform. Applies backpressure: reads the body only as fast as the client reads. */
async function send({ status, headers, body }: Response, outgoing: NodeOutgoing): Promise<void> {
  const reader = body?.getReader();
  if (outgoing.destroyed) return await reader?.cancel();
  // Cancel the body also if the response cannot be sent.
  let isWhole = false;
  outgoing.on("close", () => isWhole || reader?.cancel().catch(() => {}));
  outgoing.writeHead(status, [...headers].flat());
  if (!reader || outgoing.req.method === "HEAD") {
    outgoing.end();
    return;
  }
  // Send the headers now, because the body may take a while to produce its first bytes.
  outgoing.flushHeaders();
  let drained = Promise.withResolvers<void>();
  const proceed = () => {
    drained.resolve();
    drained = Promise.withResolvers<void>();
  };
  outgoing.on("drain", proceed);
  outgoing.on("close", proceed);
  // End the response with its last byte, and not when the stream of the body closes. Otherwise a client that has the whole
  // response, and sends its next request, would count as one that does not wait for the response.
  let left = Number(headers.get("content-length") ?? NaN);
  while (!(isWhole = left <= 0)) {
    const { done, value } = await reader.read();
    if (done || outgoing.destroyed) break;
    const { promise } = drained;
    const hasRoom = outgoing.write(value);
    left -= value.length;
    if (!hasRoom && !(left <= 0)) await promise;
  }
  outgoing.end();
  if (isWhole) reader.read().then(({ done }) => done ? undefined : reader.cancel()).catch(() => {});
}
