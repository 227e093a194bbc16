/**
 * Listens for HTTP requests on Node. The package srvx makes the requests and responses.
 */
import type { HttpListener, ListenOptions } from "./listener.ts";
import { type Classes, createClasses } from "./node_request.ts";
import type { NodeGlobal, NodeHttpServer, NodeIncoming, NodeOutgoing, RuntimeFetch } from "./runtime.ts";

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

/**
 * Listens for HTTP requests. Rejects with Node's error if Node cannot listen on the address, or if srvx is not
 * installed.
 */
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
  #isStopped = false;

  constructor(node: NodeGlobal, classes: Classes, fetch: RuntimeFetch) {
    this.#node = node;
    this.#classes = classes;
    this.#fetch = fetch;
    this.#server = node.getBuiltinModule("http").createServer((incoming, outgoing) => {
      this.#answer(incoming, outgoing);
    });
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
    const request = this.#toRequest(incoming, outgoing);
    if (!request) {
      outgoing.writeHead(400, []).end();
      return;
    }
    // Wait for the earlier responses on this connection. Otherwise a client that sends many requests in one packet and
    // reads nothing could let the server buffer the responses to all of them.
    if (!outgoing.socket) await new Promise<void>((resolve) => outgoing.once("socket", resolve));
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

  /** Returns `undefined` if a `Request` of the platform cannot have the request target or the host. */
  #toRequest(incoming: NodeIncoming, outgoing: NodeOutgoing): Request | undefined {
    const { url = "" } = incoming;
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

/** Sends a response of the platform. Applies backpressure: reads the body only as fast as the client reads. */
async function send({ status, headers, body }: Response, outgoing: NodeOutgoing): Promise<void> {
  const reader = body?.getReader();
  if (outgoing.destroyed) return await reader?.cancel();
  // Cancel the body also if the response cannot be sent.
  outgoing.on("close", () => reader?.cancel().catch(() => {}));
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
  for (let next = await reader.read(); !next.done && !outgoing.destroyed; next = await reader.read()) {
    const { promise } = drained;
    if (!outgoing.write(next.value)) await promise;
  }
  outgoing.end();
}
