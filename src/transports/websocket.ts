/**
 * Serves a server over WebSocket, one JSON message a frame.
 *
 * ```ts ignore
 * import { webSocket } from "@x/mcp/websocket";
 * import server from "./server.ts";
 *
 * Deno.serve(webSocket(server).fetch);
 * // On Bun: Bun.serve(webSocket(server));
 * ```
 *
 * @see specification/2026-07-28/basic/transports (Custom Transports)
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { LATER } from "../core/call.ts";
import type { Principal } from "../core/context.ts";
import { deno, startBackgroundTimer } from "../runtime.ts";
import { type ConnectionInfo, readPrincipal } from "./http/access.ts";
import { HTTP, type HttpParts } from "./http/fetch.ts";
import { PIPE, type Pipe, type PipeServer } from "./channel.ts";

export type { PipeServer };

/** What can be served beside its endpoint: a server made by `createServer`. */
export interface SocketServer extends PipeServer {
  /** Answers what is no socket. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Checks callers.
   *
   * @internal
   */
  readonly [HTTP]: HttpParts;
}

/** How sockets are opened. */
export interface WebSocketOptions {
  /** The path where sockets are opened; `/ws` if nothing is said. */
  readonly path?: string;
}

/** The part of a socket that a server needs; the standard `WebSocket` and Bun's own both have it. */
export interface Socket {
  /** Sends one frame. */
  send(text: string): unknown;
  /** Closes with a code and a reason. */
  close(code?: number, reason?: string): void;
  /** What Bun keeps for the one who upgraded the request. */
  readonly data?: unknown;
  /** Bytes that were sent and have not left yet. */
  readonly bufferedAmount?: number;
  /** Bun's form of `bufferedAmount`. */
  getBufferedAmount?(): number;
}

/** Both runtimes' ways to take sockets: `fetch` upgrades, `websocket` is what Bun calls afterwards. */
export interface WebSocketService {
  /** Opens sockets at the path and hands everything else to the server. */
  readonly fetch: (request: Request, info?: ConnectionInfo) => Promise<Response>;
  /** For `Bun.serve`. */
  readonly websocket: {
    open(socket: Socket): void;
    message(socket: Socket, data: unknown): void;
    close(socket: Socket): void;
    drain(socket: Socket): void;
  };
}

/**
 * Serves sockets beside the HTTP endpoint. Host and Origin are checked before a socket is opened; sockets close when
 * the server does.
 */
export function webSocket(server: SocketServer, options: WebSocketOptions = {}): WebSocketService {
  const { path = "/ws" } = options;
  const { ended, streams } = server[HTTP];
  const lines = new Map<Socket, SocketLine>();
  ended.then(() => lines.forEach((_, socket) => socket.close(GOING_AWAY, "the server is closing")));

  async function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
    if (!isUpgrade) return await server.fetch(request, info);
    const refusal = server[HTTP].check(request, info, { isUpgrade: true });
    if (refusal) return await refusal;
    if (new URL(request.url).pathname !== path) return new Response("Cannot open a socket here", { status: 404 });
    if (lines.size >= streams.limits.streams) {
      return new Response("Cannot open the socket: too many are open (streams)", { status: 503, headers: LATER });
    }
    return upgrade(request, info);
  }

  // The subprotocol is named only to a client that asked for it: others would close at once.
  function upgrade(request: Request, info: ConnectionInfo | undefined): Response {
    const asked = /(^|,)\s*mcp\s*(,|$)/.test(request.headers.get("sec-websocket-protocol") ?? "");
    const principal = readPrincipal(info);
    if (deno?.upgradeWebSocket) {
      const { socket, response } = deno.upgradeWebSocket(request, asked ? { protocol: "mcp" } : {});
      listen(socket, open(socket, principal));
      return response;
    }
    const headers = asked ? { "sec-websocket-protocol": "mcp" } : undefined;
    const runtime = info?.info ?? info;
    if (isUpgrader(runtime) && runtime.upgrade(request, { headers, data: { principal } })) return new Response(null);
    return new Response("Cannot open the socket: this runtime has no WebSocket upgrade", { status: 501 });
  }

  function open(socket: Socket, principal: Principal | undefined): SocketLine {
    const { close, ...line } = openLine(server, socket, principal);
    const known = {
      ...line,
      close() {
        lines.delete(socket);
        close();
      },
    };
    lines.set(socket, known);
    return known;
  }

  return {
    fetch,
    websocket: {
      open: (socket) => void open(socket, readPrincipal(isObject(socket.data) ? socket.data : undefined)),
      message: (socket, data) => lines.get(socket)?.receive(data),
      drain: (socket) => lines.get(socket)?.drain(),
      close: (socket) => lines.get(socket)?.close(),
    },
  };
}

/** Serves one standard socket that is open or opening; for those who upgrade on their own. */
export function attachSocket(server: PipeServer, socket: WebSocket, principal?: Principal): void {
  listen(socket, openLine(server, socket, principal));
}

function listen(socket: WebSocket, line: SocketLine): void {
  socket.addEventListener("message", ({ data }) => line.receive(data));
  socket.addEventListener("close", () => line.close());
  socket.addEventListener("error", () => line.close());
}

interface SocketLine {
  receive(data: unknown): void;
  drain(): void;
  close(): void;
}

/** Characters waiting on a socket before writers have to wait, and before a client that does not read is let go. */
const MOST_BUFFERED = 1024 * 1024;
const STALLED_MS = 30_000;
const POLL_MS = 50;
/** Messages that wait while the server is busy, as long as one may be in all: a socket cannot be read slowly. */
const MOST_LATE = 1024;
const GOING_AWAY = 1001;
const TRY_LATER = 1013;
const UNSUPPORTED_DATA = 1003;

function openLine(server: PipeServer, socket: Socket, principal?: Principal): SocketLine {
  const late: string[] = [];
  let lateSize = 0;
  let drained: { promise: Promise<void>; resolve: () => void } | undefined;
  let isWaiting = false;
  const pipe: Pipe = server[PIPE](write, principal);

  function write(text: string): Promise<void> | undefined {
    try {
      socket.send(text);
    } catch {
      // The client went away; its close event follows.
      return;
    }
    if (toBuffered(socket) <= MOST_BUFFERED) return;
    if (!drained) {
      drained = Promise.withResolvers<void>();
      poll(0);
    }
    return drained.promise;
  }

  // Standard sockets do not tell when there is room again.
  function poll(waited: number): void {
    if (!drained) return;
    if (toBuffered(socket) <= MOST_BUFFERED) return drain();
    if (waited >= STALLED_MS) return socket.close(TRY_LATER, "the reader stands still");
    // The open socket keeps the process alive, and the call that waits for room has a timeout of its own.
    startBackgroundTimer(() => poll(waited + POLL_MS), POLL_MS);
  }

  function drain(): void {
    drained?.resolve();
    drained = undefined;
  }

  function receive(data: unknown): void {
    if (typeof data !== "string") return socket.close(UNSUPPORTED_DATA, "messages are text");
    if (!isWaiting) return take(data);
    lateSize += data.length;
    if (late.length < MOST_LATE && lateSize <= pipe.lineBytes) return void late.push(data);
    // A socket goes on to speak until it is closed: from here on nothing of that is taken.
    lateSize = Infinity;
    socket.close(TRY_LATER, "too much waits");
  }

  function take(text: string): void {
    const wait = text.length > pipe.lineBytes ? pipe.reject("long") : pipe.receive(text);
    if (!wait) return;
    isWaiting = true;
    wait.then(() => {
      isWaiting = false;
      while (late.length && !isWaiting) {
        const [text] = late.splice(0, 1);
        lateSize -= text.length;
        take(text);
      }
    });
  }

  function close(): void {
    drain();
    pipe.close();
  }

  return { receive, drain, close };
}

function toBuffered(socket: Socket): number {
  return socket.getBufferedAmount?.() ?? socket.bufferedAmount ?? 0;
}

interface Upgrader {
  upgrade(request: Request, options: { headers?: Record<string, string>; data: unknown }): boolean;
}

function isUpgrader(info: unknown): info is Upgrader {
  return isObject(info) && typeof info.upgrade === "function";
}
