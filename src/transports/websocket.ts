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
import { isWithin } from "../protocol/weight.ts";
import type { Account } from "../core/account.ts";
import { INTERNALS } from "../core/internals.ts";
import { LATER } from "../core/link.ts";
import type { Principal } from "../core/context.ts";
import { deno, startBackgroundTimer } from "../runtime.ts";
import { type ConnectionInfo, readPrincipal } from "./http/access.ts";
import type { HttpParts } from "./http/upgrades.ts";
import { Outbox } from "./outbox.ts";
import type { OpenPipe, Pipe, PipeServer } from "./channel.ts";

export type { PipeServer };

/** What can be served beside its endpoint: a server made by `createServer`. */
export interface SocketServer extends PipeServer {
  /** Answers what is no socket. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Checks callers.
   *
   * @ignore
   */
  readonly [INTERNALS]: { readonly openPipe: OpenPipe; readonly http: HttpParts };
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
  const { ended } = server[INTERNALS].http;
  const lines = new Map<Socket, SocketLine>();
  const owners = new Map<Socket, Owner>();
  ended.then(() => lines.forEach((_, socket) => socket.close(GOING_AWAY, "the server is closing")));

  async function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
    if (!isUpgrade) return await server.fetch(request, info);
    const refusal = server[INTERNALS].http.check(request, info, { isUpgrade: true });
    if (refusal) return await refusal;
    if (new URL(request.url).pathname !== path) return new Response("Cannot open a socket here", { status: 404 });
    const principal = readPrincipal(info);
    const account = server[INTERNALS].http.account(request, info, principal);
    if (!account.openStream()) {
      const reason = "Cannot open the socket: too many are open (streams.open, streams.openPerClient)";
      return new Response(reason, { status: 503, headers: LATER });
    }
    return upgrade(request, info, { principal, account });
  }

  // The subprotocol is named only to a client that asked for it: others would close at once.
  function upgrade(request: Request, info: ConnectionInfo | undefined, owner: Owner): Response {
    const asked = /(^|,)\s*mcp\s*(,|$)/.test(request.headers.get("sec-websocket-protocol") ?? "");
    if (deno?.upgradeWebSocket) {
      let upgraded;
      try {
        upgraded = deno.upgradeWebSocket(request, asked ? { protocol: "mcp" } : {});
      } catch {
        // Not all headers of an upgrade are there.
        owner.account?.closeStream();
        return new Response("Cannot open the socket: the request is no complete upgrade", { status: 400 });
      }
      const { socket, response } = upgraded;
      open(socket, owner);
      socket.addEventListener("message", ({ data }) => lines.get(socket)?.receive(data));
      socket.addEventListener("close", () => close(socket));
      socket.addEventListener("error", () => close(socket));
      return response;
    }
    const headers = asked ? { "sec-websocket-protocol": "mcp" } : undefined;
    const runtime = info?.info ?? info;
    if (isUpgrader(runtime) && runtime.upgrade(request, { headers, data: owner })) return new Response(null);
    owner.account?.closeStream();
    return new Response("Cannot open the socket: this runtime has no WebSocket upgrade", { status: 501 });
  }

  function open(socket: Socket, owner: Owner): void {
    owners.set(socket, owner);
    lines.set(socket, new SocketLine(server, socket, owner.principal, owner.account));
  }

  function close(socket: Socket): void {
    lines.get(socket)?.close();
    if (lines.delete(socket)) owners.get(socket)?.account?.closeStream();
    owners.delete(socket);
  }

  return {
    fetch,
    websocket: {
      // What was handed over with the upgrade comes back as it was.
      open: (socket) => open(socket, isObject(socket.data) ? socket.data as Owner : {}),
      message: (socket, data) => lines.get(socket)?.receive(data),
      drain: (socket) => lines.get(socket)?.drain(),
      close,
    },
  };
}

/** Who opened a socket. */
interface Owner {
  readonly principal?: Principal;
  readonly account?: Account;
}

/** Serves one standard socket that is open or opening; for those who upgrade on their own. */
export function attachSocket(server: PipeServer, socket: WebSocket, principal?: Principal): void {
  const line = new SocketLine(server, socket, principal);
  socket.addEventListener("message", ({ data }) => line.receive(data));
  socket.addEventListener("close", () => line.close());
  socket.addEventListener("error", () => line.close());
}

/** Bytes waiting in a socket before writers have to wait. */
const MOST_BUFFERED = 1024 * 1024;
/** Characters of a text from which on what the socket holds is charged to the client. */
const LARGE = 16_384;
/** After which time a client that does not read is let go, in milliseconds. */
const STALLED_MS = 30_000;
const POLL_MS = 50;
/** Messages that wait while the server is busy, as long as one may be in all: a socket cannot be read slowly. */
const MOST_LATE = 1024;
const GOING_AWAY = 1001;
const TRY_LATER = 1013;
const UNSUPPORTED_DATA = 1003;

/** One socket and its channel. */
class SocketLine {
  readonly #socket: Socket;
  readonly #pipe: Pipe;
  readonly #outbox: Outbox;
  readonly #late: string[] = [];
  #lateSize = 0;
  #isReading = true;
  #isPolling = false;
  /** Bytes in the socket that the client is charged with. */
  #held = 0;
  /** Bytes charged for the buffer of the longest message so far. */
  #buffer = 0;

  constructor(server: PipeServer, socket: Socket, principal?: Principal, account?: Account) {
    this.#socket = socket;
    this.#pipe = server[INTERNALS].openPipe((text) => this.#write(text), principal, account);
    this.#outbox = new Outbox({ texts: Infinity, characters: 1, account: () => this.#pipe.account });
  }

  receive(data: unknown): void {
    if (typeof data !== "string") return this.#socket.close(UNSUPPORTED_DATA, "messages are text");
    if (!this.#growBuffer(data)) return this.#socket.close(TRY_LATER, "too much is held");
    if (this.#isReading) return this.#take(data);
    this.#lateSize += data.length;
    const hasRoom = this.#late.length < MOST_LATE && this.#lateSize <= this.#pipe.lineBytes;
    if (hasRoom && this.#pipe.account.hold(2 * data.length)) return void this.#late.push(data);
    // A client goes on sending until the socket is closed: from here on nothing of that is taken.
    this.#lateSize = Infinity;
    this.#socket.close(TRY_LATER, "too much waits");
  }

  // Both runtimes keep a buffer as large as the longest message until the connection ends, and Deno keeps its text too.
  #growBuffer({ length }: string): boolean {
    const bytes = length > LARGE ? 2 * length - this.#buffer : 0;
    if (bytes <= 0) return true;
    this.#buffer += bytes;
    if (this.#pipe.account.hold(bytes)) return true;
    this.#pipe.account.charge(bytes);
    return false;
  }

  /** The socket has room again. */
  drain(): void {
    if (toBuffered(this.#socket) > MOST_BUFFERED) return;
    this.#pipe.account.free(this.#held);
    this.#held = 0;
    this.#send();
  }

  close(): void {
    this.#outbox.clear();
    const late = this.#late.splice(0).reduce((bytes, text) => bytes + 2 * text.length, 0);
    const { account } = this.#pipe;
    account.free(this.#held + late);
    this.#held = 0;
    // A closed socket keeps its buffer while the client leaves the connection open, and nothing tells when that ends.
    const buffer = this.#buffer;
    this.#buffer = 0;
    if (buffer) startBackgroundTimer(() => account.free(buffer), STALLED_MS);
    this.#pipe.close();
  }

  #write(text: string): Promise<void> | undefined {
    if (!this.#outbox.push(text)) return this.#letGo();
    this.#send();
    return this.#outbox.isFull ? this.#outbox.untilRoom() : undefined;
  }

  #send(): void {
    while (this.#outbox.length && toBuffered(this.#socket) <= MOST_BUFFERED) {
      const text = this.#outbox.next() ?? "";
      if (!this.#hold(text)) return this.#letGo();
      try {
        this.#socket.send(text);
      } catch {
        // The client went away; its close event follows.
        return this.#outbox.clear();
      }
    }
    if (!this.#isPolling && (this.#held || this.#outbox.length)) this.#poll(0);
  }

  #hold(text: string): boolean {
    const bytes = text.length > LARGE ? 2 * text.length : 0;
    if (bytes && !this.#pipe.account.hold(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  // Standard sockets do not tell when there is room again.
  #poll(waited: number): void {
    this.#isPolling = true;
    // The open socket keeps the process alive, and the call that waits for room has a timeout of its own.
    startBackgroundTimer(() => {
      this.#isPolling = false;
      const isEmpty = !this.#outbox.length;
      this.drain();
      if (!this.#held && isEmpty) return;
      if (this.#isPolling) return;
      if (waited >= STALLED_MS) return this.#letGo();
      this.#poll(waited + POLL_MS);
    }, POLL_MS);
  }

  #letGo(): undefined {
    this.#outbox.clear();
    this.#socket.close(TRY_LATER, "the client does not read");
  }

  #take(text: string): void {
    const { lineBytes } = this.#pipe;
    const isLong = text.length * 3 > lineBytes && !isWithin(text, lineBytes);
    const wait = isLong ? this.#pipe.reject("long") : this.#pipe.receive(text);
    if (!wait) return;
    this.#isReading = false;
    wait.then(() => {
      this.#isReading = true;
      while (this.#late.length && this.#isReading) {
        const [text] = this.#late.splice(0, 1);
        this.#lateSize -= text.length;
        this.#pipe.account.free(2 * text.length);
        this.#take(text);
      }
    });
  }
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
